"""Streaks and achievements that a book declares (docs/rules.md, rules 14 and 15)."""

from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum

from rules.days import DAY

DAILY = "daily"  # the name of the profile's streak, which every book has
GOAL_NAME = "^[a-z][a-z0-9_]{0,31}$"
UNIT = 1000  # sums of a property are whole thousandths, so they are exact


class StreakPeriod(StrEnum):
    """The period that a streak counts."""

    DAY = "day"  # an activity date
    WEEK = "week"  # from Monday (ISO 8601)
    MONTH = "month"  # of the calendar

    def first(self, day: date) -> date:
        """Return the first date of the period that a date is in."""
        if self is StreakPeriod.WEEK:
            return day - timedelta(days=day.weekday())
        return day.replace(day=1) if self is StreakPeriod.MONTH else day

    def after(self, first: date) -> date:
        """Return the first date of the period after one."""
        return self.later(first, 1)

    def later(self, first: date, number: int) -> date:
        """Return the first date of a later period. number: how many periods later."""
        if self is StreakPeriod.MONTH:
            month = 12 * first.year + first.month - 1 + number
            return date(month // 12, month % 12 + 1, 1)
        return first + timedelta(days=number * (7 if self is StreakPeriod.WEEK else 1))

    def between(self, first: date, later: date) -> int:
        """Return the number of periods from one first date to a later one, which is left out."""
        if self is StreakPeriod.MONTH:
            return 12 * (later.year - first.year) + later.month - first.month
        return (later - first).days // (7 if self is StreakPeriod.WEEK else 1)

    def last(self, first: date) -> date:
        """Return the last date of a period."""
        return self.after(first) - DAY


class NeedKind(StrEnum):
    """What a need counts."""

    ACTIVE_DAYS = "active_days"  # dates with an event
    EVENTS = "events"
    SUM = "sum"  # of a property of the events


@dataclass(frozen=True, slots=True)
class Need:
    """The least that a period must have to be reached."""

    kind: NeedKind
    at_least: int  # a sum is in thousandths
    property: str | None = None  # of a SUM


@dataclass(frozen=True, slots=True)
class StreakRule:
    """A streak of the book."""

    per: StreakPeriod
    need: Need
    event_types: frozenset[str]  # the types of events that count
    freezes: bool = False  # whether the user's freezes cover a missed period
    pauses: bool = False  # whether the user's pauses cover one
    rest_days: bool = False  # whether a rest date is no miss; of a streak of days
    # Whether this is the rule of the one period that had begun when the streak was declared. That period
    # counts if it is reached, and is no miss if it is not.
    is_opening: bool = False


class ConditionKind(StrEnum):
    """What a condition counts."""

    POINTS = "points_earned"
    COUNT = "count"
    SUM = "sum"
    STREAK = "streak"


@dataclass(frozen=True, slots=True)
class Condition:
    """A threshold of an achievement."""

    kind: ConditionKind
    at_least: int  # a sum is in thousandths
    event_type: str | None = None  # of COUNT and SUM
    property: str | None = None  # of SUM
    streak: str | None = None  # of STREAK, its name


@dataclass(frozen=True, slots=True)
class AchievementRule:
    """An achievement of the book."""

    conditions: tuple[Condition, ...]
    needs_all: bool = True  # whether all conditions must be true, or any one of them
    stays: bool = True  # whether it is never withdrawn once it was shown
    of_history: bool = False  # whether its date may be before it was declared
    title: str = ""
    points: int = field(default=0, repr=False)  # of its bonus, once a user; 0: none
    # As of a reward. Another picture is the same achievement: whoever has it keeps it, and nobody is notified
    image_url: str = field(default="", repr=False, compare=False)
    is_secret: bool = field(default=False, repr=False, compare=False)  # whoever does not have it may not know


def thousandths(number: float) -> int:
    """Return a number in thousandths, rounded half to even: exact for one with up to three decimals."""
    return round(Decimal(str(number)) * UNIT)
