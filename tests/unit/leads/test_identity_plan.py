"""Examples of what one event's identities prove about leads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.leads.identity import (
    NEW,
    TOO_MANY,
    Identity,
    IdentityFacts,
    IdentityPlan,
    KnownIdentity,
    Merge,
    fits_one_lead,
)
from rules.leads.identity_plan import plan_identities
from tests.support.identities import C1, C2, D1, E1, E2, K1, P1, P2, SITE, after, properties
from tests.support.identity_model import World


@properties
@given(st.permutations([(E1, D1), (E2, D1), (P1, E1), (P2, E2), (D1,), (E1,), (P2, D1), (D1, K1)]))
def test_two_people_who_share_a_device_stay_two_whatever_the_order(
    events: list[tuple[Identity, ...]],
) -> None:
    world = after(*events)
    assert world.root(E1) == world.root(P1) != world.root(E2) == world.root(P2)


def test_a_device_of_two_people_belongs_to_neither() -> None:
    world = after((E1, D1), (E2, D1))
    alone = world.see(D1)
    assert alone not in {world.root(E1), world.root(E2)}
    world.see(E1, D1)
    assert world.root(D1) == alone


def test_an_anonymous_lead_is_adopted_by_whom_its_device_turns_up_with() -> None:
    world = World()
    before = world.see(D1)
    leaf = world.see(E1, D1)
    assert leaf != before
    assert world.root(E1) == world.root(D1) == before


def test_things_alone_join_nobody() -> None:
    world = after((D1,), (K1,))
    assert world.see(D1, K1) == world.owner[D1][0]
    assert world.root(D1) != world.root(K1)


def test_a_thing_that_is_not_shared_tells_more_than_one_that_is() -> None:
    world = after((E1, D1), (E2, D1))
    leaf = world.see(D1, K1)
    assert leaf == world.owner[K1][0] != world.owner[D1][0]


def test_an_unknown_identity_joins_the_lead_of_the_highest_known_one() -> None:
    facts = IdentityFacts({E1: KnownIdentity(7, 3), P1: KnownIdentity(3, 3)}, {3: {E1, P1}})
    assert plan_identities([C1, D1, P1, E1], facts) == IdentityPlan(7, (C1, D1))


def test_the_oldest_lead_is_the_root() -> None:
    facts = IdentityFacts(
        {E1: KnownIdentity(9, 9), P1: KnownIdentity(4, 4), D1: KnownIdentity(2, 2)},
        {9: {E1}, 4: {P1}, 2: set()},
    )
    merges = (Merge(4, 2, (2, 4, 9)), Merge(9, 2, (2, 4, 9)))
    assert plan_identities([P1, E1, D1], facts) == IdentityPlan(9, merges=merges)


def test_a_new_lead_is_the_youngest() -> None:
    facts = IdentityFacts({D1: KnownIdentity(2, 2)}, {2: set()})
    assert plan_identities([E1, D1], facts) == IdentityPlan(NEW, (E1,), (Merge(NEW, 2, (2, NEW)),))


def test_two_customers_with_one_email_stay_two() -> None:
    world = after((C1, E1))
    second = world.see(C2, E1)
    assert world.root(C1) == world.root(E1) != world.root(C2)
    assert second == world.owner[C2][0]
    assert world.refused == {(TOO_MANY, (1, 2))}


def test_contradictory_evidence_joins_nobody() -> None:
    world = after((C1,), (C2,), (P1,))
    assert world.see(C1, C2, P1) == world.owner[C1][0]
    assert world.refused == {(TOO_MANY, (1, 2, 3))}
    assert len(set(world.leads.values())) == 3


def test_what_exceeds_a_maximum_is_left_out() -> None:
    phones = [Identity("phone", f"491510000000{n}") for n in range(5)]
    world = after((E1, *phones))
    assert sum(each in world.owner for each in phones) == 3
    emails = [Identity("email", f"{n}@x") for n in range(6)]
    assert len(plan_identities(emails, IdentityFacts()).attach) == 5


def test_a_maximum_counts_by_scope() -> None:
    assert fits_one_lead([C1, Identity("customer", f"{SITE}/1")])
    assert not fits_one_lead([C1, C2])


def test_no_identity_is_no_event() -> None:
    with pytest.raises(ValueError, match="no identity"):
        plan_identities([], IdentityFacts())
