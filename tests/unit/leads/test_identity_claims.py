"""What somebody claims leads to a lead if nothing contradicts it, and proves nothing."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rules.leads.identity import PROVEN_ELSEWHERE, Identity
from rules.leads.identity_plan import LEADS_PER_CLAIM
from tests.support.identities import C1, C2, D1, E1, E2, K1, P1, P2, after, check, properties
from tests.support.identity_model import World


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


def test_claims_of_an_unproven_lead_come_together_there() -> None:
    world = after(claim(E1))
    assert world.see(*claim(E1, P1), D1) == world.owner[E1][0] == world.owner[P1][0]
    assert world.root(D1) == world.root(E1)
    assert not world.proven


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


def test_what_is_proven_leads_there_before_what_is_claimed() -> None:
    world = after(claim(E1), (P1,))
    assert world.see(*claim(E1, P1)) == world.owner[P1][0]


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


def test_beside_what_is_proven_claims_are_left_aside() -> None:
    world = after((E2,))
    lead = world.see(P1, *claim(E1, E2))
    assert lead == world.owner[P1][0]
    assert E1 not in world.owner
    assert world.root(E2) != world.root(P1)


ALL = (C1, C2, E1, E2, P1, P2, D1, K1)
SIGHTS = st.tuples(st.sampled_from(ALL), st.booleans()).map(
    lambda each: replace(each[0], is_verified=each[1])
)
LIVES = st.lists(st.one_of(st.none(), st.lists(SIGHTS, min_size=1, max_size=4)), min_size=1, max_size=14)


@properties
@given(LIVES)
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
