"""Identities have one spelling, and what cannot be one is refused with channel and reason."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.leads.identity.identities import CHANNELS, RAW_CHARACTERS_MAX, STRONG, Identity, identity, in_order


def of(channel: str, raw: str) -> Identity:
    return identity(channel, raw, "acme", "shop", is_verified=True)


@pytest.mark.parametrize("raw", ["4915112345678", "+49 151 1234-5678", "0049 (151) 12345678"])
def test_a_phone_has_one_spelling(raw: str) -> None:
    assert of("phone", raw) == Identity("phone", "4915112345678")


def test_an_email_is_folded() -> None:
    assert of("email", "  Ann.STRASSE@Example.COM ") == Identity("email", "ann.strasse@example.com")
    assert of("email", "straße@x.de") == of("email", "STRASSE@x.de")


@pytest.mark.parametrize("channel", ["customer", "device", "cookie"])
def test_scoped_ids_carry_their_scope_and_keep_their_case(channel: str) -> None:
    found = of(channel, " a/B ")
    assert found.external_id == "acme/shop/a/B"
    assert found.scope == "acme/shop"
    assert identity(channel, "a/B", "acme", "other", is_verified=True) != found


def test_what_is_global_has_no_scope() -> None:
    assert of("email", "a@x").scope == of("phone", "12345678").scope == ""


@pytest.mark.parametrize(
    ("channel", "raw", "reason"),
    [
        ("email", "", "email: it is empty"),
        ("email", "a", "email: it has no single @"),
        ("email", "a@b@c", "email: it has no single @"),
        ("email", "@b", "email: it has no single @"),
        ("email", "a b@c", "email: it has a space"),
        ("email", "a@" + "b" * 199, "email: it has more than 200"),
        ("email", "ΐ" * 100 + "@x", "email: it has more than 200"),
        ("email", "a\u200b@b", "email: it has characters that cannot be printed"),
        ("phone", "1234567", "phone: it has 7 digits"),
        ("phone", "1" * 16, "phone: it has 16 digits"),
        ("phone", "+49 151 CALL", "phone: it has other characters"),
        ("phone", "++4915112345678", "phone: it has other characters"),
        ("phone", "١٢٣٤٥٦٧٨", "phone: it has other characters"),
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


def test_precedence_is_the_table_s_order() -> None:
    kinds = [Identity(channel.name, "a/b/c") for channel in CHANNELS]
    assert in_order([*reversed(kinds), kinds[0]]) == tuple(kinds)
    assert STRONG == ("customer", "email", "phone")


@settings(max_examples=60)
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
