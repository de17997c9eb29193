"""A day that starts later, as a client estimates it: the date of every instant, and the streak over a journey's nights."""

import random
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streakline_client.profile import estimated
from streakline_client.queue.clock import date_at

from rules.book.daily import DailyRules
from rules.days import is_skipped, local_date, zone
from rules.engagement.rest_days import RestDays
from rules.engagement.streak import Cover, fold, shown_streak
from tests.support.effort import effort
from tests.support.engagement_strategies import instants, zones
from tests.support.examples import examples

EPOCH, DAY, MINUTE = datetime(1970, 1, 1, tzinfo=UTC), timedelta(days=1), timedelta(minutes=1)
HOMES = ("Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "America/New_York", "-07:00")


def estimated_date(at: datetime, name: str, start: str) -> date:
    """The date by a device: it knows its offset at that moment, and no zone's rules."""
    offset = at.astimezone(zone(name)).utcoffset()
    assert offset is not None
    return date_at((at - EPOCH) // timedelta(milliseconds=1), offset // MINUTE, start)


@settings(max_examples=examples(400))
@given(instants, zones, st.sampled_from(["00:00", "01:45", "03:00", "06:00"]))
def test_a_device_and_the_service_find_the_same_date(at: datetime, name: str, start: str) -> None:
    found = local_date(at, name, ((date.min, time.fromisoformat(start)),))
    if not is_skipped(found + DAY, name):  # a device does not know which dates its zone left out
        assert estimated_date(at, name, start) == found


@pytest.mark.parametrize("seed", range(effort(40, soak=2000)))
def test_an_estimate_over_nights_is_what_the_service_will_say(seed: int) -> None:
    chance = random.Random(seed)
    name, start = chance.choice(HOMES), chance.choice(("00:00", "03:00", "05:30"))
    starts = ((date.min, time.fromisoformat(start)),)
    cover = Cover(rest=RestDays(((date.min, DailyRules(day_starts_at=starts[0][1])),)))
    first = datetime(2026, chance.choice((3, 4, 10, 11)), 1, tzinfo=UTC)
    moments = sorted(first + chance.randrange(20 * 24 * 60) * MINUTE for _ in range(chance.randrange(2, 25)))
    known, waiting = moments[: len(moments) // 2], moments[len(moments) // 2 :]
    asked_at = known[-1]
    streak = fold([local_date(at, name, starts) for at in known], cover)
    assert streak
    as_of = local_date(asked_at, name, starts)
    shown = shown_streak(streak, cover, max(as_of, streak.last))
    profile: Any = {
        "user_id": "ann",
        "current_streak": shown.current,
        "longest_streak": shown.longest,
        "streak_status": shown.status.value,
        "last_activity_date": str(shown.last),
        "timezone": name,
        "total_bestie_points": 0,
        "balance": 0,
        "freezes_available": 0,
        "active_days": shown.active_days,
        "as_of": str(max(as_of, streak.last)),
        "day_starts_at": start,
    }
    now = waiting[-1] + chance.randrange(3 * 24 * 60) * MINUTE
    dates = [estimated_date(at, name, start) for at in waiting]
    told = estimated(profile, dates, estimated_date(now, name, start))
    after = fold([local_date(at, name, starts) for at in moments], cover)
    assert after
    expected = shown_streak(after, cover, max(local_date(now, name, starts), after.last))
    assert (told["current_streak"], told["longest_streak"]) == (expected.current, expected.longest)
    assert (told["streak_status"], told["active_days"]) == (expected.status.value, expected.active_days)
