"""Which date an event earns (docs/rules.md, rule 8): one instant never earns a user more than one.

A date is opened by its first event. An honest calendar opens two dates within seconds only around midnight,
and three not within eight hours, whatever the flight. So an event opens no date if its instant has opened
another one, or if two others were opened within eight hours of it. It then counts for the nearest of those
dates. What has been applied before matters only among claims that contradict each other: a history that is
possible is never touched, in whatever order it arrives.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import lru_cache

from rules.days import DAY, unstamp
from rules.engagement.account_state import Day
from rules.engagement.events import Event
from rules.engagement.streaks import Streak

NEAR = timedelta(hours=8)
OPENED_NEAR_MAX = 1


@lru_cache(maxsize=4096)  # placing asks for an event's several times
def instant_of(event_id: str) -> datetime:
    """Return when an event occurred, which its id begins with."""
    return unstamp(event_id.partition("#")[0])


def beside(dates: Iterable[date]) -> set[date]:
    """Return dates with those up to two days away: no instant within eight hours has another local date."""
    return {day + n * DAY for day in dates for n in range(-2, 3)}


def flown_over(events: Iterable[tuple[str, date]], days: Mapping[date, Day | None]) -> set[date]:
    """Return the dates that a flight west over the date line left out, as far as these events tell.

    Between the last event of one date and the first of the date after next lie less than 24 hours. So no
    whole date lies between them, and the one that the calendars name is no miss. One calendar alone never
    gives this, and more events only bring the two closer. events: ids and dates, as they were placed.
    days: see place.
    """
    first: dict[date, datetime] = {}
    last: dict[date, datetime] = {}
    seen = [
        (when, instant_of(at)) for when, day in days.items() if day and day.is_active for at in _ends(day)
    ]
    dates = set()
    for event_id, when in events:
        seen.append((when, instant_of(event_id)))
        dates.add(when)
    for when, at in seen:
        first[when], last[when] = min(at, first.get(when, at)), max(at, last.get(when, at))
    pairs = {(day + n * DAY, day + (n + 2) * DAY) for day in dates for n in (-2, 0)}
    return {a + DAY for a, b in pairs if a in last and b in first and first[b] - last[a] < DAY}


def _ends(day: Day) -> tuple[str, str]:
    return day.first_event_id, day.last_event_id or day.first_event_id


def dates_to_look_at(
    events: Sequence[Event], streak: Streak | None, days: Mapping[tuple[str, date], Day]
) -> set[date]:
    """Return the dates beside those of a user's events that a decision about them needs.

    days: of the events' own dates. One more event on the newest date needs none, and there is none after it.
    """
    if streak is None:
        return set()
    asked = set()
    for event in (each for each in events if not each.is_passive):
        day = days.get((event.user_id, event.activity_date))
        if (
            day is None
            or not day.is_active
            or event.activity_date < streak.last
            or event.event_id < day.first_event_id
        ):
            asked.add(event.activity_date)
    known = {event.activity_date for event in events}
    return {day for day in beside(asked) - known if day <= streak.last}


def place(events: Sequence[Event], days: Mapping[date, Day | None]) -> list[Event]:
    """Return the events, in their order, each with the date that it earns. A passive one has its own.

    days: the stored days of the events' dates and of those beside them; None where there is none.
    """
    opened = {when: instant_of(day.first_event_id) for when, day in days.items() if day and day.is_active}
    placed = {event.event_id: event for event in events if event.is_passive}
    for event in sorted(
        (each for each in events if not each.is_passive),
        key=lambda each: (instant_of(each.event_id), each.activity_date, each.event_id),
    ):
        at, when = instant_of(event.event_id), event.activity_date
        if when not in opened:
            near = sorted(
                (abs(at - first), other) for other, first in opened.items() if abs(at - first) < NEAR
            )
            if near and (near[0][0] == timedelta() or len(near) > OPENED_NEAR_MAX):
                when = near[0][1]
        opened[when] = min(at, opened.get(when, at))
        placed[event.event_id] = event if when == event.activity_date else replace(event, activity_date=when)
    return [placed[event.event_id] for event in events]
