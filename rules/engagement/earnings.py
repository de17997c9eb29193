"""The points that an event earns (assigned_dates.py: the date).

A cap limits them by what the user's events have earned under the same cap before (docs/rules.md, rule 5). The
user's days have these sums.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from rules.book.point_rules import Cap, Period, lot_date, points_left
from rules.days import DAY
from rules.engagement.account_state import Day
from rules.engagement.events import Event
from rules.engagement.ledger import Draft, EntryKind

DATES_A_WEEK = 7


def cap_key(event_type: str, cap: Cap | None) -> str:
    """Return the key of a type and its event's cap in Day.points_by_cap: `CHECK_IN 5/day`."""
    return f"{event_type} {cap.text}" if cap else event_type


def points_by_type(points_by_cap: Mapping[str, int]) -> dict[str, int]:
    """Return a day's points by event type."""
    totals: dict[str, int] = {}
    for key, points in points_by_cap.items():
        event_type = key.partition(" ")[0]
        totals[event_type] = totals.get(event_type, 0) + points
    return totals


def monday_of(day: date) -> date:
    """Return the first date of a date's week (ISO 8601)."""
    return day - day.weekday() * DAY


def week_of(day: date) -> list[date]:
    """Return the seven dates of a date's week, from Monday."""
    return [monday_of(day) + number * DAY for number in range(DATES_A_WEEK)]


def dates_of_caps(events: Iterable[Event]) -> set[date]:
    """Return the dates whose points weekly caps count. An event may count for a date up to two days away."""
    weekly = {event.activity_date for event in events if event.cap and event.cap.per is Period.WEEK}
    # The weeks of these three dates are all weeks that have a date within two days.
    return {day for when in weekly for offset in (-2, 0, 2) for day in week_of(when + offset * DAY)}


class CappedPoints:
    """The points that a user's events have earned under each cap, in each period. days: see Account."""

    def __init__(self, days: Mapping[date, Day | None] | None = None) -> None:
        self._days = days or {}
        # By event type, first date of the period, and whether it is a week: points earned, by the cap's
        # points
        self._earned: dict[tuple[str, date, bool], dict[int, int]] = {}

    def add(self, event_type: str, day: date, cap: Cap, points: int) -> None:
        """Count points under a cap. Points below 0 are taken back."""
        earned = self._earned_by_cap(event_type, day, cap)
        earned[cap.points] = earned.get(cap.points, 0) + points

    def award(self, event_type: str, day: date, worth: int, cap: Cap | None) -> int:
        """Return the points of an event's `worth` that its cap still allows, and count them."""
        if cap is None:
            return worth
        earned = self._earned_by_cap(event_type, day, cap)
        points = points_left(worth, cap.points, earned)
        earned[cap.points] = earned.get(cap.points, 0) + points
        return points

    def _earned_by_cap(self, event_type: str, day: date, cap: Cap) -> dict[int, int]:
        """Return the points earned in a cap's period, by the cap's points. Days are counted at first use."""
        is_weekly = cap.per is Period.WEEK
        first = cap.first(day) if is_weekly else day
        key = event_type, first, is_weekly
        if (earned := self._earned.get(key)) is None:
            earned = self._earned[key] = {}
            if self._days:
                dates = week_of(first) if is_weekly else [first]
                stored = filter(None, map(self._days.get, dates))
                earned |= _points_by_cap(event_type, cap.per, stored)
        return earned


def awards(events: Iterable[Event], days: Mapping[date, Day | None]) -> list[int]:
    """Return the points that caps allow each event. days: see Account."""
    capped = CappedPoints(days)
    return [
        capped.award(event.event_type, event.activity_date, event.points_awarded, event.cap)
        for event in events
    ]


def _points_by_cap(wanted_type: str, per: Period, days: Iterable[Day]) -> dict[int, int]:
    """Return the points that events of a type earned under caps of a period, by the caps' points."""
    earned: dict[int, int] = defaultdict(int)
    for day in days:
        for key, points in day.points_by_cap.items():
            event_type, _, cap = key.partition(" ")
            if event_type == wanted_type and cap.endswith(f"/{per}"):
                earned[int(cap.partition("/")[0])] += points
    return earned


def expiry_of(event: Event, points: int) -> str | None:
    """Return the date on which an event's points expire; None where there are none, or they never do."""
    if event.expiry is None or not points:
        return None
    return lot_date(event.expiry, event.activity_date, event.cap).isoformat()


def earnings(events: Sequence[Event], days: Mapping[date, Day | None]) -> list[Draft]:
    """Return each event's EARN draft. days: see Account."""
    return [
        Draft(
            EntryKind.EARN,
            points,
            event.event_id,
            event.event_type,
            event.activity_date.isoformat(),
            rules_version=event.rules_version,
            cap=event.cap,
            is_passive=event.is_passive,
            expires_on=expiry_of(event, points),
            measures=event.measures,
        )
        for event, points in zip(events, awards(events, days), strict=True)
    ]
