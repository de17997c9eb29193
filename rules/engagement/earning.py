"""What a user's events have earned so far under each cap (docs/rules.md, rule 5), as days hold it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from rules.book.point_rules import Cap, Period, lot_of, points_left
from rules.days import DAY
from rules.engagement.account_state import Day
from rules.engagement.events import Event
from rules.engagement.ledger import Draft, EntryKind

DATES_A_WEEK = 7


def cap_key(event_type: str, cap: Cap | None) -> str:
    """Return how a day names a type and the cap that its event had: `CHECK_IN 5/day`."""
    return f"{event_type} {cap.text}" if cap else event_type


def points_by_type(points_by_cap: Mapping[str, int]) -> dict[str, int]:
    """Return a day's points by event type."""
    totals: dict[str, int] = {}
    for key, points in points_by_cap.items():
        kind = key.partition(" ")[0]
        totals[kind] = totals.get(kind, 0) + points
    return totals


def week_of(day: date) -> list[date]:
    """Return the seven dates of a date's week, from Monday (ISO 8601)."""
    monday = day - day.weekday() * DAY
    return [monday + number * DAY for number in range(DATES_A_WEEK)]


def dates_of_caps(events: Iterable[Event]) -> set[date]:
    """Return the dates that caps over weeks ask for, beyond the events' own."""
    weekly = {event.activity_date for event in events if event.cap and event.cap.per is Period.WEEK}
    return {day for when in weekly for near in (-2, 0, 2) for day in week_of(when + near * DAY)}


def awards(events: Iterable[Event], days: Mapping[date, Day | None]) -> list[int]:
    """Return the points that caps leave of each event's. days: see Account."""
    earned: dict[tuple[str, Period, date], dict[int, int]] = {}
    given: list[int] = []
    for event in events:
        if event.cap is None:
            given.append(event.points_awarded)
            continue
        dates = week_of(event.activity_date) if event.cap.per is Period.WEEK else [event.activity_date]
        place = event.event_type, event.cap.per, dates[0]
        if place not in earned:
            earned[place] = _earned(event.event_type, event.cap.per, filter(None, map(days.get, dates)))
        points = points_left(event.points_awarded, event.cap.points, earned[place])
        earned[place][event.cap.points] += points
        given.append(points)
    return given


def _earned(event_type: str, per: Period, days: Iterable[Day]) -> dict[int, int]:
    """Return what a type's events of some days have earned, by their cap of a kind."""
    earned: dict[int, int] = defaultdict(int)
    for day in days:
        for key, points in day.points_by_cap.items():
            kind, _, cap = key.partition(" ")
            if kind == event_type and cap.endswith(f"/{per}"):
                earned[int(cap.partition("/")[0])] += points
    return earned


def expiry_of(event: Event, points: int) -> str | None:
    """Return the date on which an event's points expire; None where there are none, or they never do."""
    if event.expiry is None or not points:
        return None
    return lot_of(event.expiry, event.activity_date, event.cap).isoformat()


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
