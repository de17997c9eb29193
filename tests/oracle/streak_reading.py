"""Rules 2 and 3, read again: a streak told from nothing but dates. Slow and plain. Imports nothing of the product."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Protection:
    """What protects a streak. changes: (date, +1 or -1) of freezes. pauses: first and last date, both included."""

    changes: tuple[tuple[date, int], ...] = ()
    pauses: tuple[tuple[date, date], ...] = ()
    skipped: frozenset[date] = frozenset()
    # What books say of rest days, each from its date on: weekdays (0: Monday), and how many a user may choose.
    rests_by: tuple[tuple[date, frozenset[int], int], ...] = ()
    choices: tuple[tuple[date, frozenset[int]], ...] = ()  # each from its date on
    short: frozenset[date] = frozenset()  # dates that a new start of the day has cut short

    def rests(self, day: date) -> bool:
        _, weekdays, most = [
            (date.min, frozenset[int](), 0),
            *(each for each in self.rests_by if each[0] <= day),
        ][-1]
        if not most:
            return day.weekday() in weekdays
        known = [chosen for since, chosen in self.choices if since <= day]
        return bool(known) and day.weekday() in sorted(known[-1])[:most]

    def paused(self, day: date) -> bool:
        return any(first <= day <= last for first, last in self.pauses)

    def without(self, change: tuple[date, int]) -> "Protection":
        """The same without one change of freezes."""
        left = list(self.changes)
        left.remove(change)
        return replace(self, changes=tuple(left))


@dataclass(frozen=True)
class Streak:
    """What a streak shows on a date. spent: dates that freezes have covered. reasons, lengths: of each date."""

    current: int
    longest: int
    status: str
    last: date | None
    freezes: int
    active_days: int
    spent: frozenset[date] = frozenset()
    reasons: dict[date, str] = field(default_factory=dict)
    lengths: dict[date, int] = field(default_factory=dict)


def told(active: Iterable[date], protection: Protection, asked: date) -> Streak:
    """Walk over every date from the first active one to the date asked about, one by one."""
    dates = sorted({day for day in active if day <= asked})
    if not dates:
        return Streak(0, 0, "none", None, _granted(protection, asked), 0)
    length = longest = 0
    alive = False
    spent: set[date] = set()
    reasons: dict[date, str] = {}
    lengths: dict[date, int] = {}
    for day in every_date(dates[0], asked):
        if day in dates:
            length = length + 1 if alive else 1
            alive, reasons[day] = True, "counted"
        elif day in protection.skipped or protection.paused(day):
            reasons[day] = "skipped" if day in protection.skipped else "paused"
        elif protection.rests(day):
            reasons[day] = "rest"
        elif day in protection.short:
            reasons[day] = "short"
        elif day == asked:
            reasons[day] = "open" if alive else "missed"
        elif alive and _granted(protection, day) - len(spent) > 0:
            spent.add(day)
            reasons[day] = "freeze"
        else:
            alive, length, reasons[day] = False, 0, "missed"
        longest, lengths[day] = max(longest, length), length
    status = "active" if asked == dates[-1] else "at_risk" if alive else "broken"
    freezes = _granted(protection, asked) - len(spent)
    return Streak(length, longest, status, dates[-1], freezes, len(dates), frozenset(spent), reasons, lengths)


def every_date(first: date, last: date) -> Iterable[date]:
    while first <= last:
        yield first
        first += DAY


def _granted(protection: Protection, day: date) -> int:
    return sum(change for since, change in protection.changes if since <= day)


def left_out(instants_by_date: dict[date, list[datetime]]) -> frozenset[date]:
    """The dates that a flight left out: less than 24 hours lie between the dates beside them (rule 8)."""
    found = set()
    for day, instants in instants_by_date.items():
        after = instants_by_date.get(day + 2 * DAY)
        if after and day + DAY not in instants_by_date and min(after) - max(instants) < DAY:
            found.add(day + DAY)
    return frozenset(found)


def paused_in_a_year(pauses: Collection[tuple[date, date]]) -> int:
    """The most paused dates among any 365 in a row."""
    paused = {day for first, last in pauses for day in every_date(first, last)}
    return max((sum(day <= each < day + 365 * DAY for each in paused) for day in paused), default=0)
