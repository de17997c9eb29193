"""Rules 14 and 15, read again: which bonuses events earn, and for which date. Slow and plain.

Imports nothing of the product. Achievements and streaks are read as a book's document has them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from tests.oracle.streak_reading import Protection, told

DAY, WEEK = timedelta(days=1), timedelta(days=7)
Section = Mapping[str, Any]


@dataclass(frozen=True)
class Declared:
    """An achievement that pays. since: the first date on which it may be earned."""

    section: Section
    since: date


@dataclass(frozen=True)
class History:
    """What counts of a user: by date, the events of each type, and the points that events have earned."""

    events: Mapping[date, Counter[str]]
    points: Mapping[date, int]
    protection: Protection
    streaks: Mapping[str, Section]


def bonuses_due(declared: Mapping[str, Declared], history: History) -> dict[str, tuple[date, int]]:
    """By achievement, the date and the points of its bonus."""
    found = {}
    for name, each in declared.items():
        section = each.section
        reached = [_reached(condition, history) for condition in section.get("all", section.get("any", ()))]
        dates = [day for day in reached if day]
        if not dates or ("all" in section and len(dates) < len(reached)):
            continue
        first = max(dates) if "all" in section else min(dates)
        if first < each.since:
            first = min((day for day in history.events if day >= each.since), default=date.max)
        if first < date.max:
            found[name] = first, int(section["points"])
    return found


def _reached(condition: Section, history: History) -> date | None:
    """The first date with whose events a condition is true."""
    if "streak" in condition:
        streak = history.streaks[condition["streak"]]
        reading = _run_of_days if streak["per"] == "day" else _run_of_weeks
        return reading(streak, int(condition["at_least"]), history)
    total = 0
    for day in sorted(history.events):
        counted = condition.get("count")
        total += history.events[day][counted] if counted else history.points[day]
        if total >= (condition["at_least"] if counted else condition["points_earned"]):
            return day
    return None


def _run_of_days(streak: Section, at_least: int, history: History) -> date | None:
    """Of a streak that all events keep, and everything covers: it is the daily one."""
    assert streak["needs"] == {"events": 1}
    assert streak["freezes"]
    assert streak["pauses"]
    assert streak["rest_days"]
    if not history.events:
        return None
    run = told(history.events, history.protection, max(history.events))
    return next((day for day in sorted(history.events) if run.lengths[day] >= at_least), None)


def _run_of_weeks(streak: Section, at_least: int, history: History) -> date | None:
    """Week by week: reached, excused, covered by a freeze, or missed. Rest days are none of its."""
    assert streak["freezes"]
    assert streak["pauses"]
    needed = int(streak["needs"]["active_days"])
    if not history.events:
        return None
    monday = min(history.events) - min(history.events).weekday() * DAY
    protection, length, spent = history.protection, 0, 0
    while monday <= max(history.events):
        dates = [monday + number * DAY for number in range(7)]
        active = [day for day in dates if day in history.events]
        if len(active) >= needed:
            length += 1
            if length >= at_least:
                return active[needed - 1]
        elif length:
            excused = sum(
                day in protection.skipped or day in protection.short or protection.paused(day)
                for day in dates
            )
            granted = sum(change for since, change in protection.changes if since <= dates[-1])
            if 2 * excused <= len(dates):
                length = length if granted > spent else 0
                spent += bool(length)
        monday += WEEK
    return None
