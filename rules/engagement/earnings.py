"""The date and the points that an event earns.

One instant never earns a user more than one date (docs/rules.md, rule 8). A cap limits the points by what the
user's events have earned under the same cap before (rule 5). The user's days have these sums. In this order:
dates; points; weeks, by which caps may count.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

from rules.book.point_rules import Cap, Period, lot_date, points_left
from rules.days import DAY
from rules.engagement.account_state import Day
from rules.engagement.events import Event, instant_of
from rules.engagement.ledger import Draft, EntryKind
from rules.engagement.streak import Streak

NEAR = timedelta(hours=8)  # two dates are near each other if their first events are less apart than this
# An event may open a date that is near one other date, as on a journey. Only a journey of some hours over the
# date line, around midnight, would explain two.
OPENED_NEAR_MAX = 1


def assign_dates(events: Sequence[Event], days: Mapping[date, Day | None]) -> list[Event]:
    """Return the events, in their order, each with the date that it earns. A passive one has its own.

    days: the stored days of the events' dates and of those beside them; None where there is none.
    """
    first_instants = {
        when: instant_of(day.first_event_id) for when, day in days.items() if day and day.is_active
    }
    dated = {event.event_id: event for event in events if event.is_passive}
    active = [(instant_of(event.event_id), event) for event in events if not event.is_passive]
    active.sort(key=lambda pair: (pair[0], pair[1].activity_date, pair[1].event_id))
    for instant, event in active:
        when = _earned_date(event.activity_date, instant, first_instants)
        first_instants[when] = min(instant, first_instants.get(when, instant))
        dated[event.event_id] = event if when == event.activity_date else replace(event, activity_date=when)
    return [dated[event.event_id] for event in events]


def _earned_date(claimed: date, instant: datetime, first_instants: Mapping[date, datetime]) -> date:
    """Return the date that an event earns. first_instants: of each active date, its first event's.

    An event earns the date that it claims if that date is active already. It opens a new one unless another
    date began at the same instant, or several began near it: then it earns the nearest of these.
    """
    if claimed in first_instants:
        return claimed
    distances = ((abs(instant - first), other) for other, first in first_instants.items())
    near = sorted((distance, other) for distance, other in distances if distance < NEAR)
    if not near:
        return claimed
    least, nearest = near[0]
    return nearest if least == timedelta() or len(near) > OPENED_NEAR_MAX else claimed


def dates_to_read(
    events: Sequence[Event], streak: Streak | None, days: Mapping[tuple[str, date], Day]
) -> set[date]:
    """Return the dates beside those of a user's events that a decision about them needs.

    No date after streak.last is active, so it is not among them. days: the stored days of the events' own
    dates.
    """
    if streak is None:
        return set()
    undecided = set()  # the date that an event earns, or a flight gap, may depend on the dates beside these
    for event in events:
        day = days.get((event.user_id, event.activity_date))
        is_first = day is None or not day.is_active or event.event_id < day.first_event_id
        if not event.is_passive and (is_first or event.activity_date < streak.last):
            undecided.add(event.activity_date)
    dates = {event.activity_date for event in events}
    return {day for day in dates_beside(undecided) - dates if day <= streak.last}


def dates_beside(dates: Iterable[date]) -> set[date]:
    """Return dates with those up to two days away.

    Events that are less than NEAR apart have, in any two zones, dates that are at most two days apart.
    """
    return {day + n * DAY for day in dates for n in range(-2, 3)}


def flight_gap_dates(events: Iterable[tuple[str, date]], days: Mapping[date, Day | None]) -> set[date]:
    """Return the dates that a flight west over the date line left out, as far as these events show.

    If an event of a date D and one of D + 2 are less than 24 hours apart, the user had no date D + 1, so it
    is no miss. In one zone such events are at least 24 hours apart. An event that arrives later can only
    shorten the distance, so a gap that was found once stays.

    events: ids, with the dates that they earn. days: see assign_dates.
    """
    ids: dict[date, list[str]] = defaultdict(list)  # ids sort by their instants
    for when, day in days.items():
        if day and day.is_active:
            ids[when] += (day.first_event_id, day.last_event_id or day.first_event_id)
    dates = set()
    for event_id, when in events:
        ids[when].append(event_id)
        dates.add(when)
    gaps = set()
    for before in {day - 2 * DAY for day in dates} | dates:
        after = before + 2 * DAY
        if before in ids and after in ids:
            apart = instant_of(min(ids[after])) - instant_of(max(ids[before]))
            if apart < DAY:
                gaps.add(before + DAY)
    return gaps


def earnings(events: Iterable[Event], days: Mapping[date, Day | None]) -> list[Draft]:
    """Return each event's EARN draft, with the points that caps allow it. days: see Account."""
    capped, drafts = CappedPoints(days), []
    for event in events:
        points = capped.award(event.event_type, event.activity_date, event.points_awarded, event.cap)
        expires_on = None
        if event.expiry is not None and points:
            expires_on = lot_date(event.expiry, event.activity_date, event.cap).isoformat()
        drafts.append(
            Draft(
                EntryKind.EARN,
                points,
                event.event_id,
                event.event_type,
                event.activity_date.isoformat(),
                rules_version=event.rules_version,
                cap=event.cap,
                is_passive=event.is_passive,
                expires_on=expires_on,
                measures=event.measures,
                timezone=event.timezone,
            )
        )
    return drafts


class CappedPoints:
    """The points that a user's events have earned under each cap, in each period. days: see Account."""

    def __init__(self, days: Mapping[date, Day | None] | None = None) -> None:
        self._days = days or {}
        # By event type, first date and kind of the period: points earned, by the cap's points
        self._earned: dict[tuple[str, date, Period], dict[int, int]] = {}

    def add(self, event_type: str, day: date, cap: Cap, points: int) -> None:
        """Count points under a cap. Points below 0 are taken back."""
        earned = self._earned_by_cap(event_type, day, cap)
        earned[cap.points] = earned.get(cap.points, 0) + points

    def award(self, event_type: str, day: date, worth: int, cap: Cap | None) -> int:
        """Return the points of an event's `worth` that its cap still allows, and count them."""
        if cap is None:
            return worth
        points = points_left(worth, cap.points, self._earned_by_cap(event_type, day, cap))
        self.add(event_type, day, cap, points)
        return points

    def _earned_by_cap(self, event_type: str, day: date, cap: Cap) -> dict[int, int]:
        """Return the points earned in a cap's period, by the cap's points. Days are counted at first use."""
        first = cap.first(day)
        key = event_type, first, cap.per
        if key not in self._earned:
            earned = self._earned[key] = defaultdict(int)
            dates = week_of(first) if cap.per is Period.WEEK else [first]
            for stored in filter(None, map(self._days.get, dates)):
                for stored_key, points in stored.points_by_cap.items():
                    stored_type, _, stored_cap = stored_key.partition(" ")
                    if stored_type == event_type and stored_cap.endswith(f"/{cap.per}"):
                        earned[int(stored_cap.partition("/")[0])] += points
        return self._earned[key]


def points_by_type(points_by_cap: Mapping[str, int]) -> dict[str, int]:
    """Return a day's points by event type."""
    totals: dict[str, int] = {}
    for key, points in points_by_cap.items():
        event_type = key.partition(" ")[0]
        totals[event_type] = totals.get(event_type, 0) + points
    return totals


def dates_of_caps(events: Iterable[Event]) -> set[date]:
    """Return the dates whose points weekly caps count. An event may count for a date up to two days away."""
    weekly = {event.activity_date for event in events if event.cap and event.cap.per is Period.WEEK}
    # The weeks of these three dates are all weeks that have a date within two days.
    return {day for when in weekly for offset in (-2, 0, 2) for day in week_of(when + offset * DAY)}


def week_of(day: date) -> list[date]:
    """Return the seven dates of a date's week, from Monday."""
    return [monday_of(day) + number * DAY for number in range(7)]


def monday_of(day: date) -> date:
    """Return the first date of a date's week (ISO 8601)."""
    return day - day.weekday() * DAY
