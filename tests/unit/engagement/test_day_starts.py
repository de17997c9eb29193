"""A day that starts later (rule 1): which date an instant belongs to, and what a moved start does to dates."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.book.book import Book, Books, Version
from rules.book.daily import DailyRules, short_dates
from rules.book.goal_rules import StreakPeriod
from rules.days import (
    AT_MIDNIGHT,
    DAY,
    EPOCH,
    MICROSECOND,
    DayStarts,
    is_skipped,
    local_date,
    start_of,
    zone,
)
from rules.engagement.account_state import Amnesty, DateReason, Profile, covered_dates, explain_date
from rules.engagement.goals import beginnings, is_neutral
from rules.engagement.rest_days import RestDays
from rules.engagement.streak import Cover, StreakStatus, fold, lapse_date, shown_streak
from rules.outgoing.derivation import lapses_at
from tests.support.account_world import World
from tests.support.engagement_strategies import dates, event, instants, zones
from tests.support.examples import examples

HOUR = timedelta(hours=1)
AT_THREE: DayStarts = ((date.min, time(3)),)
FRIDAY = date(2026, 3, 6)
# Clocks that move at night, by half an hour or at midnight, and calendars that skip or repeat hours.
ODD_ZONES = (
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
    "America/Sao_Paulo",
    "America/St_Johns",
    "America/Havana",
    "Europe/Berlin",
    "America/New_York",
    "Africa/Cairo",
    "Asia/Kathmandu",
)
times_of_start = st.times(time(0), time(6)).map(lambda each: each.replace(second=0, microsecond=0))


def version(number: int, at: datetime, start: time, published: datetime | None = None) -> Version:
    rules = DailyRules(day_starts_at=start)
    return Version(number, at, lambda: Book({}, daily=rules), published or at)


@pytest.mark.parametrize(
    ("local", "name", "start", "day"),
    [
        ("2026-03-02T02:59:59", "Europe/Berlin", time(3), "2026-03-01"),
        ("2026-03-02T03:00:00", "Europe/Berlin", time(3), "2026-03-02"),
        ("2026-03-02T03:00:00", "Europe/Berlin", time(0), "2026-03-02"),
        ("2026-03-01T00:10:00", "-07:00", time(0, 30), "2026-02-28"),
        # Clocks go from 02:00 to 03:00: three o'clock comes an hour after one, and still begins the date.
        ("2026-03-29T01:59:59", "Europe/Berlin", time(3), "2026-03-28"),
        ("2026-03-29T03:00:00", "Europe/Berlin", time(3), "2026-03-29"),
        ("2026-03-29T03:00:00", "Europe/Berlin", time(2, 30), "2026-03-29"),
        # From 02:00 back to 01:30: what the clock shows counts.
        ("2026-04-05T01:50:00", "Australia/Lord_Howe", time(1, 45), "2026-04-05"),
        # The date before the 31st is the 29th: Apia never had the 30th.
        ("2011-12-31T02:00:00", "Pacific/Apia", time(3), "2011-12-29"),
        ("2011-12-31T03:00:00", "Pacific/Apia", time(3), "2011-12-31"),
    ],
)
def test_earlier_times_belong_to_the_date_before(local: str, name: str, start: time, day: str) -> None:
    at = datetime.fromisoformat(local).replace(tzinfo=zone(name)).astimezone(UTC)
    assert local_date(at, name, ((date.min, start),)) == date.fromisoformat(day)


@settings(max_examples=examples(300))
@given(instants, zones | st.sampled_from(ODD_ZONES), times_of_start)
def test_the_wall_clock_decides_and_no_hours_are_subtracted(at: datetime, name: str, start: time) -> None:
    wall = at.astimezone(zone(name))
    found = local_date(at, name, ((date.min, start),))
    if wall.time() >= start:
        assert found == wall.date()
    else:
        assert found < wall.date()
        between = [found + number * DAY for number in range(1, (wall.date() - found).days)]
        assert all(is_skipped(day, name) for day in between)
        assert not is_skipped(found, name)
    assert local_date(at, name, AT_MIDNIGHT) == wall.date()


@settings(max_examples=examples(300))
@given(dates, zones | st.sampled_from(ODD_ZONES), times_of_start)
def test_a_date_begins_when_it_says(day: date, name: str, start: time) -> None:
    starts = ((date.min, start),)
    begin = start_of(day, name, starts)
    assert local_date(begin, name, starts) >= day
    assert (local_date(begin, name, starts) == day) is not is_skipped(day, name)
    assert local_date(begin - MICROSECOND, name, starts) < day


@pytest.mark.parametrize(
    ("name", "day", "start", "begin"),
    [
        ("Europe/Berlin", date(2026, 3, 29), time(2, 30), "2026-03-29T01:00:00"),  # with the jump
        ("Europe/Berlin", date(2026, 10, 25), time(2, 30), "2026-10-25T00:30:00"),  # the first of two
        ("Australia/Lord_Howe", date(2026, 10, 4), time(2, 15), "2026-10-03T15:30:00"),
        ("Pacific/Apia", date(2011, 12, 30), time(3), "2011-12-30T13:00:00"),  # never: with the 31st
        ("America/Sao_Paulo", date(2017, 10, 15), time(0), "2017-10-15T03:00:00"),
    ],
)
def test_a_start_that_the_clock_skips_or_shows_twice(name: str, day: date, start: time, begin: str) -> None:
    assert start_of(day, name, ((date.min, start),)) == datetime.fromisoformat(begin).replace(tzinfo=UTC)


@st.composite
def some_versions(draw: st.DrawFn) -> list[Version]:
    """Draw versions of a month, some of which were published late, or long before they took effect."""
    versions = [version(1, EPOCH, draw(times_of_start), EPOCH)]
    for number in range(2, draw(st.integers(2, 5))):
        hours = draw(st.integers(0, 24 * 30))
        at = datetime(2026, 3, 1, tzinfo=UTC) + hours * HOUR
        published = at + draw(st.sampled_from([0, 0, -40, 50])) * HOUR
        versions.append(version(number, at, draw(times_of_start), published))
    return versions


@settings(max_examples=examples(150))
@given(some_versions(), st.integers(-12, 14), st.integers(0, 23))
def test_a_moved_start_repeats_no_date_and_leaves_no_miss(
    versions: list[Version], offset: int, hour: int
) -> None:
    books = Books(versions)
    name = f"{'-' if offset < 0 else '+'}{abs(offset):02}:00"
    moments = [datetime(2026, 2, 25, tzinfo=UTC) + number * HOUR for number in range(24 * 45)]
    seen = [local_date(at, name, books.day_starts) for at in moments]
    assert all(day <= later <= day + DAY for day, later in pairwise(seen))
    for day in {*seen} - {seen[0], seen[-1]}:
        assert 18 <= seen.count(day) <= 30
    # Who comes once in 24 hours misses nothing, whenever that is.
    active = {local_date(at, name, books.day_starts) for at in moments[hour::24]}
    cover = Cover(rest=RestDays(books.daily_terms))
    streak = fold(active, cover)
    assert streak and streak.length == len(active)


@settings(max_examples=examples(150))
@given(some_versions(), st.integers(0, 24 * 40), st.integers(-12, 14))
def test_a_version_that_is_published_later_moves_no_date_that_has_begun(
    versions: list[Version], hours: int, offset: int
) -> None:
    now = datetime(2026, 2, 25, tzinfo=UTC) + hours * HOUR
    name = f"{'-' if offset < 0 else '+'}{abs(offset):02}:00"
    known = Books(each for each in versions if each.published_at <= now)
    later = Books(versions)
    for back in range(-10, 72):
        at = now - back * HOUR
        assert local_date(at, name, known.day_starts) == local_date(at, name, later.day_starts)


def moved(before: time, after: time) -> Books:
    at = datetime(2026, 3, 6, tzinfo=UTC)
    return Books([version(1, EPOCH, before, EPOCH), version(2, at, after, at - 9 * DAY)])


def test_a_version_says_when_the_dates_end_that_begin_under_it() -> None:
    later = moved(time(0), time(3))
    assert later.day_starts == ((date.min, time(0)), (FRIDAY + DAY, time(3)))
    assert short_dates(later.daily_terms) == frozenset()
    earlier = moved(time(3), time(0))
    assert short_dates(earlier.daily_terms) == {FRIDAY}
    assert moved(time(0), time(0)).day_starts == AT_MIDNIGHT


def test_a_short_date_is_no_miss_and_says_why() -> None:
    cover = Cover(rest=RestDays(moved(time(3), time(0)).daily_terms))
    streak = fold([FRIDAY - DAY], cover)
    assert streak
    profile = Profile("ann", cover=cover, streak=streak)
    assert shown_streak(streak, cover, FRIDAY).status is StreakStatus.ACTIVE
    assert shown_streak(streak, cover, FRIDAY + DAY).status is StreakStatus.AT_RISK
    assert lapse_date(streak, cover) == FRIDAY + 2 * DAY
    assert explain_date(streak, profile, FRIDAY, FRIDAY + 3 * DAY) == (DateReason.SHORT, 1)
    assert covered_dates(profile, (FRIDAY, FRIDAY + DAY), FRIDAY + DAY) == [(FRIDAY, DateReason.SHORT)]


def test_a_short_date_is_nobody_s_flight() -> None:
    """Its neighbours may be less than a day apart. That is no journey, and no evidence for a review."""
    books = moved(time(3), time(0))
    world = World(profile=Profile("u", cover=Cover(rest=RestDays(books.daily_terms))))
    nights = [datetime(2026, 3, 6, 2, 50, tzinfo=UTC), datetime(2026, 3, 7, 2, 10, tzinfo=UTC)]
    days = [local_date(at, "UTC", books.day_starts) for at in nights]
    assert days == [FRIDAY - DAY, FRIDAY + DAY]
    world.apply([event(f"k{at}", day, at=at) for at, day in zip(nights, days, strict=True)])
    assert world.profile.streak
    assert (world.profile.streak.length, world.profile.cover.skipped) == (2, frozenset())


def test_streaks_of_the_book_do_not_miss_it_either() -> None:
    cover = Cover(rest=RestDays(moved(time(3), time(0)).daily_terms))
    assert is_neutral(StreakPeriod.DAY, FRIDAY, cover)
    assert not is_neutral(StreakPeriod.WEEK, FRIDAY - 4 * DAY, cover)


def test_a_streak_lapses_when_its_date_ends_by_the_clock() -> None:
    cover = Cover(rest=RestDays(((date.min, DailyRules(day_starts_at=time(3))),)))
    profile = Profile("ann", cover=cover, streak=fold([FRIDAY], cover), chosen_zone="Europe/Berlin")
    assert lapses_at(profile) == "2026-03-08T02:00:00.000000Z"
    at_two = datetime(2026, 3, 8, 1, tzinfo=UTC)
    assert profile.local_date(at_two) == date(2026, 3, 7)
    assert profile.local_date(at_two + HOUR) == date(2026, 3, 8)


def test_an_outage_of_the_night_touches_the_date_before() -> None:
    night = Amnesty(1, datetime(2026, 6, 2, tzinfo=UTC), datetime(2026, 6, 2, 1, tzinfo=UTC))
    assert night.dates_in("UTC", AT_THREE) == {date(2026, 6, 1)}
    assert night.dates_in("UTC", AT_MIDNIGHT) == {date(2026, 6, 2)}
    # In the second half hour before two the clock shows what it has shown before.
    repeated = Amnesty(1, datetime(2026, 4, 4, 14, 50, tzinfo=UTC), datetime(2026, 4, 4, 15, 10, tzinfo=UTC))
    starts: DayStarts = ((date.min, time(1, 45)),)
    assert repeated.dates_in("Australia/Lord_Howe", starts) == {date(2026, 4, 4), date(2026, 4, 5)}


@pytest.mark.parametrize(
    ("before", "after", "meaning"),
    [
        (time(0), time(3), "2026-03-06 still begins at 00:00 and lasts until then, so it is longer"),
        (time(3), time(1, 30), "2026-03-06 still begins at 03:00, so it is shorter and no miss for anybody"),
    ],
)
def test_publishing_says_what_it_does_and_from_which_date(before: time, after: time, meaning: str) -> None:
    books = moved(before, after)
    (line,) = beginnings(books, books.newest)
    assert line == (
        f"day's start: from 2026-03-07 on, a date begins at {after:%H:%M} by the clock on the wall, and "
        f"earlier times belong to the date before. {meaning}. No earlier date changes"
    )


def test_a_version_that_changes_no_start_says_nothing() -> None:
    books = moved(time(3), time(3))
    assert list(beginnings(books, books.newest)) == []
