"""Identities have one spelling, and what cannot be one, or is worthless, is refused with channel and reason."""

import re
import unicodedata

import phonenumbers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.leads.spelling import RAW_CHARACTERS_MAX, RENUMBERINGS, identity
from rules.leads.identity import CHANNELS, Identity
from rules.leads.settings import region_of
from tests.support.examples import examples


def of(channel: str, raw: str, region: str | None = None) -> Identity:
    return identity(channel, raw, "acme", "shop", is_verified=True, region=region)


@pytest.mark.parametrize(
    ("raw", "region", "spelling"),
    [
        *(
            (raw, None, "4915112345678")
            for raw in ("4915112345678", "+49 151 1234-5678", "0049 (151) 12345678")
        ),
        *(
            (raw, "US", "4915112345678")
            for raw in ("4915112345678", "+49 151 1234-5678", "0049 (151) 12345678")
        ),
        *((raw, "DE", "4915112345678") for raw in ("0151 12345678", "(0151) 1234-5678", "151/12345678")),
        *((raw, "US", "16505551234") for raw in ("650.555.1234", "(650) 555-1234", "1-650-555-1234")),
        *((raw, None, "16505551234") for raw in ("tel:+1-650-555-1234", "TEL:+1 650 555 1234")),
        ("tel:650-555-1234;phone-context=+1", None, "16505551234"),
        ("650\u00a0555\u00a01234", "US", "16505551234"),
        ("\u202d+1 (650) 555\u20111234\u202c", None, "16505551234"),
        ("+1 650 555 1234 ext. 17", None, "16505551234;ext=17"),
        ("650-555-1234 x17", "US", "16505551234;ext=17"),
        ("tel:+1-650-555-1234;ext=17", None, "16505551234;ext=17"),
        *(
            (raw, None, "442079460958")
            for raw in ("+44 (0)20 7946 0958", "+44 20 7946 0958", "0044 20 79460958")
        ),
        ("020 7946 0958", "GB", "442079460958"),
        ("+39 02 1234 5679", None, "390212345679"),
        *((raw, None, "5511987654321") for raw in ("551187654321", "5511987654321", "+55 (11) 8765-4321")),
        ("(11) 8765-4321", "BR", "5511987654321"),
        ("+55 11 3765-4321", None, "551137654321"),
        *((raw, None, "525512345678") for raw in ("5215512345678", "525512345678", "+52 1 55 1234 5678")),
        ("٠١٥١ ١٢٣٤٥٦٧٨", "DE", "4915112345678"),
        ("＋49 151 12345678", None, "4915112345678"),
    ],
)
def test_a_number_has_one_spelling(raw: str, region: str | None, spelling: str) -> None:
    assert of("phone", raw, region) == Identity("phone", spelling)


@pytest.mark.parametrize(
    ("spellings", "region"),
    [
        (("5491123450678", "+54 11 2345 0678", "+54 9 11 2345-0678", "+54 11 15 2345 0678"), None),
        (("011 15 2345-0678", "011 2345-0678", "11 2345 0678", "5491123450678"), "AR"),
        (("5493514567890", "+54 351 456 7890", "+54 351 15 456 7890", "+54 9 351 15 456 7890"), None),
        (("5491123450678", "+54 9 11 15 2345 0678"), None),
        (("5215512345678", "044 55 1234 5678", "045 55 1234 5678", "01 55 1234 5678", "55 1234 5678"), "MX"),
        (("22997123456", "+229 01 97 12 34 56", "0022997123456"), None),
        (("97 12 34 56", "01 97 12 34 56", "+229 97123456"), "BJ"),
        (("22507123456", "+225 07 07 12 34 56"), None),
        (("22545123456", "+225 05 45 12 34 56"), None),
        (("22502123456", "+225 01 02 12 34 56"), None),
        (("22522412345", "+225 27 22 41 23 45"), None),
        (("22522012345", "+225 25 22 01 23 45"), None),
        (("24107123456", "+241 7 12 34 56", "+241 77 12 34 56", "+241 077 12 34 56"), None),
        (("2416123456", "24166123456"), None),
        (("24101712345", "+241 11 71 23 45"), None),
        (("841687654321", "+84 38 765 4321", "+84 168 765 4321"), None),
        (("841217654321", "+84 79 765 4321"), None),
        (("841267654321", "+84 76 765 4321"), None),
        (("841237654321", "+84 83 765 4321"), None),
        (("841887654321", "+84 58 765 4321"), None),
        (("0168 765 4321", "038 765 4321"), "VN"),
        (("+57 1 234 5678", "+57 601 234 5678"), None),
        (("23777123456", "+237 6 77 12 34 56"), None),
        (("23722123456", "+237 2 22 12 34 56"), None),
        (("2307123456", "+230 5712 3456"), None),
        (("972599123456", "+970 599 123 456"), None),
        (("5215512345678", "+52 55 1234 5678"), None),
        (("553187654321", "+55 31 98765-4321"), None),
        (("+54 11 2345 0678 ext. 9", "+54 9 11 2345 0678 x9"), None),
    ],
)
def test_old_and_new_ways_to_write_a_line_are_one_number(
    spellings: tuple[str, ...], region: str | None
) -> None:
    assert len({of("phone", each, region) for each in spellings}) == 1


@settings(max_examples=examples(60))
@given(st.data())
def test_a_number_as_it_is_dialled_today_is_not_changed_again(data: st.DataObject) -> None:
    code = data.draw(st.sampled_from(sorted(RENUMBERINGS)))
    way, _ = data.draw(st.sampled_from(RENUMBERINGS[code]))
    old = data.draw(st.from_regex(re.compile(way, re.ASCII), fullmatch=True))
    try:
        once = of("phone", f"+{code}{old}")
    except ValueError:  # 0000000
        return
    assert of("phone", f"+{once.external_id}") == once


def test_colleagues_behind_one_switchboard_are_not_one() -> None:
    assert len({of("phone", f"+1 650 555 1234{more}") for more in ("", " x1", " x2")}) == 3


@pytest.mark.parametrize(
    ("raw", "spelling"),
    [
        ("  Ann.BERG@Example.COM ", "ann.berg@example.com"),
        ("jose\u0301@example.com", "josé@example.com"),
        ("JOSE\u0301@example.com", "josé@example.com"),
        ("ann@MÜNCHEN.de", "ann@xn--mnchen-3ya.de"),
        ("ann@mu\u0308nchen.de", "ann@xn--mnchen-3ya.de"),
        ("ann@xn--mnchen-3ya.de", "ann@xn--mnchen-3ya.de"),
        ("ann@XN--MNCHEN-3YA.de", "ann@xn--mnchen-3ya.de"),
        ("ann@straße.de", "ann@xn--strae-oqa.de"),
        ("ann@STRASSE.de", "ann@strasse.de"),
        ("ann@例え.jp", "ann@xn--r8jz45g.jp"),
        ("ann@example.com.", "ann@example.com"),
        ("\u00a0ann@example.com\u00a0", "ann@example.com"),
    ],
)
def test_an_address_has_one_spelling(raw: str, spelling: str) -> None:
    assert of("email", raw) == Identity("email", spelling)


@pytest.mark.parametrize(
    "raw",
    [
        *("mailto:x@y.example", "MAILTO:X@Y.Example", "mailto: x@y.example", "mailto://x@y.example"),
        *("mailto:x@y.example?subject=Hello%20there&body=a@b", "mailto:x%40y.example", "mailto:?to=x@y.example"),
        *("x@y.example?subject=Hi", "E-Mail: x@y.example", "email=x@y.example"),
        *("x@y.example,", "x@y.example;", "x@y.example.", "x@y.example...", "x@y.example!", ",x@y.example :"),
        *("<x@y.example>", "(x@y.example)", "[x@y.example]", '"x@y.example"', "'x@y.example'", "“x@y.example”"),
        *("«x@y.example»", "<x@y.example>,", "• x@y.example", "✉️ x@y.example", "`x@y.example`", "*x@y.example*"),
        *("Ann Berg <x@y.example>", '"Berg, Ann" <x@y.example>;', "x@y.example <x@y.example>", "Ann<X@Y.EXAMPLE>"),
        *("Ann <mailto:x@y.example>", "Ann [mailto:x@y.example]", "[x@y.example](mailto:x@y.example)"),
        *("<mailto:x@y.example|x@y.example>", '"x"@y.example'),
        *("x@\u200by.example", "\ufeffx@y.example", "x\u00ad@y.example", "\u2060x@y.exam\u200dple", "\u202ax@y.example\u202c"),
        *("\u00a0x@y.example\u00a0", "x\u00a0@\u00a0y.example", "\u3000x@y.example\t", "x@y.example\r\n"),
        *("ｘ＠ｙ．ｅｘａｍｐｌｅ", "x＠y.example", "x﹫y.example", "x@y。example"),
    ],
)  # fmt: skip
def test_an_address_as_it_is_pasted_is_the_address(raw: str) -> None:
    assert of("email", raw) == Identity("email", "x@y.example")


@pytest.mark.parametrize(
    "raw", ["o'brien@y.example", "_ann@y.example", "+ann@y.example", "a%40b@y.example", "ann.@y.example", "#1@y.example"]
)  # fmt: skip
def test_signs_of_an_address_are_no_punctuation_around_it(raw: str) -> None:
    assert of("email", raw) == Identity("email", raw)


@pytest.mark.parametrize("channel", ["customer", "device", "cookie"])
def test_scoped_ids_carry_their_scope_and_keep_their_case(channel: str) -> None:
    found = of(channel, " a/B ")
    assert found.external_id == "acme/shop/a/B"
    assert found.scope == "acme/shop"
    assert identity(channel, "a/B", "acme", "other", is_verified=True) != found


def test_what_is_the_organization_s_has_no_scope() -> None:
    assert of("email", "a@x").scope == of("phone", "+4915112345678").scope == ""


@pytest.mark.parametrize(
    ("channel", "raw", "reason"),
    [
        ("email", "", "email: it is empty"),
        ("email", "a", "email: it has no single @"),
        ("email", "a@b@c", "email: it has no single @"),
        ("email", "@b", "email: it has no single @"),
        ("email", "a b@c", "email: it has a space"),
        ("email", "a@" + "b" * 199, "email: it has more than 200"),
        ("email", "ann@" + "ü" * 100 + ".de", "email: its domain is none"),
        ("email", "a@\u2603.com", "email: its domain is none"),
        ("email", "a@b..de", "email: its domain has an empty part"),
        ("email", "a\x00@b", "email: it has characters that cannot be printed"),
        ("email", "mailto:a%00@b.example", "email: it has characters that cannot be printed"),
        ("email", "mailto:a%ff@b.example", "email: it has signs before the @"),
        ("email", "https://a@b.example", "email: it has signs before the @"),
        ("email", "a@b.example, c@d.example", "email: it has no single @"),
        ("email", "Ann <a@b.example>, Bob <c@d.example>", "email: it has no single @"),
        ("email", "mailto:a@b.example,c@d.example", "email: it has no single @"),
        ("email", "a@b.example/inbox", "email: its domain is none"),
        ("email", "Ann Berg a@b.example", "email: it has a space"),
        ("email", "Ann\u00a0Berg a@b.example", "email: it has a space"),
        ("email", "<@>", "email: it has no single @"),
        ("email", "\ufeff\u200b\u00a0", "email: it is empty"),
        ("email", " " * 2001, "email: it has more than 200"),
        ("phone", "+1234", "phone: it is no telephone number"),
        ("phone", "6505551234", "phone: it is no telephone number with its country code"),
        ("phone", "1" * 16, "phone: it is no telephone number"),
        ("phone", "+49 151 CALL", "phone: it has letters"),
        ("phone", "n/a", "phone: it has letters"),
        ("phone", "++", "phone: it is no telephone number"),
        ("customer", " ", "customer: it is empty"),
        ("device", "a\x00b", "device: it has characters that cannot be printed"),
        ("cookie", "x" * 201, "cookie: it has more than 200"),
        ("fax", "1", "fax is no channel"),
    ],
)
def test_what_is_no_identity_is_refused_with_channel_and_reason(channel: str, raw: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        of(channel, raw)


def test_a_scope_that_could_be_read_two_ways_is_refused() -> None:
    with pytest.raises(ValueError, match="customer: the organization has a /"):
        identity("customer", "1", "a/b", "c", is_verified=True)
    with pytest.raises(ValueError, match="customer: the integration is empty"):
        identity("customer", "1", "a", "", is_verified=True)


@settings(max_examples=examples(60))
@given(st.sampled_from([channel.name for channel in CHANNELS]), st.text(max_size=RAW_CHARACTERS_MAX))
def test_a_spelling_is_its_own_spelling(channel: str, raw: str) -> None:
    try:
        once = of(channel, raw)
    except ValueError as reason:
        assert str(reason).startswith(channel)
        return
    bare = once.external_id.removeprefix("acme/shop/") if once.scope else once.external_id
    assert of(channel, bare) == once
    assert len(bare) <= RAW_CHARACTERS_MAX


REGIONS = sorted(phonenumbers.SUPPORTED_REGIONS)
FORMS = [
    phonenumbers.PhoneNumberFormat.E164,
    phonenumbers.PhoneNumberFormat.INTERNATIONAL,
    phonenumbers.PhoneNumberFormat.RFC3966,
    phonenumbers.PhoneNumberFormat.NATIONAL,
]


@settings(max_examples=examples(60))
@given(st.sampled_from(REGIONS))
def test_every_way_to_write_a_region_s_number_is_one_identity(region: str) -> None:
    example = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
    if example is None:
        return
    written = {phonenumbers.format_number(example, each) for each in FORMS}
    try:
        assert len({of("phone", each, region) for each in written}) == 1
    except ValueError as reason:
        assert "identifies nobody" in str(reason)


@settings(max_examples=examples(60))
@given(st.text(st.characters(categories=["L", "Nd"], max_codepoint=0x24F), min_size=3, max_size=20))
def test_an_address_is_the_same_in_every_normal_form(name: str) -> None:
    found = set()
    for form in ("NFC", "NFD"):
        for address in (f"{name}.x@example.com", f"ann.x@{name}.de"):
            try:
                found.add(of("email", unicodedata.normalize(form, address)))
            except ValueError:
                found.add(Identity("email", address))
    assert len(found) == 2


def test_a_region_is_the_organization_s_or_everybody_s() -> None:
    setting = "US acme=DE shop.br=BR"
    assert [region_of(setting, each) for each in ("acme", "shop.br", "shop")] == ["DE", "BR", "US"]
    assert region_of("acme=DE", "other") is region_of("", "acme") is None
    with pytest.raises(ValueError, match="PhoneRegions: usa is neither a region"):
        region_of("US usa", "acme")


@pytest.mark.parametrize(
    "raw",
    [
        *("p:+16505551234", "Mobile: +1 650 555 1234", "WhatsApp: 1 (650) 555-1234", "+1 650 555 1234 (mobile)"),
        *("'+16505551234", "=+16505551234", '"16505551234"', "16505551234.0", "tel:+1-650-555-1234"),
        *("https://wa.me/16505551234", "wa.me/+16505551234?text=hi", "https://api.whatsapp.com/send?phone=16505551234&text=x"),
    ],
)  # fmt: skip
def test_a_number_as_it_is_pasted_is_the_number(raw: str) -> None:
    assert of("phone", raw).external_id == "16505551234"


@pytest.mark.parametrize(
    "raw", ["1: 650 555 1234", "+1 650 555 1234 / +1 650 555 1235", "wa.me/ann", "call: me"]
)
def test_what_may_be_two_numbers_or_none_is_refused(raw: str) -> None:
    with pytest.raises(ValueError, match="phone: "):
        of("phone", raw)


@pytest.mark.parametrize(
    "raw",
    [
        *(
            "SMTP:ann@x.example",
            "to: ann@x.example",
            "Email address: ann@x.example",
            "E-Mail-Adresse: ann@x.example",
        ),
        *(
            "work: ann@x.example",
            "e-mail - ann@x.example",
            "- ann@x.example",
            "1. ann@x.example",
            "2) ann@x.example",
        ),
        *(
            "ann@x.example (work)",
            "ann@x.example, ann@x.example",
            "Ann@x.example; ann@X.example;",
            "ann%40x.example",
        ),
        *("ann&#64;x.example", "&lt;ann@x.example&gt;", "Ann &lt;ann@x.example&gt;"),
    ],
)
def test_an_address_with_a_label_or_a_remark_is_the_address(raw: str) -> None:
    assert of("email", raw).external_id == "ann@x.example"


@pytest.mark.parametrize(
    "raw",
    ["ann berg@x.example", "ann:berg@x.example", "ann@x.example, bob@x.example", "ann (at) x.example", "%40"],
)
def test_what_may_be_somebody_else_s_address_is_refused(raw: str) -> None:
    with pytest.raises(ValueError, match="email: "):
        of("email", raw)


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
