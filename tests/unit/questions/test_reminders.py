"""A reminder comes once a local date, in the evening, whatever the clocks do; to whom a streak ends tonight."""

from datetime import date, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.days import AT_MIDNIGHT, DAY, is_skipped, local_date, unstamp, zone
from rules.engagement.streak import Cover, Streak
from rules.questions.notifications import (
    REMINDER_HOUR,
    QuietHours,
    is_quiet,
    is_timely_reminder,
    next_reminder,
    quiet_hours,
    reminder_at,
    streak_at_risk,
)
from tests.support.engagement_strategies import dates, instants, zones
from tests.support.examples import examples
from tests.unit.questions.test_notifications import quiets

SMALL = settings(max_examples=examples(40))
EVENING = time(REMINDER_HOUR)


@SMALL
@given(dates, zones, st.none() | quiets)
def test_it_is_due_on_its_date_in_the_evening_and_not_in_quiet_hours(
    day: date, name: str, quiet: QuietHours | None
) -> None:
    due = reminder_at(day, name, quiet)
    if due is None:
        evening_is_quiet = quiet is not None and quiet.contains(EVENING)
        assert is_skipped(day, name) or evening_is_quiet
        return
    local = due.astimezone(zone(name))
    assert local.date() == day
    assert local.time() >= EVENING
    assert not is_quiet(quiet, name, due)
    assert is_timely_reminder(due, due, name, quiet, AT_MIDNIGHT)
    assert not is_timely_reminder(due, due - timedelta(seconds=1), name, quiet, AT_MIDNIGHT)
    assert not is_timely_reminder(due, due + DAY, name, quiet, AT_MIDNIGHT)


@SMALL
@given(instants, zones, st.none() | quiets)
def test_each_date_has_one_and_none_is_left_out(start: datetime, name: str, quiet: QuietHours | None) -> None:
    days: list[date] = []
    at = start
    for _ in range(5):
        due = next_reminder(at, name, quiet)
        if due is None:
            assert quiet is not None and quiet.contains(EVENING) and quiet.contains(time(23, 59))
            return
        assert due > at
        days.append(local_date(due, name, AT_MIDNIGHT))
        at = due
    assert len(set(days)) == 5
    between = [days[0] + timedelta(days=each) for each in range((days[-1] - days[0]).days + 1)]
    assert days == [day for day in between if reminder_at(day, name, quiet)]
    assert days[0] <= local_date(start, name, AT_MIDNIGHT) + 2 * DAY


@pytest.mark.parametrize(
    ("day", "name", "quiet", "due"),
    [
        (date(2026, 3, 10), "UTC", None, "2026-03-10T20:00:00Z"),
        (date(2026, 3, 29), "Europe/Berlin", None, "2026-03-29T18:00:00Z"),
        (date(2026, 3, 10), "UTC", ("18:00", "21:15"), "2026-03-10T21:15:00Z"),
        (date(2026, 3, 10), "UTC", ("20:01", "07:00"), "2026-03-10T20:00:00Z"),
        (date(2026, 3, 10), "UTC", ("20:00", "07:00"), None),
        (date(2026, 3, 10), "UTC", ("19:00", "00:00"), None),
        (date(2011, 12, 29), "Pacific/Apia", None, "2011-12-30T06:00:00Z"),
        (date(2011, 12, 30), "Pacific/Apia", None, None),
        (date(2011, 12, 31), "Pacific/Apia", None, "2011-12-31T06:00:00Z"),
    ],
)
def test_known_evenings(day: date, name: str, quiet: Any, due: str | None) -> None:
    hours = quiet_hours(*quiet) if quiet else None
    assert reminder_at(day, name, hours) == (unstamp(due) if due else None)


@pytest.mark.parametrize(
    ("day", "quiet", "due"),
    [
        # On Easter Island 20:00 came twice then; 21:30 does these days, and in spring there is no 22:30.
        (date(1980, 3, 8), None, "1980-03-09T02:00:00Z"),
        (date(2026, 4, 4), ("19:00", "21:30"), "2026-04-05T02:30:00Z"),
        (date(2026, 9, 5), ("19:00", "22:30"), "2026-09-06T04:30:00Z"),
    ],
)
def test_an_evening_hour_that_comes_twice_or_not_at_all(day: date, quiet: Any, due: str) -> None:
    name, hours = "Pacific/Easter", quiet_hours(*quiet) if quiet else None
    at = unstamp(due)
    assert reminder_at(day, name, hours) == at
    following = next_reminder(at, name, hours)
    assert following is not None and local_date(following, name, AT_MIDNIGHT) == day + DAY, "once a date"
    assert not is_quiet(hours, name, at)


@pytest.mark.parametrize(
    ("last", "cover", "length"),
    [
        (date(2026, 3, 10), Cover(), 0),  # done
        (date(2026, 3, 9), Cover(), 4),
        (date(2026, 3, 8), Cover(), 0),  # lapsed
        (date(2026, 3, 8), Cover(freezes=((date(2026, 3, 1), 1),)), 4),  # covered so far
        (date(2026, 3, 9), Cover(pauses=((date(2026, 3, 10), date(2026, 3, 11)),)), 0),  # paused
        (date(2026, 3, 11), Cover(), 0),  # done, in a zone further east
    ],
)
def test_who_is_at_risk(last: date, cover: Cover, length: int) -> None:
    assert streak_at_risk(Streak(last, 4, 4, 4), cover, "UTC", unstamp("2026-03-10T20:00:00Z")) == length


def test_nobody_without_a_streak_is_at_risk() -> None:
    assert streak_at_risk(None, Cover(), "UTC", unstamp("2026-03-10T20:00:00Z")) == 0
