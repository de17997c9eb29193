"""The dates that events earn. One instant never earns a user more than one date (docs/rules.md, rule 8)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

from rules.days import DAY
from rules.engagement.account_state import Day
from rules.engagement.events import Event, instant_of
from rules.engagement.streak import Streak

NEAR = timedelta(hours=8)  # first events of two dates that are less apart are near each other
OPENED_NEAR_MAX = 1  # dates that may begin near an event which begins another one


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

    An event on streak.last needs none unless it is the first one of this date. No date after streak.last is
    active. days: the stored days of the events' own dates.
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
    dated = {event.event_id: event for event in events if event.is_passive}
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
        dated[event.event_id] = event if when == event.activity_date else replace(event, activity_date=when)
    return [dated[event.event_id] for event in events]
