"""A fold that is taken up again at a checkpoint gives what folding all dates gives; and checkpoints stay few."""

from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from rules.days import DAY
from rules.engagement.ledger import EntryKind
from rules.engagement.streak import (
    Checkpoint,
    Cover,
    Streak,
    fold,
    is_consistent_streak,
    net_freezes,
    resumed_streak,
)
from tests.support.account_world import World
from tests.support.engagement_strategies import event
from tests.support.examples import examples

BASE = date(2023, 11, 20)
days = st.integers(0, 1200).map(lambda number: BASE + timedelta(days=number))
# Runs of dates, so that streaks, misses and ends of months meet.
runs = st.tuples(days, st.integers(1, 70)).map(lambda run: {run[0] + DAY * n for n in range(run[1])})
histories = st.lists(runs, min_size=1, max_size=6).map(lambda found: set[date]().union(*found))
covers = st.builds(
    Cover,
    st.lists(st.tuples(days, st.sampled_from([1, 1, 2, -1])), max_size=5).map(net_freezes),
    st.lists(st.tuples(days, st.integers(0, 9)), max_size=3).map(
        lambda found: tuple((first, first + DAY * n) for first, n in found)
    ),
    st.frozensets(days, max_size=3),
)


def state(streak: Streak | None) -> tuple[Streak | None, tuple[Checkpoint, ...] | None]:
    return streak, streak.checkpoints if streak else None


@settings(max_examples=examples(150))
@given(histories, covers)
def test_checkpoints_are_of_the_newest_two_months_and_of_the_years_that_are_over(
    active: set[date], cover: Cover
) -> None:
    dates = sorted(active)
    ends = [one for one, other in pairwise(dates) if (one.year, one.month) != (other.year, other.month)]
    kept = [end for place, end in enumerate(ends) if end in ends[-2:] or end.year != ends[place + 1].year]
    streak = fold(dates, cover)
    assert streak and streak.checkpoints is not None
    assert is_consistent_streak(streak, cover)
    assert [checkpoint.last for checkpoint in streak.checkpoints] == kept
    for checkpoint in streak.checkpoints:
        upto = fold((day for day in dates if day <= checkpoint.last), cover)
        assert upto and upto.checkpoint == checkpoint


@settings(max_examples=examples(300))
@given(histories, histories, covers, covers, days)
def test_later_dates_and_later_cover_change_nothing_before_a_checkpoint(
    active: set[date], late: set[date], before: Cover, after: Cover, since: date
) -> None:
    now = Cover(
        net_freezes(
            [*(each for each in before.freezes if each[0] < since)]
            + [each for each in after.freezes if each[0] >= since]
        ),
        (
            *(each for each in before.pauses if each[0] < since),
            *(each for each in after.pauses if each[0] >= since),
        ),
        frozenset(
            {day for day in before.skipped if day < since} | {day for day in after.skipped if day >= since}
        ),
    )
    late = {day for day in late if day >= since}
    start = resumed_streak(fold(active, before), before, since)
    read = [day for day in active if start is None or day > start.last]
    assert start is None or start.last < since
    assert state(fold([*read, *late], now, start)) == state(fold(active | late, now))


def test_a_late_event_needs_three_months_and_a_question_about_the_past_a_year() -> None:
    dates = [BASE + timedelta(days=number) for number in range(10_000)]
    streak = fold(dates, Cover())
    assert streak and streak.checkpoints
    assert len(streak.checkpoints) == 30
    for late in range(6):
        start = resumed_streak(streak, Cover(), streak.last - DAY * late)
        assert start and (streak.last - start.last).days <= 31 + 31 + 6
    for asked in dates[400::97]:
        start = resumed_streak(streak, Cover(), asked + DAY)
        assert start and 0 <= (asked - start.last).days <= 366


def test_a_checkpoint_that_cannot_be_is_seen() -> None:
    streak = fold([BASE + DAY * number for number in range(80) if number != 5], Cover(((BASE, 1),)))
    assert streak and streak.checkpoints and is_consistent_streak(streak, Cover())
    one, other = streak.checkpoints[-2:]
    assert one.freezes_used == 1
    for wrong in (
        replace(one, freezes_used=0),
        replace(one, longest=one.longest + 99),
        replace(one, active_days=other.active_days),
        replace(one, last=other.last),
        replace(one, length=0),
    ):
        assert not is_consistent_streak(replace(streak, checkpoints=(wrong, other)), Cover())


@settings(max_examples=examples(150))
@given(st.lists(st.tuples(days, st.booleans()), min_size=1, max_size=12, unique_by=lambda each: each[0]))
def test_reversed_dates_leave_the_checkpoints_of_those_that_stay(dates: list[tuple[date, bool]]) -> None:
    """A checkpoint that a later month has thinned out is one of the newest two again when that month goes."""
    world = World()
    events = {day: event(str(day), day) for day, _ in dates}
    for each in events.values():
        world.apply([each])
    for day, is_reversed in dates:
        if is_reversed:
            [entry] = [each for each in world.entries if each.draft.event_id == events[day].event_id]
            undone = replace(
                entry.draft, kind=EntryKind.CLAWBACK, points=-entry.draft.points, reverses=entry.created_at
            )
            world.apply([events[day]], [undone])
    world.check()
    assert state(world.profile.streak) == state(fold([day for day, is_gone in dates if not is_gone], Cover()))
