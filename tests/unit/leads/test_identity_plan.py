"""What the identities of events prove about leads: what a source proves, what is only claimed, whom an operator has parted."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.leads.identity import (
    CHANNELS,
    KEPT_APART,
    NEW,
    PROVEN_ELSEWHERE,
    STRONG,
    TOO_MANY,
    Identity,
    IdentityFacts,
    IdentityPlan,
    KnownIdentity,
    Merge,
    MergeRefusal,
    fits_one_lead,
    in_order,
)
from rules.leads.identity_plan import LEADS_PER_CLAIM, plan_identities
from tests.support.examples import examples
from tests.support.identity_model import World

SHOP, SITE = "acme/shop", "acme/site"
C1, C2, C3 = (Identity("customer", f"{SHOP}/{n}") for n in "123")
E1, E2 = Identity("email", "a@x"), Identity("email", "b@x")
P1, P2 = Identity("phone", "4915100000001"), Identity("phone", "4915100000002")
D1, D2 = (Identity("device", f"{SHOP}/{n}") for n in "12")
K1 = Identity("cookie", f"{SITE}/1")
properties = settings(max_examples=examples(50))


def after(*events: tuple[Identity, ...]) -> World:
    world = World()
    for each in events:
        world.see(*each)
    return world


def check(world: World) -> None:
    for root in set(world.leads.values()):
        assert world.leads[root] == root
        assert fits_one_lead(each for each in world.held(root) if each.is_verified)
    assert all(len({world.leads[lead] for lead in pair}) == 2 for pair in world.apart)
    for lead, is_shared in world.owner.values():
        if is_shared:  # alone, for good
            assert world.leads[lead] == lead
            assert [lead] == [own for own, root in world.leads.items() if root == lead]
            assert [own for own, _ in world.owner.values()].count(lead) == 1


@properties
@given(st.permutations([(E1, D1), (E2, D1), (P1, E1), (P2, E2), (D1,), (E1,), (P2, D1), (D1, K1)]))
def test_two_people_who_share_a_device_stay_two_whatever_the_order(
    events: list[tuple[Identity, ...]],
) -> None:
    world = after(*events)
    assert world.root(E1) == world.root(P1) != world.root(E2) == world.root(P2)


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


ALL = (C1, C2, C3, Identity("customer", f"{SITE}/1"), E1, E2, P1, P2, D1, D2, K1)
EVENTS = st.lists(st.lists(st.sampled_from(ALL), min_size=1, max_size=4), min_size=1, max_size=12)
# None: an operator undoes the newest merge.
LIVES = st.lists(
    st.one_of(st.none(), st.lists(st.sampled_from(ALL), min_size=1, max_size=4)), min_size=1, max_size=14
)


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
        # What an event made of its own identities may be one more reason not to merge, which is noted.
        assert before.refused <= world.refused
        before.refused = world.refused
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


def claim(*identities: Identity) -> tuple[Identity, ...]:
    return tuple(replace(each, is_verified=False) for each in identities)


def test_claims_never_make_two_people_one() -> None:
    for first in (claim(E1), (E1,)):
        for second in (claim(P1), (P1,)):
            world = after(first, second)
            world.see(*claim(E1, P1))
            assert world.root(E1) != world.root(P1)
            assert not world.merged


def test_a_claim_belongs_to_who_has_it_and_adds_nothing_to_a_proven_person() -> None:
    world = after((E1,))
    assert world.see(*claim(E1, P1), D1, K1) == world.owner[E1][0]
    assert {P1, D1, K1}.isdisjoint(world.owner)


def test_another_address_under_one_number_is_another_person() -> None:
    world = after(claim(E1, P1))
    assert world.see(*claim(E2, P1)) == world.owner[E2][0] != world.owner[E1][0]
    assert world.see(*claim(P1)) == world.owner[E1][0]


def test_what_two_people_have_proven_leads_to_neither_of_them() -> None:
    world = after((E1,), (P1,))
    alone = world.see(*claim(E1, P1))
    assert alone not in {world.owner[E1][0], world.owner[P1][0]}
    device = world.see(D1)
    assert world.see(*claim(E1, P1), D1) == device


def test_a_claim_that_was_typed_for_too_many_leads_to_nobody() -> None:
    addresses = [Identity("email", f"{number}@x", is_verified=False) for number in range(LEADS_PER_CLAIM + 1)]
    world = World()
    for each in addresses[:-1]:
        for _ in range(2):
            world.see(each, *claim(P1))
    assert world.see(*claim(P1)) == world.owner[addresses[0]][0]
    world.see(addresses[-1], *claim(P1))
    assert world.owner[P1][1]
    assert world.see(*claim(P1)) not in {world.owner[each][0] for each in addresses}
    assert world.see(addresses[1], *claim(P1)) == world.owner[addresses[1]][0]


def test_who_proves_what_was_shared_has_it() -> None:
    addresses = [Identity("email", f"{number}@x", is_verified=False) for number in range(5)]
    world = after(*((each, *claim(P1)) for each in addresses))
    lead = world.see(P1)
    assert world.owner[P1] == (lead, False)
    assert world.see(*claim(P1)) == lead


def test_who_proves_a_claim_adopts_the_lead_that_nobody_has_proven() -> None:
    world = after(claim(E1, P1))
    assert world.see(E1) == world.owner[P1][0]
    assert world.proven == {E1}
    world = after((C1,), claim(E1))
    world.see(C1, E1)
    assert world.root(C1) == world.root(E1)
    assert world.proven == {C1, E1}


def test_of_a_lead_that_somebody_else_has_proven_he_takes_it_away() -> None:
    world = after(claim(E1, P1), (P1,))
    before = world.owner[P1][0]
    lead = world.see(C1, E1)
    assert lead == world.owner[E1][0] == world.owner[C1][0] != before
    assert world.root(P1) != world.root(E1)
    assert (PROVEN_ELSEWHERE, (before, lead)) in world.refused


def test_nobody_becomes_who_he_claims_to_be() -> None:
    """A stranger types the customer's address with a number of his own, and then writes from that number."""
    for events in (
        [claim(E1, P1), (P1,), (C1, E1)],
        [(C1, E1), claim(E1, P1), (P1,)],
        [claim(E1, P1), (C1, E1), (P1,)],
        [(P1,), claim(E1, P1), (C1, E1)],
    ):
        world = after(*events)
        assert world.root(P1) != world.root(E1) == world.root(C1)


def test_a_claimed_customer_is_not_adopted_by_another() -> None:
    world = after(claim(C2, E1))
    lead = world.see(C1, E1)
    assert lead == world.owner[E1][0] != world.owner[C2][0]
    assert world.root(C1) != world.root(C2)


CLAIMED = (C1, C2, E1, E2, P1, P2, D1, K1)
SIGHTS = st.tuples(st.sampled_from(CLAIMED), st.booleans()).map(
    lambda each: replace(each[0], is_verified=each[1])
)
CLAIMED_LIVES = st.lists(
    st.one_of(st.none(), st.lists(SIGHTS, min_size=1, max_size=4)), min_size=1, max_size=14
)


@properties
@given(CLAIMED_LIVES)
def test_whatever_comes_claims_join_no_two_leads_of_people(life: list[list[Identity] | None]) -> None:
    world = World()
    for each in life:
        if each is None:
            if world.merged:
                world.undo()
            continue
        strong = any(one.is_verified and one.kind.is_strong for one in each)
        people = {root: world.held(root) for root in set(world.leads.values()) if world.held(root)}
        world.see(*each)
        check(world)
        if not strong:
            assert all(world.leads[root] == root for root in people if not _adopts(world, root, people))
            proven = {root for root, held in people.items() if any(one.is_verified for one in held)}
            assert all(world.held(root) == people[root] for root in proven)


def _adopts(world: World, root: int, people: dict[int, set[Identity]]) -> bool:
    """Whether a person's lead only joined an older anonymous one, which no person has."""
    return world.leads[root] not in people


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


STRANGERS, JUNK, REAL = 1000, 30, 200


@dataclass(frozen=True)
class Person:
    """Somebody whom the sources prove: a customer of the shop, with an address; a sender of WhatsApp."""

    number: int
    identities: tuple[Identity, ...]


def people() -> list[Person]:
    """200 real values of 100 people: one in three is proven by the shop, one by WhatsApp, one by both."""
    made = []
    for number in range(REAL // 2):
        customer = Identity("customer", f"acme/shop/{number}")
        email, phone = Identity("email", f"p{number}@x"), Identity("phone", f"4915100{number:06}")
        made.append(Person(number, ((customer, email), (phone,), (customer, email, phone))[number % 3]))
    return made


def values() -> list[Identity]:
    real = [Identity("email", f"p{number}@x", False) for number in range(REAL // 2)]
    real += [Identity("phone", f"4915100{number:06}", False) for number in range(REAL // 2)]
    junk = [Identity("email", f"junk{number}@x", False) for number in range(JUNK // 2)]
    return (
        real + junk * 8 + [Identity("phone", f"4917700{number:06}", False) for number in range(JUNK // 2)] * 8
    )


def typed(random: Random, pool: Sequence[Identity], stranger: int) -> list[Identity]:
    some = {each.channel: each for each in random.sample(pool, random.randint(1, 3))}
    cookies = [Identity("cookie", f"acme/site/{stranger % 400}", False)] if random.random() < 0.5 else []
    return [*some.values(), *cookies]


@pytest.mark.parametrize("seed", range(2))
def test_strangers_never_merge(seed: int) -> None:
    random, pool = Random(seed), values()
    events = [typed(random, pool, stranger) for stranger in range(STRANGERS)]
    for person in people():
        proof = list(person.identities)
        events += [proof, [*proof, Identity("cookie", f"acme/site/{person.number}", False)]]
        if len(proof) == 1:  # as a form with both of a person's own values
            events.append([Identity("email", f"p{person.number}@x", False), *proof])
    random.shuffle(events)
    world = World()
    for each in events:
        world.see(*each)
    roots = {person.number: {world.root(each) for each in person.identities} for person in people()}
    assert all(len(each) == 1 for each in roots.values()), "who is proven is one"
    assert len(set.union(*roots.values())) == len(people()), "and nobody else"
    for root in set(world.leads.values()):
        proven = {each for each in world.held(root) if each.is_verified}
        owners = {person.number for person in people() if proven & set(person.identities)}
        assert len(owners) <= 1
    # What many typed leads to nobody.
    shared = {each for each, (_, is_shared) in world.owner.items() if is_shared and each.kind.is_strong}
    assert shared
    assert not shared & world.proven


def test_precedence_is_the_table_s_order() -> None:
    kinds = [Identity(channel.name, "a/b/c") for channel in CHANNELS]
    assert in_order([*reversed(kinds), kinds[0]]) == tuple(kinds)
    assert STRONG == ("customer", "email", "whatsapp", "phone")


def test_customers_that_their_shop_has_joined_are_one_and_have_room_for_more() -> None:
    facts = IdentityFacts({C1: KnownIdentity(1, 1), C2: KnownIdentity(2, 2)}, {1: {C1}, 2: {C2}})
    apart = plan_identities([C1, C2], facts)
    assert (apart.merges, [each.reason for each in apart.refused]) == ((), [TOO_MANY])
    assert plan_identities([C1, C2], facts, replaces=True).merges == (Merge(2, 1, (1, 2)),)
    first = IdentityFacts({C1: KnownIdentity(1, 1)}, {1: {C1}})
    assert plan_identities([C1, C2], first, replaces=True).attach == (C2,)
    assert plan_identities([C1, C2], IdentityFacts(), replaces=True).attach == (C1, C2)
    parted = replace(facts, apart=[frozenset({1, 2})])
    assert plan_identities([C1, C2], parted, replaces=True).merges == (), "an operator knows better"
    joined = IdentityFacts({C1: KnownIdentity(1, 1), C2: KnownIdentity(2, 1)}, {1: {C1, C2}})
    address, third = Identity("email", "ann@example.com"), Identity("customer", f"{C1.scope}/third")
    assert plan_identities([C1, address], joined).attach == (address,)
    assert plan_identities([C1, third], joined).attach == ()
    assert plan_identities([C1, third], joined, replaces=True).attach == (third,)
    other = Identity("phone", "16505551234")
    known = {**joined.known, other: KnownIdentity(3, 3)}
    with_phone = IdentityFacts(known, {1: {C1, C2}, 3: {other}})
    assert plan_identities([C2, other], with_phone).merges == (Merge(3, 1, (2, 3)),)
