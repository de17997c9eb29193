"""Attacks on expiry without tables."""

import calendar
from datetime import date, timedelta
from typing import Any
from uuid import uuid4

import pytest

from rules.book.point_rules import PERIODS, Cap, Period, expires_on, lifetime_days_max, lot_date
from rules.engagement.events import MalformedItem, from_item
from rules.engagement.ledger import Draft, Entry, EntryKind
from rules.engagement.lots import Expiry, Hold, expiry_of


def plainly(rule: str, day: date) -> date:
    """The first date after the period, by walking."""
    if rule.endswith("d"):
        for _ in range(int(rule[:-1])):
            day += timedelta(days=1)
        return day

    def period(of: date) -> tuple[int, int]:
        size = {"month": 1, "quarter": 3, "year": 12}[rule.removeprefix("next_")]
        return of.year, (of.month - 1) // size

    for _ in range(2 if rule.startswith("next_") else 1):
        begun = period(day)
        while period(day) == begun:
            day += timedelta(days=1)
    return day


@pytest.mark.parametrize("rule", [*PERIODS, "1d", "365d", "3650d"])
def test_every_date_of_some_years_expires_as_the_calendar_says(rule: str) -> None:
    for year in (1969, 2024, 2026, 2100):
        for month in range(1, 13):
            for day in (1, 2, 28, calendar.monthrange(year, month)[1]):
                earned = date(year, month, day)
                if rule == "3650d" and day > 1:
                    continue
                on = expires_on(rule, earned)
                assert on == plainly(rule, earned)
                assert earned < on <= earned + timedelta(days=lifetime_days_max(rule))


@pytest.mark.parametrize("rule", [*PERIODS, "1d", "30d"])
def test_what_a_cap_leaves_of_its_period_is_one_lot(rule: str) -> None:
    """Which of the period's events get it depends on their order of arrival."""
    for day in (date(2026, 12, 20) + timedelta(days=n) for n in range(40)):  # a Sunday; week 53 is in it
        assert lot_date(rule, day, None) == lot_date(rule, day, Cap(9)) == expires_on(rule, day)
        weekly = lot_date(rule, day, Cap(9, Period.WEEK))
        dates = [each for n in range(-6, 7) if same_week(each := day + timedelta(days=n), day)]
        assert len(dates) == 7
        assert weekly == max(expires_on(rule, each) for each in dates)
        assert day < weekly <= day + timedelta(days=lifetime_days_max(rule))


def same_week(one: date, other: date) -> bool:
    return one.isocalendar()[:2] == other.isocalendar()[:2]


STORED = {
    "user_id": "ann",
    "idempotency_key": "k",
    "event_type": "LESSON_COMPLETED",
    "occurred_at": "2026-03-01T00:00:00+00:00",
    "activity_date": "2026-03-01",
    "zone": "UTC",
    "points_awarded": 10,
    "rules_version": 1,
    "source": "s",
    "event_id": f"2026-03-01T00:00:00.000000Z#{uuid4()}",
    "created_at": "2026-03-01T00:00:00.000000Z",
}


@pytest.mark.parametrize(
    "more",
    [
        {"activity_date": "9999-12-31", "expiry": "90d"},
        {"activity_date": "9999-12-31", "expiry": "next_year"},
        {"expiry": "99999999999d"},
        {"expiry": "9999999d"},
        {"expiry": "d"},
        {"expiry": "xd"},
        {"expiry": "week"},
        {"expiry": 90},
        {"expiry": ["90d"]},
        {"expiry": True},
        {"expiry": "-5d"},
        {"expiry": "0d"},
    ],
)
def test_a_stored_event_with_an_impossible_expiry_is_malformed_and_nothing_else(more: dict[str, Any]) -> None:
    """Also numbers, lists and dates beyond 9999: any other error would stop the whole batch."""
    assert from_item({**STORED, "expiry": "next_year"}).expiry == "next_year"
    with pytest.raises(MalformedItem):
        from_item({**STORED, **more})


def test_a_rebuild_of_an_account_whose_hold_lapsed_is_the_account() -> None:
    """A hold that has lapsed stays in the profile; a rebuild takes it for one that still shields a lot."""
    on = "2026-01-03"
    entries = [
        Entry("ann", "2026-01-01T09:00:00.000000Z", 1, 10, Draft(EntryKind.EARN, 10, "e", expires_on=on)),
        Entry("ann", "2026-01-03T14:00:00.000000Z", 2, 0, Draft(EntryKind.EXPIRE, -10, expires_on=on)),
    ]
    lapsed = Hold("h", 10, "mug", "2026-01-01T10:00:00.000000Z", "2026-01-03T13:00:00.000000Z")
    known = Expiry(None, date(2026, 1, 3), 10)
    assert expiry_of(entries, [lapsed], known, "2026-01-03T14:00:00+00:00") == known
