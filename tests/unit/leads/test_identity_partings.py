"""Leads that an operator has parted stay apart, whatever events come."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rules.leads.identity import (
    KEPT_APART,
    NEW,
    Identity,
    IdentityFacts,
    IdentityPlan,
    KnownIdentity,
    Merge,
    MergeRefusal,
)
from rules.leads.identity_plan import plan_identities
from tests.support.identities import C1, D1, D2, E1, E2, K1, P1, P2, after, check, properties
from tests.support.identity_model import World


def parted(one: Identity, other: Identity) -> World:
    """Two leads that were merged, and parted by an operator."""
    world = after((one,), (other,), (one, other))
    assert world.root(one) == world.root(other)
    world.undo()
    return world


APART = (E1, P1), (P1, E2), (E2, E1), (P2, P1, E1), (C1, P1), (E1, D1), (P1, D1)


@properties
@given(st.permutations([*APART, (P1, E1, D2)]))
def test_whom_an_operator_has_parted_no_order_of_events_brings_together(
    events: list[tuple[Identity, ...]],
) -> None:
    world = parted(E1, P1)
    for each in events:
        world.see(*each)
        assert world.root(E1) != world.root(P1)
        check(world)
    assert any(reason == KEPT_APART for reason, _ in world.refused)


def test_an_event_of_both_is_the_highest_one_s_and_its_refusal_is_noted_once() -> None:
    for both in itertools.permutations((E1, P1)):
        world = parted(E1, P1)
        assert world.see(*both) == world.see(*both) == world.owner[E1][0]
        assert world.refused == {(KEPT_APART, (1, 2))}


def test_each_of_two_parted_leads_may_join_a_third_one_but_not_by_way_of_it() -> None:
    world = parted(E1, P1)
    world.see(E2)
    world.see(P1, E2)
    assert world.root(P1) == world.root(E2)
    world.see(E1, E2)
    assert world.root(E1) != world.root(P1)
    world.see(E1, P2)
    world.see(P2, E2)
    assert world.root(P2) == world.root(E1) != world.root(P1)


def test_a_thing_that_an_operator_has_taken_from_a_person_stays_with_its_own_lead() -> None:
    world = parted(D1, E1)
    assert world.see(E1, D1) == world.owner[E1][0]
    assert world.see(D1) == world.owner[D1][0] == 1
    assert world.refused == {(KEPT_APART, (1, 2))}
    world.see(E2, D1)
    assert world.root(E2) == world.root(D1) != world.root(E1)


def test_of_two_parted_things_the_higher_one_is_adopted() -> None:
    facts = IdentityFacts(
        {D1: KnownIdentity(1, 1), K1: KnownIdentity(2, 2)}, {1: set(), 2: set()}, [frozenset({1, 2})]
    )
    refused = (MergeRefusal(KEPT_APART, (NEW, 2)),)
    assert plan_identities([E1, K1, D1], facts) == IdentityPlan(
        NEW, (E1,), (Merge(NEW, 1, (1, NEW)),), refused
    )
