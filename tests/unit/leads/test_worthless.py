"""What identifies nobody is no identity."""

import pytest

from tests.unit.leads.test_spelling import of


@pytest.mark.parametrize(
    ("channel", "raw"),
    [
        *(("phone", raw) for raw in ("1111111111", "000 000 0000", "123-456-7890", "+1 123 456 7890")),
        *(("phone", raw) for raw in ("+1 650 555 0123", "9999999999", "+49 151 0000000", "0123456789")),
        *(("email", raw) for raw in ("test@example.com", "TEST@gmail.com", "asdf@asdf.com", "aaa@bbb.com")),
        *(
            ("email", raw)
            for raw in ("noreply@shop.example", "mail@mail.com", "xy@xy.com", "none@none", "n.a@n.a")
        ),
        *(("cookie", raw) for raw in ("undefined", "null", "NaN", "[object Object]")),
        *(("customer", raw) for raw in ("0", "guest", "None", "-")),
        ("device", "00000000-0000-0000-0000-000000000000"),
    ],
)
def test_what_identifies_nobody_is_refused(channel: str, raw: str) -> None:
    with pytest.raises(ValueError, match=f"{channel}: (it identifies nobody|it is no telephone number)"):
        of(channel, raw, "US")


@pytest.mark.parametrize(
    ("channel", "raw"),
    [
        ("email", "testa@example.com"),
        ("email", "jo@example.com"),
        ("email", "mail@max-mustermann.example"),
        ("email", "schmidt@schmidt.example"),
        ("phone", "+1 650 555 1234"),
        ("customer", "10"),
    ],
)
def test_what_only_looks_worthless_is_not(channel: str, raw: str) -> None:
    assert of(channel, raw)
