"""Rule 1: an event belongs to one calendar date, which follows from its instant and its zone."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.days import (
    AT_MIDNIGHT,
    DAY,
    MICROSECOND,
    Moment,
    date_of,
    is_skipped,
    local_date,
    parse_moment,
    skipped_dates,
    start_of,
    zone,
)
from tests.support.engagement_strategies import FIRST, LAST, ZONES, dates, instants, zones


def day_of(occurred_at: str, given_zone: str | None = None, stored: str | None = None) -> date:
    return date_of(parse_moment(occurred_at), given_zone, stored, AT_MIDNIGHT)[0]


@pytest.mark.parametrize(
    ("occurred_at", "given_zone", "stored", "day", "name"),
    [
        ("2026-03-01T02:00:00Z", "America/New_York", "Asia/Tokyo", date(2026, 2, 28), "America/New_York"),
        ("2026-03-01T02:00:00+09:00", "America/New_York", None, date(2026, 2, 28), "America/New_York"),
        ("2026-03-01T02:00:00+09:00", None, "America/New_York", date(2026, 3, 1), "+09:00"),
        ("2026-03-01T02:00:00Z", None, "America/New_York", date(2026, 2, 28), "America/New_York"),
        ("2026-03-01T02:00:00-00:00", None, "America/New_York", date(2026, 2, 28), "America/New_York"),
        ("2026-03-01T02:00:00Z", None, None, date(2026, 3, 1), "UTC"),
        ("2026-03-01T02:00:00+00:00", None, "America/New_York", date(2026, 3, 1), "+00:00"),
        ("2026-03-01T02:00:00Z", "-07:00", None, date(2026, 2, 28), "-07:00"),
    ],
)
def test_the_event_s_zone_wins_then_its_offset_then_the_stored_zone_then_utc(
    occurred_at: str, given_zone: str | None, stored: str | None, day: date, name: str
) -> None:
    assert date_of(parse_moment(occurred_at), given_zone, stored, AT_MIDNIGHT) == (day, name)


def test_half_past_eleven_and_half_past_midnight_are_two_days_where_the_user_is() -> None:
    assert day_of("2026-11-20T23:30:00-05:00") == date(2026, 11, 20)
    assert day_of("2026-11-21T00:30:00-05:00") == date(2026, 11, 21)
    assert day_of("2026-11-21T04:30:00Z", "America/New_York") == date(2026, 11, 20)
    assert day_of("2026-11-21T05:30:00Z", "America/New_York") == date(2026, 11, 21)


def test_half_past_eleven_at_utc_minus_5_stays_that_date_wherever_the_user_moves() -> None:
    assert day_of("2026-05-10T23:30:00-05:00", None, "+02:00") == date(2026, 5, 10)
    assert day_of("2026-05-11T23:30:00+02:00", None, "-05:00") == date(2026, 5, 11)


@pytest.mark.parametrize("hour", range(24))
@pytest.mark.parametrize(
    "day", [date(2025, 10, 25), date(2025, 10, 26), date(2025, 10, 27), date(2025, 3, 29), date(2025, 3, 30)]
)
def test_every_local_hour_around_a_clock_change_belongs_to_its_own_date(day: date, hour: int) -> None:
    local = datetime(day.year, day.month, day.day, hour, 30, tzinfo=zone("Europe/Berlin"))
    occurred = local.astimezone(UTC).isoformat()
    assert day_of(occurred, "Europe/Berlin") == day


def test_a_day_of_25_hours_and_one_of_23_are_one_date_each() -> None:
    for day, hours in ((date(2025, 10, 26), 25), (date(2025, 3, 30), 23)):
        length = start_of(day + DAY, "Europe/Berlin", AT_MIDNIGHT) - start_of(
            day, "Europe/Berlin", AT_MIDNIGHT
        )
        assert length == timedelta(hours=hours)


def test_both_occurrences_of_the_repeated_hour_are_the_same_date() -> None:
    for utc in ("2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z"):
        assert day_of(utc, "Europe/Berlin") == date(2025, 10, 26)


def test_apia_skipped_the_30th_of_december_2011() -> None:
    assert is_skipped(date(2011, 12, 30), "Pacific/Apia")
    assert day_of("2011-12-30T09:59:59Z", "Pacific/Apia") == date(2011, 12, 29)
    assert day_of("2011-12-30T10:00:00Z", "Pacific/Apia") == date(2011, 12, 31)
    assert skipped_dates("Pacific/Apia") == {date(2011, 12, 30)}
    assert skipped_dates("Pacific/Honolulu") == skipped_dates("+14:00") == skipped_dates("UTC") == frozenset()
    assert not is_skipped(date(2011, 12, 30), "Pacific/Honolulu")
    assert not is_skipped(date(2011, 12, 30), "+14:00")


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("Pacific/Kiritimati", date(1994, 12, 31)),
        ("Pacific/Enderbury", date(1994, 12, 31)),
        ("Pacific/Kwajalein", date(1993, 8, 21)),
        ("Pacific/Fakaofo", date(2011, 12, 30)),
    ],
)
def test_every_zone_that_crossed_the_date_line_skipped_one_date(name: str, day: date) -> None:
    span = range((day - timedelta(days=400)).toordinal(), (day + timedelta(days=400)).toordinal())
    assert [each for each in map(date.fromordinal, span) if is_skipped(each, name)] == [day]
    assert skipped_dates(name) == {day}


@given(dates, st.sampled_from([name for name in ZONES if name not in ("Pacific/Apia", "Pacific/Kiritimati")]))
def test_no_other_zone_skips_a_date(day: date, name: str) -> None:
    assert not is_skipped(day, name)


def test_dates_at_the_ends_of_the_calendar_are_not_skipped() -> None:
    assert not is_skipped(date.min, "Europe/Berlin")
    assert not is_skipped(date.max, "Europe/Berlin")


@given(instants, zones, zones)
def test_the_date_is_the_one_on_the_wall_of_the_zone_that_the_event_names(
    utc: datetime, name: str, stored: str
) -> None:
    day, read_in = date_of(Moment(utc, None), name, stored, AT_MIDNIGHT)
    assert (day, read_in) == (utc.astimezone(zone(name)).date(), name)
    assert date_of(Moment(utc, None), None, name, AT_MIDNIGHT) == (day, name)
    assert abs((day - utc.date()).days) <= 1


@given(instants, zones)
def test_the_date_never_goes_back_within_a_day(utc: datetime, name: str) -> None:
    later = utc + timedelta(hours=25)
    assert (
        date_of(Moment(later, None), name, None, AT_MIDNIGHT)[0]
        >= date_of(Moment(utc, None), name, None, AT_MIDNIGHT)[0]
    )


@given(dates, zones)
def test_a_date_begins_where_the_one_before_it_ends(day: date, name: str) -> None:
    start = start_of(day, name, AT_MIDNIGHT)
    if is_skipped(day, name):
        return
    assert local_date(start, name, AT_MIDNIGHT) == day
    assert local_date(start - MICROSECOND, name, AT_MIDNIGHT) < day


def test_a_date_whose_midnight_does_not_exist_begins_when_the_clock_jumps() -> None:
    start = start_of(date(2017, 10, 15), "America/Sao_Paulo", AT_MIDNIGHT)
    assert start == datetime(2017, 10, 15, 3, tzinfo=UTC)
    assert start.astimezone(zone("America/Sao_Paulo")).hour == 1


def test_today_depends_on_where_the_user_is() -> None:
    now = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)
    assert [local_date(now, name, AT_MIDNIGHT) for name in ("-12:00", "UTC", "+14:00")] == [
        date(2026, 2, 28),
        date(2026, 3, 1),
        date(2026, 3, 2),
    ]


def test_the_strategies_cover_the_years_that_are_promised() -> None:
    assert (FIRST.year, LAST.year) == (1990, 2035)
