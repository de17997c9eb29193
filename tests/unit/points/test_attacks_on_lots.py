"""Attacks on expiry without tables."""

import calendar
import random
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from rules.book.point_rules import PERIODS, Cap, Period, expires_on, lifetime_days_max, lot_date
from rules.days import stamp
from rules.engagement.carriers import split_carriers, with_carried
from rules.engagement.events import MalformedItem, from_item
from rules.engagement.ledger import Draft, Entry, EntryKind, append_drafts
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
    for year in (1969, 1970, 1999, 2000, 2024, 2026, 2027, 2100):
        for month in range(1, 13):
            for day in (1, 2, 28, calendar.monthrange(year, month)[1]):
                earned = date(year, month, day)
                if rule == "3650d" and day > 1:
                    continue
                on = expires_on(rule, earned)
                assert on == plainly(rule, earned)
                assert earned < on <= earned + timedelta(days=lifetime_days_max(rule))


def test_rules_keep_the_order_of_dates() -> None:
    for rule in [*PERIODS, "30d"]:
        days = [date(2023, 12, 1) + timedelta(days=n) for n in range(800)]
        ends = [expires_on(rule, each) for each in days]
        assert ends == sorted(ends)


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


def test_the_stored_event_is_one() -> None:
    assert from_item({**STORED, "expiry": "next_year"}).expiry == "next_year"


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
    ],
)
def test_a_stored_event_with_an_impossible_expiry_is_malformed_and_nothing_else(more: dict[str, Any]) -> None:
    """Also numbers, lists and dates beyond 9999: any other error would stop the whole batch."""
    with pytest.raises(MalformedItem):
        from_item({**STORED, **more})


@pytest.mark.parametrize("expiry", ["-5d", "0d"])
def test_points_that_expire_before_they_are_earned_are_malformed(expiry: str) -> None:
    with pytest.raises(MalformedItem):
        from_item({**STORED, "expiry": expiry})


def test_carried_entries_are_read_as_they_were_written() -> None:
    chance = random.Random(3)
    for _ in range(300):
        drafts = []
        for _ in range(chance.randrange(1, 40)):
            at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randrange(10**7))
            earned = at.date() + timedelta(days=chance.choice([-1, 0, 0, 1]))
            expires = chance.choice([None, 0, 1, 90, 3650, 744, 2_900_000, -3])
            points = chance.choice([0, 1, 10, 65535, 65536])
            drafts.append(
                Draft(
                    *(EntryKind.EARN, points, f"{stamp(at)}#{uuid4()}"),
                    chance.choice(["LESSON", "x+1", "v2", "passive"]),
                    earned.isoformat(),
                    rules_version=chance.choice([None, 1, 70000]),
                    cap=chance.choice([None, Cap(5, Period.DAY), Cap(7, Period.WEEK)]),
                    is_passive=chance.random() < 0.3,
                    expires_on=None if expires is None else (earned + timedelta(days=expires)).isoformat(),
                )
            )
        if chance.random() < 0.5:
            drafts.append(Draft(EntryKind.EXPIRE, -1, expires_on="2026-02-01"))
            drafts.append(Draft(EntryKind.EARN, 10, None, held_at="2026-02-01T00:00:00.000000Z"))
        now = datetime(2026, 6, 1, tzinfo=UTC)
        entries = append_drafts("ann", None, [Draft(EntryKind.EARN, 5, None), *drafts], now)
        carriers, _ = split_carriers(entries)
        read = with_carried(carriers)[0]
        assert [(each.created_at, each.seq, each.balance, each.draft) for each in read] == [
            (each.created_at, each.seq, each.balance, each.draft) for each in entries
        ]


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
