"""What a reconciliation decides: a writer at work is not wrong, and no broken journal is repaired on."""

from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rules.engagement.ledger import Draft, Entry
from rules.engagement.reconciliation import (
    LOOKS_MIN,
    WRONG_STATE,
    Doubt,
    Look,
    ProjectionState,
    Step,
    days_of,
    is_only_behind,
    next_step,
)
from tests.support.drafts import SMALL, drafts, journal


def places(data: st.DataObject, entries: Sequence[Entry]) -> tuple[str, dict[str, ProjectionState]]:
    """Up to where a writer that may have died has come: days first, each by itself, then the profile."""
    cut = data.draw(st.integers(0, len(entries)))
    place = entries[cut - 1].created_at if cut else ""
    days = {}
    for when in days_of(entries):
        mine = [each.created_at for each in entries if each.draft.activity_date == when]
        least = sum(each <= place for each in mine)
        counted = data.draw(st.integers(least, len(mine)))
        if counted:
            days[when] = ProjectionState(mine[counted - 1], is_right=True)
    return place, days


@SMALL
@given(drafts, st.data())
def test_whatever_a_writer_has_left_undone_is_behind_and_not_wrong(
    made: list[Draft], data: st.DataObject
) -> None:
    entries = journal(made)
    place, days = places(data, entries)
    profile = ProjectionState(place, is_right=True)
    assert is_only_behind(entries, profile, days, has_had_profile=True)
    assert not is_only_behind(entries, WRONG_STATE, days, has_had_profile=True)
    if not place:
        assert is_only_behind(entries, None, days, has_had_profile=False)
        assert not is_only_behind(entries, None, days, has_had_profile=True), "it was there, and is gone"
    for when in days:
        assert not is_only_behind(entries, profile, {**days, when: WRONG_STATE}, has_had_profile=True)


@SMALL
@given(drafts, st.data())
def test_a_day_that_counts_less_than_the_profile_is_wrong(made: list[Draft], data: st.DataObject) -> None:
    entries = journal(made)
    counted = days_of(entries)
    assume(counted)
    days = {when: ProjectionState(day.watermark, is_right=True) for when, day in counted.items()}
    profile = ProjectionState(entries[-1].created_at, is_right=True)
    when = data.draw(st.sampled_from(sorted(days)))
    assert is_only_behind(entries, profile, days, has_had_profile=True)
    lost = {name: each for name, each in days.items() if name != when}
    assert not is_only_behind(entries, profile, lost, has_had_profile=True)
    older = {**days, when: ProjectionState(entries[0].created_at, is_right=True)}
    assert not is_only_behind(entries, profile, older, has_had_profile=True)


@pytest.mark.parametrize("differs", [False, True])
@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("doubt", Doubt)
@pytest.mark.parametrize("times", range(1, 4))
@pytest.mark.parametrize("may_repair", [False, True])
def test_a_step_follows_from_what_was_seen(
    differs: bool, behind: bool, doubt: Doubt, times: int, may_repair: bool
) -> None:
    step = next_step(Look(differs, behind, doubt), times, may_repair)
    sound = doubt is Doubt.NONE
    assert (step is Step.DONE) == (sound and not differs)
    assert (step is Step.SETTLE) == (sound and differs and behind)
    if step is Step.REPAIR:
        assert may_repair and sound and differs and times >= LOOKS_MIN
    if step is Step.LOOK_AGAIN:
        assert times < LOOKS_MIN
    if step is Step.TELL:
        assert times >= LOOKS_MIN and (not sound or not may_repair)
