"""Rule 23: at most one region writes, whatever is done to the register in whatever order."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.regions.register import (
    LEASE_SECONDS,
    QUIET_SECONDS,
    Clocks,
    NotPossible,
    Phase,
    Register,
    RegisterReading,
    close_following,
    followed_epoch,
    join_region,
    mark_filled,
    may_follow,
    may_write,
    open_writing,
    promote_region,
    sent_epoch,
)

REGIONS = ("west", "east")
ACTS: dict[str, Callable[[Register, str], Register]] = {
    "promote": promote_region,
    "join": join_region,
    "fill": mark_filled,
    "close": lambda register, _: close_following(register),
    "open": lambda register, _: open_writing(register),
}
steps = st.lists(st.tuples(st.sampled_from(sorted(ACTS)), st.sampled_from(REGIONS)), max_size=30)


def history(acts: list[tuple[str, str]]) -> list[Register]:
    """The registers that some acts lead to; what is refused changes nothing."""
    found = [Register(1, "west")]
    for name, region in acts:
        try:
            found.append(ACTS[name](found[-1], region))
        except NotPossible:
            continue
    return found


@given(steps)
def test_whatever_is_done_at_most_one_region_writes_and_the_other_follows_it(
    acts: list[tuple[str, str]],
) -> None:
    registers = history(acts)
    for register in registers:
        writers = {each for each in REGIONS if may_write(register, each)}
        followers = {each for each in REGIONS if may_follow(register, each)}
        assert max(len(writers), len(followers)) <= 1
        assert not writers & followers
        assert register.phase is not Phase.CLOSED or not writers | followers
        for region in REGIONS:  # what one region sends is what the other follows
            epoch = sent_epoch(register, region)
            assert epoch is None or followers == {*REGIONS} - {region}
            assert epoch is None or followed_epoch(register, *followers) == epoch
    writing = [next((r for r in REGIONS if may_write(each, r)), "") for each in registers]
    for name, following in pairwise(writing):  # between two writers there is a time of none
        assert not (name and following) or name == following
    epochs = [each.epoch for each in registers]
    assert epochs == sorted(epochs)
    for one, other in pairwise(registers):
        if one.writer != other.writer or (one.standby != other.standby and other.standby):
            assert other.epoch == one.epoch + 1
        if one.writer != other.writer:  # only a region that has followed to the end is promoted
            assert (one.standby, one.is_filled) == (other.writer, True)


def test_a_promotion_from_end_to_end() -> None:
    register = mark_filled(join_region(Register(1, "west"), "east"), "east")
    assert register == Register(2, "west", standby="east", is_filled=True)
    draining = promote_region(register, "east")
    assert draining == Register(3, "east", Phase.DRAINING, former="west")
    assert promote_region(draining, "east") == draining
    assert open_writing(close_following(draining)) == Register(3, "east")
    for region, other in (("east", join_region(Register(1, "west"), "east")), ("north", register)):
        with pytest.raises(NotPossible):
            promote_region(other, region)


@given(
    began=st.floats(0, 1e6),
    steady=st.floats(0, 100),
    wall=st.floats(-100, 100),
    rate=st.floats(0.9, 1.1),
)
def test_nobody_goes_by_a_reading_once_a_promotion_has_waited(
    began: float, steady: float, wall: float, rate: float
) -> None:
    """steady, wall: what a process's clocks say has passed, of which one may stand still or be set."""
    reading = RegisterReading(Register(1, "west"), Clocks(began, began))
    now = Clocks(began + steady, began + wall)
    passed = max(steady, wall) / rate
    if reading.holds(now):
        assert passed <= LEASE_SECONDS / 0.9
        assert passed < QUIET_SECONDS
