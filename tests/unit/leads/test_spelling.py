"""Identities have one spelling, and what cannot be one, or is worthless, is refused with channel and reason."""

import unicodedata

import phonenumbers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.settings.phone_regions import region_of
from ingest.leads.spelling import RAW_CHARACTERS_MAX, identity
from rules.leads.identity.identities import CHANNELS, Identity
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


def test_strasse_and_strasze_are_two_mailboxes() -> None:
    assert of("email", "straße@x.de") != of("email", "STRASSE@x.de")


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
        ("email", "a\u200b@b", "email: it has characters that cannot be printed"),
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


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(ValueError, match="customer: it is no text"):
        identity("customer", 17, "acme", "shop", is_verified=True)  # type: ignore[arg-type]


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


@settings(max_examples=examples(200))
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
