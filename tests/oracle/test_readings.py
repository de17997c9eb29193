"""The oracle says what the examples of docs/rules.md say."""

from datetime import date, timedelta

import pytest

from tests.oracle.calendar_dates import date_in, dates_skipped_by, instant, named_zone
from tests.oracle.facts import refusal, said
from tests.oracle.points_reading import LEVELS, TABLE, ByAmount, TimedBoost, capped, level_of, worth
from tests.oracle.streak_reading import Protection, left_out, paused_in_a_year, told


def january(day: int) -> date:
    return date(2026, 1, day)


@pytest.mark.parametrize(
    ("occurred_at", "named", "zone_set", "expected"),
    [
        ("2026-03-02T04:30:00Z", "America/New_York", "Asia/Tokyo", "2026-03-01 in America/New_York"),
        ("2026-03-01T23:30:00-05:00", None, "Asia/Tokyo", "2026-03-01 in -05:00"),
        ("2026-03-02T04:30:00Z", None, "Asia/Tokyo", "2026-03-02 in Asia/Tokyo"),
        ("2026-03-02T04:30:00-00:00", None, "Asia/Tokyo", "2026-03-02 in Asia/Tokyo"),
        ("2026-03-02T04:30:00Z", None, None, "2026-03-02 in UTC"),
    ],
)
def test_rule_1(occurred_at: str, named: str | None, zone_set: str | None, expected: str) -> None:
    zone = named_zone(occurred_at, named, zone_set)
    assert f"{date_in(zone, instant(occurred_at))} in {zone}" == expected


def test_dates_that_calendars_never_had() -> None:
    assert dates_skipped_by("Pacific/Apia", 2011) == {date(2011, 12, 30)}
    assert dates_skipped_by("Pacific/Kwajalein", 1993) == {date(1993, 8, 21)}
    assert not dates_skipped_by("Europe/Berlin", 2026) | dates_skipped_by("+14:00", 2011)


def test_rule_2_two_freezes_and_a_miss_that_nothing_covers() -> None:
    two = Protection(changes=((january(1), +1), (january(1), +1)))
    shown = [told([january(1)], two, january(day)) for day in (1, 2, 3, 4, 5)]
    assert [(each.current, each.status, each.freezes) for each in shown] == [
        (1, "active", 2),
        (1, "at_risk", 2),
        (1, "at_risk", 1),
        (1, "at_risk", 0),
        (0, "broken", 0),
    ]
    assert told([january(1), january(5)], two, january(5)).current == 1


def test_rule_3_a_late_event_gives_a_freeze_back() -> None:
    one = Protection(changes=((january(1), +1),))
    before = told([january(1), january(3)], one, january(3))
    after = told([january(3), january(1), january(2)], one, january(3))
    assert (before.current, sorted(before.spent)) == (2, [january(2)])
    assert (after.current, sorted(after.spent)) == (3, [])


def test_covered_dates_add_nothing() -> None:
    covered = Protection(pauses=((january(2), january(3)),), skipped=frozenset({january(4)}))
    assert told([january(1), january(5)], covered, january(5)).current == 2
    assert paused_in_a_year([(january(1), january(10)), (january(5), january(12))]) == 12


def test_rule_4_bodies_that_say_the_same() -> None:
    body = {"occurred_at": "2026-03-02T10:00:00Z", "properties": {"n": 1, "name": "\u00e9"}}
    same = {"occurred_at": "2026-03-02T10:00:00.000Z", "properties": {"n": 1.0, "name": "e\u0301"}}
    assert said(body) == said(same) != said({**body, "occurred_at": "2026-03-02T10:00:01Z"})


def test_rule_5_caps_and_boosts() -> None:
    assert TABLE["WORKOUT_COMPLETED"] == (15, 60)
    assert len(TABLE) == 12
    assert [capped("WORKOUT_COMPLETED", 30, earned) for earned in (0, 45, 60)] == [30, 15, 0]
    when = instant("2026-03-02T10:00:00Z")
    boosts = [
        TimedBoost(when, when + timedelta(hours=1), factor, frozenset(types))
        for factor, types in ((2, ()), (3, ("CHECK_IN",)))
    ]
    assert [worth(each, when, boosts) for each in ("CHECK_IN", "CONTRIBUTION")] == [15, 20]


def test_rule_5_each_whole_part_of_an_amount_earns() -> None:
    rule = ByAmount(0, "minutes", "5", 1)
    assert [rule.price({"minutes": minutes}) for minutes in (4.999, 5, 29, 30)] == [0, 1, 5, 6]
    assert [ByAmount(7, "minutes", "0.1", 2).price(said) for said in ({}, {"minutes": 0.3})] == [7, 13]
    when = instant("2026-03-02T10:00:00Z")
    assert worth("CHECK_IN", when, [TimedBoost(when, when + timedelta(hours=1), 2)], 6) == 12


def test_rule_24_a_level_is_the_highest_that_the_points_reach() -> None:
    assert [name for name, _, _ in LEVELS] == ["starter", "bronze", "silver", "gold", "platinum"]
    assert level_of(99) == {
        "name": "starter",
        "title": "Starter",
        "from": 0,
        "next": {"name": "bronze", "title": "Bronze", "from": 100, "missing": 1},
    }
    assert level_of(100)["name"] == "bronze"
    assert level_of(10_000) == {"name": "platinum", "title": "Platinum", "from": 10_000, "next": None}


def test_rule_8_a_flight_west_over_the_date_line() -> None:
    evening, morning = instant("2026-03-02T04:00:00Z"), instant("2026-03-02T23:00:00Z")
    first, third = date_in("America/Los_Angeles", evening), date_in("Australia/Sydney", morning)
    assert left_out({first: [evening], third: [morning]}) == {date(2026, 3, 2)}


def test_who_may_be_late() -> None:
    arrived = instant("2026-03-03T00:20:00Z")
    for occurred_at, found in (
        ("2026-03-02T23:58:00Z", None),
        ("2026-02-28T00:10:00Z", "backfill_forbidden"),
        ("2026-03-03T00:30:00Z", "in_the_future"),
    ):
        assert refusal({"occurred_at": occurred_at, "event_type": "CHECK_IN"}, "user", arrived) == {found}
