"""A reminder comes once a local date, at its hour, whatever the clocks do; to whom a streak ends tonight."""

from datetime import date, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.book.daily import DailyRules, Weekday
from rules.days import AT_MIDNIGHT, DAY, is_skipped, local_date, unstamp, zone
from rules.engagement.rest_days import RestDays
from rules.engagement.streak import Cover, Streak
from rules.questions.notifications import ReminderClock, is_quiet, quiet_hours, streak_at_risk
from tests.support.engagement_strategies import dates, instants, zones
from tests.support.examples import examples
from tests.unit.questions.test_notifications import quiets

SMALL = settings(max_examples=examples(40))
EVENING = time(20)
TUESDAYS = DailyRules(frozenset({Weekday.TUESDAY}))
LONG_AGO = unstamp("1990-01-01T00:00:00Z")
hours = st.builds(time, st.integers(0, 23), st.integers(0, 30))
# A phone may be in another zone than its owner's dates.
reminder_clocks = st.builds(ReminderClock, hours, zones, st.none() | quiets, zones)


@SMALL
@given(dates, reminder_clocks)
def test_it_is_due_on_its_date_at_its_hour_and_not_in_quiet_hours(day: date, clock: ReminderClock) -> None:
    due, name = clock.due_on(day), clock.zone_name
    assert clock.at is not None
    if due is None:
        assert is_skipped(day, name) or clock.quiet is not None
        return
    local = due.astimezone(zone(name))
    assert local.date() == day
    assert local.time() >= clock.at or local.fold
    assert not is_quiet(clock.quiet, clock.quiet_zone, due)
    early = datetime.combine(day, clock.at, zone(name)).astimezone(due.tzinfo)
    assert early == due or is_quiet(clock.quiet, clock.quiet_zone, early), "it waits for nothing else"
    for seconds in (1, 600):
        before = due - timedelta(seconds=seconds)
        assert not clock.is_due(LONG_AGO, before) or local_date(before, name, AT_MIDNIGHT) != day
    assert clock.is_due(LONG_AGO, due)
    assert not clock.is_due(due, due), "the phone was registered then"


@SMALL
@given(instants, reminder_clocks)
def test_each_date_has_one_and_none_is_left_out(start: datetime, clock: ReminderClock) -> None:
    days: list[date] = []
    at = start
    for _ in range(5):
        following = clock.next_look(at)
        assert at < following <= at + 3 * DAY
        day = local_date(following, clock.zone_name, AT_MIDNIGHT)
        if clock.due_on(day) == following:
            days.append(day)
        at = following
    assert len(set(days)) == len(days)
    if days:
        between = [days[0] + timedelta(days=each) for each in range((days[-1] - days[0]).days + 1)]
        assert days == [day for day in between if clock.due_on(day)]


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
    clock = ReminderClock(EVENING, name, quiet_hours(*quiet) if quiet else None, name)
    assert clock.due_on(day) == (unstamp(due) if due else None)


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
    name = "Pacific/Easter"
    clock = ReminderClock(EVENING, name, quiet_hours(*quiet) if quiet else None, name)
    at = unstamp(due)
    assert clock.due_on(day) == at
    assert local_date(clock.next_look(at), name, AT_MIDNIGHT) == day + DAY, "once a date"


@pytest.mark.parametrize(
    ("quiet", "quiet_zone", "due"),
    [
        (("21:00", "07:00"), "America/New_York", "2026-03-10T20:00:00Z"),  # 16:00 at the phone
        (("15:00", "18:00"), "America/New_York", "2026-03-10T22:00:00Z"),
        (("15:00", "20:00"), "America/New_York", None),  # it would be the next date in UTC
        (("22:00", "07:00"), "Asia/Tokyo", "2026-03-10T22:00:00Z"),  # 05:00 at the phone
    ],
)
def test_quiet_hours_are_the_phones_and_dates_the_users(quiet: Any, quiet_zone: str, due: str | None) -> None:
    clock = ReminderClock(EVENING, "UTC", quiet_hours(*quiet), quiet_zone)
    assert clock.due_on(date(2026, 3, 10)) == (unstamp(due) if due else None)


def test_without_reminders_a_phone_is_looked_at_once_a_day() -> None:
    clock, now = ReminderClock(None, "UTC"), unstamp("2026-03-10T21:00:00Z")
    assert not clock.is_due(LONG_AGO, now)
    assert clock.next_look(now) == now + DAY


def test_a_book_that_moves_the_hour_moves_what_waits() -> None:
    looked_at = unstamp("2026-03-10T20:00:00Z")
    later = ReminderClock(time(21, 30), "UTC")
    assert not later.is_due(LONG_AGO, looked_at)
    assert later.next_look(looked_at) == unstamp("2026-03-10T21:30:00Z")
    assert ReminderClock(time(18), "UTC").is_due(LONG_AGO, looked_at), "late, and still on its date"


def test_where_a_day_ends_at_three_its_small_hours_are_of_the_evening_before() -> None:
    starts = ((date(2026, 1, 1), time(3)),)
    late = ReminderClock(time(1, 30), "UTC", starts=starts)
    assert late.due_on(date(2026, 3, 10)) == unstamp("2026-03-11T01:30:00Z")
    assert late.is_due(LONG_AGO, unstamp("2026-03-11T02:59:59Z"))
    assert not late.is_due(LONG_AGO, unstamp("2026-03-11T03:00:00Z"))
    assert late.next_look(unstamp("2026-03-11T01:30:00Z")) == unstamp("2026-03-12T01:30:00Z")


def test_nobody_is_reminded_after_midnight_of_the_next_date() -> None:
    clock = ReminderClock(EVENING, "UTC")
    assert clock.is_due(LONG_AGO, unstamp("2026-03-10T23:59:59Z"))
    assert not clock.is_due(LONG_AGO, unstamp("2026-03-11T00:00:00Z"))


@pytest.mark.parametrize(
    ("last", "cover", "length"),
    [
        (date(2026, 3, 10), Cover(), 0),  # done
        (date(2026, 3, 9), Cover(), 4),
        (date(2026, 3, 8), Cover(), 0),  # lapsed
        (date(2026, 3, 8), Cover(freezes=((date(2026, 3, 1), 1),)), 4),  # covered so far
        (date(2026, 3, 9), Cover(pauses=((date(2026, 3, 10), date(2026, 3, 11)),)), 0),  # paused
        (date(2026, 3, 9), Cover(rest=RestDays(((date.min, TUESDAYS),))), 0),  # a rest date
        (date(2026, 3, 11), Cover(), 0),  # done, in a zone further east
    ],
)
def test_who_is_at_risk(last: date, cover: Cover, length: int) -> None:
    assert streak_at_risk(Streak(last, 4, 4, 4), cover, "UTC", unstamp("2026-03-10T20:00:00Z")) == length


def test_nobody_without_a_streak_is_at_risk() -> None:
    assert streak_at_risk(None, Cover(), "UTC", unstamp("2026-03-10T20:00:00Z")) == 0
