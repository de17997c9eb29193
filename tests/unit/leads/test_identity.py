"""Identities have a precedence, and which are strong."""

from rules.leads.identity import CHANNELS, STRONG, Identity, in_order


def test_precedence_is_the_table_s_order() -> None:
    kinds = [Identity(channel.name, "a/b/c") for channel in CHANNELS]
    assert in_order([*reversed(kinds), kinds[0]]) == tuple(kinds)
    assert STRONG == ("customer", "email", "whatsapp", "phone")
