"""What one event's identities prove, as properties that hold after any earlier events."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from rules.leads.identity import Identity
from tests.support.identities import C1, C2, C3, D1, D2, E1, E2, K1, P1, P2, SITE, check, properties
from tests.support.identity_model import World

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
