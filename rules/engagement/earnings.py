"""The date and the points that an event earns.

One instant never earns a user more than one date (docs/rules.md, rule 8). Points are limited by what the
user's events have earned under the same cap before, as days have it (rule 5).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import lru_cache

from rules.book.point_rules import Cap, Period, lot_of, points_left
from rules.days import DAY, unstamp
from rules.engagement.account_state import Day
from rules.engagement.events import Event
from rules.engagement.ledger import Draft, EntryKind
from rules.engagement.streak import Streak

NEAR = timedelta(hours=8)  # first events of two dates that are less apart are near each other
OPENED_NEAR_MAX = 1  # dates that may begin near an event which begins another one
DATES_A_WEEK = 7


@lru_cache(maxsize=4096)  # assign_dates needs the same instant several times
def instant_of(event_id: str) -> datetime:
    """Return when an event occurred, which its id begins with."""
    return unstamp(event_id.partition("#")[0])


def dates_beside(dates: Iterable[date]) -> set[date]:
    """Return dates with those up to two days away: no instant within eight hours has another local date."""
    return {day + n * DAY for day in dates for n in range(-2, 3)}


def flight_gap_dates(events: Iterable[tuple[str, date]], days: Mapping[date, Day | None]) -> set[date]:
    """Return the dates that a flight west over the date line left out, as far as these events show.

    Between the last event of one date and the first of the date after next lie less than 24 hours. So no
    whole date lies between them, and the one that the calendars name is no miss. One calendar alone never
    gives this, and more events only bring the two closer. events: ids, with the dates that they earn.
    days: see assign_dates.
    """
    instants: dict[date, list[datetime]] = defaultdict(list)
    for when, day in days.items():
        if day and day.is_active:
            instants[when] += map(instant_of, _ends(day))
    dates = set()
    for event_id, when in events:
        instants[when].append(instant_of(event_id))
        dates.add(when)
    gaps = set()
    for before in {day - 2 * DAY for day in dates} | dates:
        after = before + 2 * DAY
        if before in instants and after in instants and min(instants[after]) - max(instants[before]) < DAY:
            gaps.add(before + DAY)
    return gaps


def _ends(day: Day) -> tuple[str, str]:
    return day.first_event_id, day.last_event_id or day.first_event_id


def dates_to_read(
    events: Sequence[Event], streak: Streak | None, days: Mapping[tuple[str, date], Day]
) -> set[date]:
    """Return the dates beside those of a user's events that a decision about them needs.

    days: of the events' own dates. One more event on the newest date needs none, and there is none after it.
    """
    if streak is None:
        return set()
    undecided = set()  # dates of events that depend on the dates beside them
    for event in events:
        day = days.get((event.user_id, event.activity_date))
        if not event.is_passive and (
            day is None
            or not day.is_active
            or event.activity_date < streak.last
            or event.event_id < day.first_event_id
        ):
            undecided.add(event.activity_date)
    dates = {event.activity_date for event in events}
    return {day for day in dates_beside(undecided) - dates if day <= streak.last}


def assign_dates(events: Sequence[Event], days: Mapping[date, Day | None]) -> list[Event]:
    """Return the events, in their order, each with the date that it earns. A passive one has its own.

    An event earns the date that it claims if that date is active already. It opens a new one unless another
    date began at the same instant, or several began near it: then it earns the nearest of these.
    days: the stored days of the events' dates and of those beside them; None where there is none.
    """
    first_instants = {
        when: instant_of(day.first_event_id) for when, day in days.items() if day and day.is_active
    }
    placed = {event.event_id: event for event in events if event.is_passive}
    active = [event for event in events if not event.is_passive]
    active.sort(key=lambda event: (instant_of(event.event_id), event.activity_date, event.event_id))
    for event in active:
        instant, when = instant_of(event.event_id), event.activity_date
        if when not in first_instants:
            distances = ((abs(instant - first), other) for other, first in first_instants.items())
            near = sorted((distance, other) for distance, other in distances if distance < NEAR)
            if near:
                least, nearest = near[0]
                if least == timedelta() or len(near) > OPENED_NEAR_MAX:
                    when = nearest
        first_instants[when] = min(instant, first_instants.get(when, instant))
        placed[event.event_id] = event if when == event.activity_date else replace(event, activity_date=when)
    return [placed[event.event_id] for event in events]


def cap_key(event_type: str, cap: Cap | None) -> str:
    """Return the key of a type and its event's cap in Day.points_by_cap: `CHECK_IN 5/day`."""
    return f"{event_type} {cap.text}" if cap else event_type


def points_by_type(points_by_cap: Mapping[str, int]) -> dict[str, int]:
    """Return a day's points by event type."""
    totals: dict[str, int] = {}
    for key, points in points_by_cap.items():
        kind = key.partition(" ")[0]
        totals[kind] = totals.get(kind, 0) + points
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


def _points_by_cap(event_type: str, per: Period, days: Iterable[Day]) -> dict[int, int]:
    """Return the points that a type's events earned under caps of a period, by the caps' points."""
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
