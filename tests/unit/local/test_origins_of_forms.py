"""A page is named as its browser names it, or refused: an origin that no browser sends would never fit."""

import click
import pytest

from local.leads.hooks import ORIGIN


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://SHOP.example/", "https://shop.example"),
        ("https://shop.example:443", "https://shop.example"),
        ("http://shop.example:80/", "http://shop.example"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("https://shop.example:8443", "https://shop.example:8443"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("https://bu\u0308cher.example", "https://xn--bcher-kva.example"),
        ("https://B\u00dcCHER.example", "https://xn--bcher-kva.example"),
        ("https://\u65e5\u672c.example", "https://xn--wgv71a.example"),
        ("https://xn--strae-oqa.example", "https://xn--strae-oqa.example"),
        ("https://[::1]:8000", "https://[::1]:8000"),
    ],
)
def test_an_origin_is_what_a_browser_sends(text: str, origin: str) -> None:
    assert ORIGIN.convert(text, None, None) == origin


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((text, "referrer policy") for text in ("null", "NULL", " null ")),
        # Python makes ss of it, browsers do not.
        ("https://stra\u00dfe.example", "write it as browsers send it"),
        ("https://\u03b2\u03cc\u03bb\u03bf\u03c2.example", "write it as browsers send it"),
        ("https://*.shop.example", "there are no wildcards"),
        *(
            (text, "without a path")
            for text in ("*", "shop.example", "https://", "file:///a", "https://a..b")
        ),
        *(
            (f"https://shop.example{more}", "without a path")
            for more in ("/contact", "?a", "#a", ":99999", ":x")
        ),
        ("https://ann:secret@shop.example", "without a path"),
    ],
)
def test_what_no_browser_sends_is_refused(text: str, reason: str) -> None:
    with pytest.raises(click.UsageError, match=reason):
        ORIGIN.convert(text, None, None)
