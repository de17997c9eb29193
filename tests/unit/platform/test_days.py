"""Rule 1: a day is a calendar date, and a pure function of the event."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.days import (
    DAY,
    MICROSECOND,
    OTHER_REGION,
    REGIONS,
    Moment,
    UnknownZone,
    date_of,
    is_skipped,
    parse_moment,
    region_of,
    skipped_beside,
    stamp,
    start_of,
    today,
    unstamp,
    zone,
)
from tests.support.engagement_strategies import FIRST, LAST, ZONES, dates, instants, zones


def day_of(occurred_at: str, given_zone: str | None = None, stored: str | None = None) -> date:
    return date_of(parse_moment(occurred_at), given_zone, stored)[0]


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
    assert date_of(parse_moment(occurred_at), given_zone, stored) == (day, name)


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
        length = start_of(day + DAY, "Europe/Berlin") - start_of(day, "Europe/Berlin")
        assert length == timedelta(hours=hours)


def test_both_occurrences_of_the_repeated_hour_are_the_same_date() -> None:
    for utc in ("2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z"):
        assert day_of(utc, "Europe/Berlin") == date(2025, 10, 26)


def test_apia_skipped_the_30th_of_december_2011() -> None:
    assert is_skipped(date(2011, 12, 30), "Pacific/Apia")
    assert day_of("2011-12-30T09:59:59Z", "Pacific/Apia") == date(2011, 12, 29)
    assert day_of("2011-12-30T10:00:00Z", "Pacific/Apia") == date(2011, 12, 31)
    assert skipped_beside(date(2011, 12, 29), "Pacific/Apia") == {date(2011, 12, 30)}
    assert skipped_beside(date(2011, 12, 31), "Pacific/Apia") == {date(2011, 12, 30)}
    assert skipped_beside(date(2011, 12, 28), "Pacific/Apia") == frozenset()
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


@settings(deadline=None)
@given(dates, st.sampled_from([name for name in ZONES if name not in ("Pacific/Apia", "Pacific/Kiritimati")]))
def test_no_other_zone_skips_a_date(day: date, name: str) -> None:
    assert not is_skipped(day, name)


def test_dates_at_the_ends_of_the_calendar_are_not_skipped() -> None:
    assert not is_skipped(date.min, "Europe/Berlin")
    assert not is_skipped(date.max, "Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "utc", "offset"),
    [
        ("2026-11-20T10:00:00Z", datetime(2026, 11, 20, 10, tzinfo=UTC), None),
        ("2026-11-20t10:00:00z", datetime(2026, 11, 20, 10, tzinfo=UTC), None),
        ("2026-11-20T10:00:00-00:00", datetime(2026, 11, 20, 10, tzinfo=UTC), None),
        ("2026-11-20T10:00:00+00:00", datetime(2026, 11, 20, 10, tzinfo=UTC), "+00:00"),
        ("2026-11-20T10:00:00.5+05:45", datetime(2026, 11, 20, 4, 15, 0, 500000, tzinfo=UTC), "+05:45"),
        ("2026-11-20T10:00:00.123456789Z", datetime(2026, 11, 20, 10, 0, 0, 123456, tzinfo=UTC), None),
        ("2026-11-20T10:00:00-18:00", datetime(2026, 11, 21, 4, tzinfo=UTC), "-18:00"),
    ],
)
def test_a_timestamp_is_read_with_the_offset_that_it_was_written_with(
    text: str, utc: datetime, offset: str | None
) -> None:
    assert parse_moment(text) == Moment(utc, offset)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-20",
        "2026-11-20T10:00:00",
        "2026-11-20 10:00:00Z",
        "2026-11-20T10:00Z",
        "2026-11-20T10:00:00+0500",
        "2026-11-20T10:00:00Z ",
        "2026-11-20T10:00:00Z\n",
        "2026-02-29T10:00:00Z",
        "2026-13-01T10:00:00Z",
        "2026-11-20T24:00:00Z",
        "2026-11-20T23:59:60Z",
        "2026-11-20T10:00:00+19:00",
        "2026-11-20T10:00:00+05:60",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+05:00",
        "9999-12-31T23:59:59-05:00",
        "２０２６-11-20T10:00:00Z",
        "2026-11-20T10:00:00.1234567890Z",
    ],
)
def test_what_is_no_timestamp_with_an_offset_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be an RFC 3339|is not a time that exists"):
        parse_moment(text)


@settings(deadline=None)
@given(instants, zones)
def test_an_instant_survives_being_written_in_any_zone(utc: datetime, name: str) -> None:
    written = utc.astimezone(zone(name)).isoformat()
    assert parse_moment(written).utc == utc


@settings(deadline=None)
@given(instants, zones, zones)
def test_the_date_is_the_one_on_the_wall_of_the_zone_that_the_event_names(
    utc: datetime, name: str, stored: str
) -> None:
    day, read_in = date_of(Moment(utc, None), name, stored)
    assert (day, read_in) == (utc.astimezone(zone(name)).date(), name)
    assert date_of(Moment(utc, None), None, name) == (day, name)
    assert abs((day - utc.date()).days) <= 1


@settings(deadline=None)
@given(instants, zones)
def test_the_date_never_goes_back_within_a_day(utc: datetime, name: str) -> None:
    later = utc + timedelta(hours=25)
    assert date_of(Moment(later, None), name, None)[0] >= date_of(Moment(utc, None), name, None)[0]


@settings(deadline=None)
@given(dates, zones)
def test_a_date_begins_where_the_one_before_it_ends(day: date, name: str) -> None:
    start = start_of(day, name)
    if is_skipped(day, name):
        return
    assert today(start, name) == day
    assert today(start - MICROSECOND, name) < day


def test_a_date_whose_midnight_does_not_exist_begins_when_the_clock_jumps() -> None:
    start = start_of(date(2017, 10, 15), "America/Sao_Paulo")
    assert start == datetime(2017, 10, 15, 3, tzinfo=UTC)
    assert start.astimezone(zone("America/Sao_Paulo")).hour == 1


def test_today_depends_on_where_the_user_is() -> None:
    now = datetime(2026, 3, 1, 10, 30, tzinfo=UTC)
    assert [today(now, name) for name in ("-12:00", "UTC", "+14:00")] == [
        date(2026, 2, 28),
        date(2026, 3, 1),
        date(2026, 3, 2),
    ]


@pytest.mark.parametrize(
    "name",
    ["Mars/Olympus", "America", "../etc/passwd", "/etc/localtime", "+25:00", "-18:60", "07:00", "", "é"],
)
def test_a_name_that_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(UnknownZone):
        zone(name)


@settings(deadline=None)
@given(st.one_of(st.text(max_size=70), st.from_regex(r"[A-Za-z/+_-]{1,300}", fullmatch=True)))
def test_any_text_is_a_zone_or_refused(name: str) -> None:
    try:
        there = zone(name)
    except UnknownZone:
        return
    assert datetime(2026, 1, 1, tzinfo=there).utcoffset() is not None


@settings(deadline=None)
@given(st.text(max_size=45))
def test_any_text_is_a_timestamp_or_refused_with_a_reason(text: str) -> None:
    try:
        parse_moment(text)
    except ValueError as error:
        assert str(error)


@settings(deadline=None)
@given(st.from_regex(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})", fullmatch=True))
def test_anything_in_the_shape_of_a_timestamp_is_read_or_refused(text: str) -> None:
    try:
        moment = parse_moment(text)
    except ValueError:
        return
    assert moment.utc.tzinfo is UTC


@settings(deadline=None)
@given(instants, instants)
def test_stamps_sort_as_their_instants_and_read_back(one: datetime, other: datetime) -> None:
    assert (stamp(one) < stamp(other)) is (one < other)
    assert unstamp(stamp(one)) == one


def test_instants_of_one_moment_in_two_zones_have_one_stamp() -> None:
    there = datetime(2026, 1, 1, 2, tzinfo=zone("+02:00"))
    assert stamp(there) == "2026-01-01T00:00:00.000000Z"


def test_stamps_of_the_first_thousand_years_sort_too() -> None:
    early = parse_moment("0500-01-01T00:00:00Z").utc
    assert stamp(early) < stamp(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("name", "region"),
    [
        ("America/Argentina/Buenos_Aires", "america"),
        ("Europe/Berlin", "europe"),
        ("Antarctica/Troll", "antarctica"),
        ("UTC", OTHER_REGION),
        ("Etc/GMT+5", OTHER_REGION),
        ("-07:00", OTHER_REGION),
        ("US/Pacific", OTHER_REGION),
    ],
)
def test_the_region_is_the_area_of_the_zone(name: str, region: str) -> None:
    assert region_of(name) == region


@given(st.text(max_size=20))
def test_every_name_has_one_of_the_known_regions(name: str) -> None:
    assert region_of(name) in (*REGIONS, OTHER_REGION)


def test_the_strategies_cover_the_years_that_are_promised() -> None:
    assert (FIRST.year, LAST.year) == (1990, 2035)
