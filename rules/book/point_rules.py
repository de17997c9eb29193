"""Rules of points: caps (docs/rules.md, rule 5), expiry (rule 11), and the unit of sums over events."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache

from rules.days import DAY

DAYS = "d"  # ends a rule of expiry by days: `90d`
MONTHS = {"month": 1, "quarter": 3, "year": 12}
NEXT = "next_"  # begins a rule of expiry at the end of the next period
PERIODS = tuple(f"{ahead}{period}" for period in MONTHS for ahead in ("", NEXT))
MONTHS_A_YEAR = 12
DAYS_A_WEEK = 7
# At this time the date before is over everywhere on earth. Then the points that expire on a date are gone.
EXPIRES_AT = time(12, tzinfo=UTC)
UNIT = 1000  # sums are in thousandths
COUNTED = "n"  # the first part of every event's measures


class Period(StrEnum):
    """The period of a cap: an activity date, or the seven dates from a Monday (ISO 8601)."""

    DAY = "day"
    WEEK = "week"


@dataclass(frozen=True, slots=True)
class Cap:
    """The most points that a user's events of one type earn in a period."""

    points: int
    per: Period = Period.DAY

    def __hash__(self) -> int:  # asked for each entry (rules/engagement/seals.py)
        return self.points

    def last(self, day: date) -> date:
        """Return the last date of the period that a date is in: of a week its Sunday."""
        return day if self.per is Period.DAY else day + (7 - day.isoweekday()) * DAY

    def first(self, day: date) -> date:
        """Return the first date of the period that a date is in: of a week its Monday."""
        return day if self.per is Period.DAY else day - day.weekday() * DAY

    @property
    def text(self) -> str:
        """The cap as it is stored: `100/day`."""
        return f"{self.points}/{self.per}"

    @staticmethod
    @lru_cache(maxsize=1024)  # each event and each entry names one of few
    def of(text: str | None) -> "Cap | None":
        """Read a stored cap; None where there is none. Raises ValueError for any other text."""
        points, _, per = (text or "").partition("/")
        return Cap(int(points), Period(per)) if text else None


def points_left(points: int, cap: int | None, earned: Mapping[int, int]) -> int:
    """Return how many of an event's points its cap still allows.

    cap: the event's, or None. earned: the points that events of its type and period have earned so far, by
    their caps. A later version of the book may have changed the cap. Then all events with a cap up to any
    limit may together earn that limit at most.
    """
    if cap is None:
        return points
    if not earned or (len(earned) == 1 and cap in earned):  # almost always: the type has had one cap
        return max(0, min(points, cap - earned.get(cap, 0)))
    allowed = points
    for limit in {cap, *(other for other in earned if other > cap)}:
        earned_up_to_limit = sum(amount for other, amount in earned.items() if other <= limit)
        allowed = min(allowed, limit - earned_up_to_limit)
    return max(0, allowed)


def total_points(points_by_cap: Mapping[int, int]) -> int:
    """Return the points that events of one type and period earn in all. points_by_cap: before caps."""
    total = 0
    for cap in sorted(points_by_cap):
        total = min(cap, total + points_by_cap[cap])
    return total


def expires_on(rule: str, earned_for: date) -> date:
    """Return the first date on which points are no longer there (docs/rules.md, rule 11).

    rule: `90d` for 90 days later, or the end of which period: month, quarter, year, next_month, next_quarter,
    next_year.
    Raises ValueError for any other rule, and for a date beyond the calendar.
    """
    if rule.endswith(DAYS):
        if (days := int(rule.removesuffix(DAYS))) < 1:
            raise ValueError(f"{rule!r}: points cannot expire before they are earned")
        try:
            return earned_for + timedelta(days=days)
        except OverflowError as error:
            raise ValueError(f"{rule!r} leads beyond the calendar: {error}") from None
    months = MONTHS.get(rule.removeprefix(NEXT))
    if months is None:
        raise ValueError(f"{rule!r} is no rule of expiry")
    periods = 2 if rule.startswith(NEXT) else 1
    begun = earned_for.year * MONTHS_A_YEAR + (earned_for.month - 1) // months * months
    year, month = divmod(begun + periods * months, MONTHS_A_YEAR)
    return date(year, month + 1, 1)


def lot_of(rule: str, day: date, cap: Cap | None) -> date:
    """Return on which date the points of a date expire. cap: of their event. Raises as expires_on.

    Which events of a period get points under a cap depends on the order in which they arrive. So all points
    of the period expire together, as if they had been earned on its last date.
    """
    return expires_on(rule, cap.last(day) if cap else day)


def lifetime_days_max(rule: str) -> int:
    """Return a number of days that points never outlive, under whatever cap."""
    months = MONTHS.get(rule.removeprefix(NEXT), 0) * (2 if rule.startswith(NEXT) else 1)
    return (31 * months if months else int(rule.removesuffix(DAYS))) + DAYS_A_WEEK - 1


def instant_of_expiry(on: date) -> datetime:
    """Return the instant at which the points are gone that expire on a date."""
    return datetime.combine(on, EXPIRES_AT)


def last_expired(now: datetime) -> date:
    """Return the newest date on which points have expired by now."""
    return (now.astimezone(UTC) - timedelta(hours=EXPIRES_AT.hour)).date()


def thousandths(number: float) -> int:
    """Return a number in thousandths, rounded half to even: exact for one with up to three decimals."""
    return round(Decimal(str(number)) * UNIT)
