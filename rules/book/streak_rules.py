"""Streaks that a book declares (docs/rules.md, rule 14): per which period, and what each period needs."""

from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

from rules.days import DAY


class StreakPeriod(StrEnum):
    """What a streak counts: activity dates, weeks from Monday (ISO 8601), or months of the calendar."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    def first(self, day: date) -> date:
        """Return the first date of the period that a date is in."""
        if self is StreakPeriod.WEEK:
            return day - timedelta(days=day.weekday())
        return day.replace(day=1) if self is StreakPeriod.MONTH else day

    def after(self, first: date) -> date:
        """Return the first date of the period after one."""
        return self.later(first, 1)

    def later(self, first: date, number: int) -> date:
        """Return the first date of the period so many periods after one."""
        if self is StreakPeriod.MONTH:
            month = 12 * first.year + first.month - 1 + number
            return date(month // 12, month % 12 + 1, 1)
        return first + timedelta(days=number * (7 if self is StreakPeriod.WEEK else 1))

    def between(self, first: date, later: date) -> int:
        """Return how many periods lie from one first date to a later one, the second left out."""
        if self is StreakPeriod.MONTH:
            return 12 * (later.year - first.year) + later.month - first.month
        return (later - first).days // (7 if self is StreakPeriod.WEEK else 1)

    def last(self, first: date) -> date:
        """Return the last date of a period."""
        return self.after(first) - DAY


class NeedKind(StrEnum):
    """What of a period's events is counted."""

    ACTIVE_DAYS = "active_days"
    EVENTS = "events"
    SUM = "sum"


@dataclass(frozen=True, slots=True)
class Need:
    """What a period needs. at_least: of a sum in thousandths. property: of a sum, the one that is summed."""

    kind: NeedKind
    at_least: int
    property: str | None = None


@dataclass(frozen=True, slots=True)
class StreakRule:
    """A streak. event_types: whose events count.

    freezes, pauses: whether those of the user cover a missed period. is_opening: of the one period that had
    begun when the streak was declared; it counts if it is reached, and is no miss if it is not.
    """

    per: StreakPeriod
    need: Need
    event_types: frozenset[str]
    freezes: bool = False
    pauses: bool = False
    is_opening: bool = False
