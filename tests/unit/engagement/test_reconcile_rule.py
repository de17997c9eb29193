"""What a reconciliation decides: a writer at work is not wrong, and no broken journal is repaired on."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rules.engagement.ledger import Draft, Entry, EntryKind, append
from rules.engagement.rebuild import days_of
from rules.engagement.reconcile import (
    LAKE_LAG,
    LOOKS_MIN,
    WRONG,
    Counted,
    LakeFigures,
    Look,
    Step,
    disagreements,
    has_lapsed,
    is_behind,
    is_lost,
    next_step,
)
from tests.support.examples import examples

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
OLD, YOUNG = NOW - 2 * LAKE_LAG, NOW - LAKE_LAG / 2
SMALL = settings(max_examples=examples(80))
earned = st.builds(
    lambda number, day, points: Draft(
        EntryKind.EARN, points, f"event-{number}", "CHECK_IN", date(2026, 3, day).isoformat()
    ),
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(0, 9),
)
drafts = st.lists(earned | st.just(Draft(EntryKind.ADJUST, 3)), min_size=1, max_size=8)


def journal(made: Sequence[Draft], at: datetime = OLD) -> list[Entry]:
    return append("ann", None, made, at)


def figures(entries: Sequence[Entry]) -> LakeFigures:
    """What a whole copy of a journal comes to."""
    if not entries:
        return LakeFigures()
    points = [each.draft.points for each in entries]
    gained = [each.draft.points for each in entries if each.draft.kind is EntryKind.EARN]
    last = entries[-1]
    return LakeFigures(last.created_at, len(entries), sum(points), sum(gained), last.seq, last.balance)


def places(data: st.DataObject, entries: Sequence[Entry]) -> tuple[str, dict[str, Counted]]:
    """Up to where a writer that may have died has come: days first, each by itself, then the profile."""
    cut = data.draw(st.integers(0, len(entries)))
    place = entries[cut - 1].created_at if cut else ""
    days = {}
    for when in days_of(entries):
        mine = [each.created_at for each in entries if each.draft.activity_date == when]
        least = sum(each <= place for each in mine)
        counted = data.draw(st.integers(least, len(mine)))
        if counted:
            days[when] = Counted(mine[counted - 1], is_right=True)
    return place, days


@SMALL
@given(drafts, st.data())
def test_whatever_a_writer_has_left_undone_is_behind_and_not_wrong(
    made: list[Draft], data: st.DataObject
) -> None:
    entries = journal(made)
    place, days = places(data, entries)
    profile = Counted(place, is_right=True)
    assert is_behind(entries, profile, days, has_had_profile=True)
    assert not is_behind(entries, WRONG, days, has_had_profile=True)
    if not place:
        assert is_behind(entries, None, days, has_had_profile=False)
        assert not is_behind(entries, None, days, has_had_profile=True), "it was there, and is gone"
    for when in days:
        assert not is_behind(entries, profile, {**days, when: WRONG}, has_had_profile=True)


@SMALL
@given(drafts, st.data())
def test_a_day_that_counts_less_than_the_profile_is_wrong(made: list[Draft], data: st.DataObject) -> None:
    entries = journal(made)
    counted = days_of(entries)
    assume(counted)
    days = {when: Counted(day.ledger_head, is_right=True) for when, day in counted.items()}
    profile = Counted(entries[-1].created_at, is_right=True)
    when = data.draw(st.sampled_from(sorted(days)))
    assert is_behind(entries, profile, days, has_had_profile=True)
    lost = {name: each for name, each in days.items() if name != when}
    assert not is_behind(entries, profile, lost, has_had_profile=True)
    older = {**days, when: Counted(entries[0].created_at, is_right=True)}
    assert not is_behind(entries, profile, older, has_had_profile=True)


@SMALL
@given(drafts, drafts, st.data())
def test_a_copy_that_is_on_its_way_agrees(old: list[Draft], young: list[Draft], data: st.DataObject) -> None:
    """All entries older than the lag are in the lake, and of the younger ones as many as have arrived."""
    settled = journal(old)
    entries = settled + append("ann", settled[-1].head, young, YOUNG)
    arrived = data.draw(st.integers(len(settled), len(entries)))
    lake = figures(entries[:arrived])
    assert disagreements(entries, lake, NOW) == []
    assert not is_lost(entries, lake)
    whole = figures(entries)
    cut = data.draw(st.integers(0, len(entries) - 1))
    assert is_lost(entries[:cut] + entries[cut + 1 :], whole)
    held = len(entries) - 1
    told = [f"the lake has {len(entries) - held} entries that the table lacks"]
    assert disagreements(entries[:cut] + entries[cut + 1 :], whole, NOW) == told


@SMALL
@given(drafts, st.data())
def test_entries_that_never_came_into_the_lake_are_told(made: list[Draft], data: st.DataObject) -> None:
    entries = journal(made)
    kept = data.draw(st.integers(0, len(entries) - 1))
    # The opening entry is written before any event, at a fixed place: the lake may not have it yet.
    missing = sum(each.draft.kind is not EntryKind.OPEN for each in entries[kept:])
    assert disagreements(entries, figures(entries[:kept]), NOW) == [f"the lake lacks {missing} entries"]
    assert disagreements(entries, figures(entries[:kept]), OLD + timedelta(seconds=1)) == []
    middle = figures(entries)
    gap = replace(middle, entries=middle.entries - 1)
    assert disagreements(entries, gap, NOW) == ["the lake lacks 1 entries"]


@SMALL
@given(drafts, st.sampled_from(("points", "earned", "seq", "balance")))
def test_other_figures_are_told(made: list[Draft], name: str) -> None:
    entries = journal(made)
    lake = figures(entries)
    other: dict[str, Any] = {name: getattr(lake, name) + 1}
    (told,) = disagreements(entries, replace(lake, **other), NOW)
    assert ("earned" in told) == (name in ("points", "earned"))
    assert (lake.head in told) == (name in ("seq", "balance"))


def test_an_account_that_neither_knows_agrees() -> None:
    assert disagreements([], LakeFigures(), NOW) == []
    assert not is_lost([], LakeFigures())
    assert not is_lost(journal([Draft(EntryKind.ADJUST, 1)]), LakeFigures())
    assert not is_lost([], LakeFigures(entries=3)), "without a newest entry the lake tells of nothing"


def test_a_young_entry_may_arrive_after_a_younger_one() -> None:
    entries = journal([Draft(EntryKind.ADJUST, 1), Draft(EntryKind.ADJUST, 2)], YOUNG)
    lake = replace(figures(entries), entries=2)
    assert disagreements(entries, lake, NOW) == []
    assert disagreements(entries, lake, NOW + LAKE_LAG) == ["the lake lacks 1 entries"]


@pytest.mark.parametrize("look", [Look(*flags) for flags in product((False, True), repeat=4)], ids=str)
@pytest.mark.parametrize("times", range(1, 4))
@pytest.mark.parametrize("may_repair", [False, True])
def test_a_step_follows_from_what_was_seen(look: Look, times: int, may_repair: bool) -> None:
    step = next_step(look, times, may_repair)
    sound = not look.has_faults
    assert (step is Step.DONE) == (sound and not look.differs)
    assert (step is Step.SETTLE) == (sound and look.differs and look.is_behind)
    if step is Step.REPAIR:
        assert may_repair and sound and look.differs and not look.is_lost and times >= LOOKS_MIN
    if step is Step.LOOK_AGAIN:
        assert times < LOOKS_MIN
    if step is Step.TELL:
        assert times >= LOOKS_MIN and (look.has_faults or look.is_lost or not may_repair)


@given(st.integers(-(10**6), 10**6))
def test_a_streak_has_lapsed_from_its_second_on(seconds: int) -> None:
    assert has_lapsed(int(NOW.timestamp()) + seconds, NOW) == (seconds <= 0)
    assert not has_lapsed(None, NOW)
