"""What caps leave of points (docs/rules.md, rule 5), when points expire (rule 11), and how sums over events
are counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache

from rules.days import DAY

DAYS = "d"
MONTHS = {"month": 1, "quarter": 3, "year": 12}
NEXT = "next_"
PERIODS = tuple(f"{ahead}{period}" for period in MONTHS for ahead in ("", NEXT))
MONTHS_A_YEAR = 12
DAYS_A_WEEK = 7
# The points of a date are there until that date is over everywhere on earth.
EXPIRES_AT = time(12, tzinfo=UTC)
UNIT = 1000
COUNTED = "n"  # what stands first in every event's measures


class Period(StrEnum):
    """What a cap counts over: an activity date, or the seven from a Monday (ISO 8601)."""

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
    """Return the points that an event gets, from 0 to its own.

    cap: the event's, None for none. earned: what events of its type and period have earned so far, by cap.
    """
    if cap is None:
        return points
    if not earned or (len(earned) == 1 and cap in earned):  # almost always: the type has had one cap
        return max(0, min(points, cap - earned.get(cap, 0)))
    left = points
    for limit in {cap, *(each for each in earned if each > cap)}:
        left = min(left, limit - sum(some for each, some in earned.items() if each <= limit))
    return max(0, left)


def total_points(points_by_cap: Mapping[int, int]) -> int:
    """Return what events of one type and period earn in all, by the caps that they have."""
    total = 0
    for cap in sorted(points_by_cap):
        total = min(cap, total + points_by_cap[cap])
    return total


def expires_on(rule: str, earned_for: date) -> date:
    """Return the first date on which points are no longer there (docs/rules.md, rule 11).

    rule: `90d` for 90 days later, or the end of which period: month, quarter, year, next_month, next_quarter,
    next_year.
    Raises ValueError for no such rule, and where the date is beyond the calendar.
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
    """Return when points of a date expire that are under a cap. Raises as expires_on.

    All that a cap leaves of its period expires at one time, as if it had been earned on the period's last
    date: which of the events it leaves something depends on the order in which they arrive.
    """
    return expires_on(rule, cap.last(day) if cap else day)


def lifetime_days_max(rule: str) -> int:
    """Return a number of days that points never outlive, under whatever cap."""
    months = MONTHS.get(rule.removeprefix(NEXT), 0) * (2 if rule.startswith(NEXT) else 1)
    return (31 * months if months else int(rule.removesuffix(DAYS))) + DAYS_A_WEEK - 1


def instant_of_expiry(on: date) -> datetime:
    """Return the instant at which what expires on a date is gone."""
    return datetime.combine(on, EXPIRES_AT)


def last_expired(now: datetime) -> date:
    """Return the newest date on which points have expired by now."""
    return (now.astimezone(UTC) - timedelta(hours=EXPIRES_AT.hour)).date()


def thousandths(number: float) -> int:
    """Return a number in thousandths, rounded half to even: exact for one with up to three decimals."""
    return round(Decimal(str(number)) * UNIT)
