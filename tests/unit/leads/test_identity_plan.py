"""What one event's identities prove: properties of the decision, over all that may have come before."""

import copy
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.leads.identity.identities import Identity
from rules.leads.identity.identity_facts import (
    KEPT_APART,
    NEW,
    TOO_MANY,
    IdentityFacts,
    IdentityPlan,
    KnownIdentity,
    Merge,
    MergeRefusal,
)
from rules.leads.identity.identity_plan import fits_one_lead, plan_identities
from tests.support.identity_model import World

SHOP, SITE = "acme/shop", "acme/site"
C1, C2, C3 = (Identity("customer", f"{SHOP}/{n}") for n in "123")
E1, E2 = Identity("email", "a@x"), Identity("email", "b@x")
P1, P2 = Identity("phone", "4915100000001"), Identity("phone", "4915100000002")
D1, D2 = (Identity("device", f"{SHOP}/{n}") for n in "12")
K1 = Identity("cookie", f"{SITE}/1")
ALL = (C1, C2, C3, Identity("customer", f"{SITE}/1"), E1, E2, P1, P2, D1, D2, K1)
EVENTS = st.lists(st.lists(st.sampled_from(ALL), min_size=1, max_size=4), min_size=1, max_size=12)
# None: an operator undoes the newest merge.
LIVES = st.lists(
    st.one_of(st.none(), st.lists(st.sampled_from(ALL), min_size=1, max_size=4)), min_size=1, max_size=14
)
properties = settings(max_examples=120, deadline=None)


def after(*events: tuple[Identity, ...]) -> World:
    world = World()
    for each in events:
        world.see(*each)
    return world


def check(world: World) -> None:
    for root in set(world.leads.values()):
        assert world.leads[root] == root
        assert fits_one_lead(world.held(root))
    assert all(len({world.leads[lead] for lead in pair}) == 2 for pair in world.apart)
    for lead, is_shared in world.owner.values():
        if is_shared:  # alone, for good
            assert world.leads[lead] == lead
            assert [lead] == [own for own, root in world.leads.items() if root == lead]
            assert [own for own, _ in world.owner.values()].count(lead) == 1


def live(world: World, each: list[Identity] | None) -> int | None:
    if each is not None:
        return world.see(*each)
    if world.merged:
        world.undo()
    return None


@properties
@given(LIVES)
def test_no_group_ever_breaks_a_maximum_or_holds_what_was_parted_and_shared_things_stay_alone(
    life: list[list[Identity] | None],
) -> None:
    world = World()
    for each in life:
        live(world, each)
        check(world)


@properties
@given(LIVES)
def test_a_repeated_event_changes_nothing_and_has_the_same_leaf(life: list[list[Identity] | None]) -> None:
    world = World()
    for each in life:
        leaf = live(world, each)
        if each is None:
            continue
        before = copy.deepcopy(world)
        assert world.see(*each) == leaf
        assert world == before


@properties
@given(EVENTS, st.randoms())
def test_the_order_of_identities_within_an_event_does_not_matter(
    events: list[list[Identity]], random: object
) -> None:
    one, other = World(), World()
    for each in events:
        shuffled = list(each)
        random.shuffle(shuffled)  # type: ignore[attr-defined]
        assert one.see(*each) == other.see(*shuffled, shuffled[0])
    assert one == other


@properties
@given(LIVES)
def test_strong_identities_of_an_event_that_nothing_keeps_apart_are_one(
    life: list[list[Identity] | None],
) -> None:
    world = World()
    for each in life:
        live(world, each)
        strong = [one for one in each or () if one.kind.is_strong]
        known = {world.root(one) for one in strong if one in world.owner}
        refused = [{world.leads[root] for root in roots} for _, roots in world.refused]
        assert len(known) <= 1 or any(known <= roots for roots in refused)


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
