"""Rules 2 and 3 by example: what a streak is after given dates, freezes and pauses."""

from datetime import date

import pytest

from rules.engagement.account_state import DateReason, Profile, explain_date
from rules.engagement.streak import (
    Cover,
    Streak,
    StreakStatus,
    advance,
    fold,
    shown_streak,
)

NONE = Cover()


def run(*days: int, month: int = 6) -> list[date]:
    return [date(2026, month, day) for day in days]


def grants(*days: int, month: int = 6) -> Cover:
    return Cover(freezes=tuple((date(2026, month, day), 1) for day in days))


def test_consecutive_dates_count_and_a_missed_one_ends_the_run() -> None:
    assert fold(run(1, 2, 3, 5, 6), NONE) == Streak(date(2026, 6, 6), 2, 3, 5)


def test_a_date_that_the_zone_skipped_is_no_miss() -> None:
    days = [date(2011, 12, 29), date(2011, 12, 31)]
    cover = Cover(skipped=frozenset({date(2011, 12, 30)}))
    assert fold(days, cover) == Streak(date(2011, 12, 31), 2, 2, 2)
    assert fold(days, NONE) == Streak(date(2011, 12, 31), 1, 1, 2)


def test_two_freezes_and_three_missed_days_are_used_in_date_order_then_the_run_ends() -> None:
    two, three = run(1, 2, 5), run(1, 2, 6)
    assert fold(two, grants(1, 1)) == Streak(date(2026, 6, 5), 3, 3, 3, tuple(run(3, 4)))
    assert fold(three, grants(1, 1)) == Streak(date(2026, 6, 6), 1, 2, 3, tuple(run(3, 4)))


def test_a_freeze_covers_nothing_before_the_date_it_was_granted_on() -> None:
    assert fold(run(1, 3), grants(3)) == Streak(date(2026, 6, 3), 1, 1, 2)
    assert fold(run(1, 3), grants(2)) == Streak(date(2026, 6, 3), 2, 2, 2, tuple(run(2)))


def test_a_revoked_freeze_that_is_spent_is_a_debt_that_the_next_grant_pays() -> None:
    owed = Cover(freezes=((date(2026, 6, 1), 1), (date(2026, 6, 4), -1)))
    streak = fold(run(1, 3), owed)
    assert streak == Streak(date(2026, 6, 3), 2, 2, 2, tuple(run(2)))
    assert shown_streak(streak, owed, date(2026, 6, 4)).freezes_available == -1
    paid = Cover(freezes=(*owed.freezes, (date(2026, 6, 5), 1)))
    assert shown_streak(streak, paid, date(2026, 6, 5)).freezes_available == 0
    assert fold(run(1, 3, 4, 6, 8), paid) == Streak(date(2026, 6, 8), 1, 3, 5, tuple(run(2)))


def test_paused_dates_are_no_misses_and_cost_no_freeze() -> None:
    cover = Cover(freezes=((date(2026, 6, 1), 1),), pauses=((date(2026, 6, 2), date(2026, 6, 5)),))
    assert fold(run(1, 6), cover) == Streak(date(2026, 6, 6), 2, 2, 2)
    assert fold(run(1, 7), cover) == Streak(date(2026, 6, 7), 2, 2, 2, tuple(run(6)))


def test_the_streak_shows_0_at_once_after_a_missed_day() -> None:
    streak = fold(run(1, 2, 3), NONE)
    shown = [shown_streak(streak, NONE, date(2026, 6, day)) for day in (3, 4, 5)]
    assert [each.current for each in shown] == [3, 3, 0]
    assert [each.status for each in shown] == [StreakStatus.ACTIVE, StreakStatus.AT_RISK, StreakStatus.BROKEN]
    assert [each.longest for each in shown] == [3, 3, 3]


def test_on_a_paused_date_the_streak_is_not_at_risk() -> None:
    cover = Cover(pauses=((date(2026, 6, 2), date(2026, 6, 2)),))
    assert shown_streak(fold(run(1), cover), cover, date(2026, 6, 2)).status is StreakStatus.ACTIVE


def test_without_activity_there_is_no_streak_but_there_may_be_freezes() -> None:
    shown = shown_streak(None, grants(1, 2), date(2026, 6, 1))
    assert (shown.current, shown.status, shown.last, shown.freezes_available) == (
        0,
        StreakStatus.NONE,
        None,
        1,
    )


def test_what_is_asked_before_the_last_active_date_needs_the_history() -> None:
    streak = fold(run(1, 2), NONE)
    assert streak
    with pytest.raises(ValueError, match="fold the history"):
        shown_streak(streak, NONE, date(2026, 6, 1))
    with pytest.raises(ValueError, match="fold the whole history"):
        advance(streak, date(2026, 6, 1), NONE)


TODAY = date(2026, 6, 10)


@pytest.mark.parametrize(
    ("asked", "reason", "length"),
    [
        (date(2026, 5, 31), DateReason.BEFORE, 0),
        (date(2026, 6, 1), DateReason.COUNTED, 1),
        (date(2026, 6, 2), DateReason.FREEZE, 1),
        (date(2026, 6, 3), DateReason.COUNTED, 2),
        (date(2026, 6, 4), DateReason.PAUSE, 2),
        (date(2026, 6, 5), DateReason.SKIPPED, 2),
        (date(2026, 6, 6), DateReason.MISSED, 0),
        (date(2026, 6, 7), DateReason.MISSED, 0),
        (date(2026, 6, 8), DateReason.COUNTED, 1),
        (date(2026, 6, 9), DateReason.MISSED, 0),
        (TODAY, DateReason.OPEN, 0),
        (date(2026, 6, 20), DateReason.OPEN, 0),
    ],
)
def test_each_date_has_its_reason(asked: date, reason: DateReason, length: int) -> None:
    cover = Cover(
        freezes=((date(2026, 6, 1), 1),),
        pauses=((date(2026, 6, 4), date(2026, 6, 4)),),
        skipped=frozenset({date(2026, 6, 5)}),
    )
    upto = fold((day for day in run(1, 3, 8) if day <= asked), cover)
    assert explain_date(upto, Profile("ann", cover=cover), asked, TODAY) == (reason, length)
