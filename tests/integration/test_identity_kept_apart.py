"""Leads that an operator has parted stay apart, whatever comes later."""

import psycopg
import pytest

from rules.leads.identity import Identity
from tests.support.identity_server import Registry, undo

pytestmark = pytest.mark.xdist_group("identity")

A, B, C = (Identity("email", f"{name}@x") for name in "abc")
P = Identity("phone", "4915100000001")


def part(registry: Registry, *leads: tuple[Identity, ...]) -> None:
    """Make two leads known, merge them, and let an operator undo it."""
    for each in leads:
        registry.see(*each)
    undo(registry, registry.see(*(each[0] for each in leads)).changes[-1].number)


def test_an_event_of_both_is_the_highest_one_s_and_its_refusal_is_noted_once(registry: Registry) -> None:
    part(registry, (A,), (P,))
    leaf = registry.see(A).leaf
    for both in [(A, P), (P, A), (A, P)]:
        assert registry.see(*both, external_id="order-7").leaf == leaf
    refused, unmerged, merged = registry.store.history(["acme"], leaf, None, 9) or []
    assert (merged["kind"], unmerged["kind"], refused["kind"]) == ("merged", "unmerged", "refused")
    assert refused["leads"] == [1, 2]
    assert refused["evidence"] == {
        "source": "acme/shop",
        "external_event_id": "order-7",
        "identities": [["email", "a@x", True], ["phone", P.external_id, True]],
        "reason": "kept apart",
    }


def test_groups_are_parted_as_they_stand_lead_by_lead(registry: Registry) -> None:
    """C came to A after B did: whatever becomes of A and C later, B is neither of them."""
    for each in (A, B, C):
        registry.see(each)
    first = registry.see(A, B).changes[-1].number
    second = registry.see(A, C).changes[-1].number
    undo(registry, first)
    undo(registry, second)
    for both in [(B, C), (A, B), (C, A)]:
        registry.see(*both)
    assert registry.groups() == {frozenset({("email", each.external_id)}) for each in (A, B, C)}


def test_the_schema_itself_keeps_apart(registry: Registry) -> None:
    part(registry, (A,), (B,))
    registry.see(C)
    registry.see(B, C)
    for statement in (
        "UPDATE identity.lead SET root_id = 1",
        "UPDATE identity.kept_apart SET number = 1",  # no undoing
        "INSERT INTO identity.kept_apart SELECT organization_id, number, lead_id, NOT is_moved FROM identity.kept_apart",
    ):
        with pytest.raises(psycopg.IntegrityError), registry.owner.transaction():
            registry.owner.execute(statement)
