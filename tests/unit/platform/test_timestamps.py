"""Timestamps, names of zones and stamps: what is read, what is refused, and how stamps sort."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.days import (
    OTHER_REGION,
    REGIONS,
    Moment,
    UnknownZone,
    key_of_stamp,
    parse_moment,
    region_of,
    stamp,
    stamp_of_key,
    unstamp,
    zone,
)
from tests.support.engagement_strategies import instants, zones


@pytest.mark.parametrize(
    ("text", "utc", "offset"),
    [
        ("2026-11-20T10:00:00Z", datetime(2026, 11, 20, 10, tzinfo=UTC), None),
        ("2026-11-20t10:00:00z", datetime(2026, 11, 20, 10, tzinfo=UTC), None),
        ("2026-11-20T10:00:00-00:00", datetime(2026, 11, 20, 10, tzinfo=UTC), None),
        ("2026-11-20T10:00:00+00:00", datetime(2026, 11, 20, 10, tzinfo=UTC), "+00:00"),
        ("2026-11-20T10:00:00.5+05:45", datetime(2026, 11, 20, 4, 15, 0, 500000, tzinfo=UTC), "+05:45"),
        ("2026-11-20T10:00:00.123456789Z", datetime(2026, 11, 20, 10, 0, 0, 123456, tzinfo=UTC), None),
        ("2026-11-20T10:00:00-12:00", datetime(2026, 11, 20, 22, tzinfo=UTC), "-12:00"),
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


@given(instants, zones)
def test_an_instant_survives_being_written_in_any_zone(utc: datetime, name: str) -> None:
    written = utc.astimezone(zone(name)).isoformat()
    assert parse_moment(written).utc == utc


@pytest.mark.parametrize(
    "name",
    ["Mars/Olympus", "America", "../etc/passwd", "/etc/localtime", "+25:00", "-18:60", "07:00", "", "é"],
)
def test_a_name_that_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(UnknownZone):
        zone(name)


@given(st.one_of(st.text(max_size=70), st.from_regex(r"[A-Za-z/+_-]{1,300}", fullmatch=True)))
def test_any_text_is_a_zone_or_refused(name: str) -> None:
    try:
        there = zone(name)
    except UnknownZone:
        return
    assert datetime(2026, 1, 1, tzinfo=there).utcoffset() is not None


@given(st.text(max_size=45))
def test_any_text_is_a_timestamp_or_refused_with_a_reason(text: str) -> None:
    try:
        parse_moment(text)
    except ValueError as error:
        assert str(error)


@given(st.from_regex(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})", fullmatch=True))
def test_anything_in_the_shape_of_a_timestamp_is_read_or_refused(text: str) -> None:
    try:
        moment = parse_moment(text)
    except ValueError:
        return
    assert moment.utc.tzinfo is UTC


@given(instants, instants)
def test_stamps_sort_as_their_instants_and_read_back(one: datetime, other: datetime) -> None:
    assert (stamp(one) < stamp(other)) is (one < other)
    assert unstamp(stamp(one)) == one


SECOND = timedelta(seconds=1)
UUIDS = st.uuids().map(str)


@given(instants, st.one_of(instants, st.integers(-2_000_000, 2_000_000)), UUIDS, UUIDS)
def test_sort_keys_sort_as_their_instants_and_read_back(
    one: datetime, other: datetime | int, an_id: str, other_id: str
) -> None:
    """Alone, and with a # and an id behind them. Near instants, too, so that many share their second."""
    if isinstance(other, int):
        other = one + other * timedelta(microseconds=1)
    keys = [key_of_stamp(stamp(each)) for each in (one, other)]
    assert [unstamp(stamp_of_key(key)) for key in keys] == [one, other]
    assert (keys[0] < keys[1]) is (one < other)
    if one != other:
        assert (f"{keys[0]}#{an_id}" < f"{keys[1]}#{other_id}") is (one < other)


@given(instants)
def test_a_range_in_whole_seconds_has_all_of_its_seconds(at: datetime) -> None:
    """As the documents write times: 2026-10-29T15:45:53Z, with and without an id behind the stored one."""
    second = at.replace(microsecond=0)
    first, after = f"{second:%Y-%m-%dT%H:%M:%S}Z", f"{second + SECOND:%Y-%m-%dT%H:%M:%S}Z"
    for stored in (key_of_stamp(stamp(at)), f"{key_of_stamp(stamp(at))}#{'0' * 36}"):
        assert first <= stored < after
    assert (key_of_stamp(stamp(at)) <= first) is (at == second)
    assert key_of_stamp(stamp(second)) == first


@pytest.mark.parametrize("text", ["", "0", "9", "2026-10-29", "2026-10-29T15:45:53.5Z", "own/mug"])
def test_text_that_is_no_instant_stays_as_a_sort_key(text: str) -> None:
    assert (key_of_stamp(text), stamp_of_key(text)) == (text, text)


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
