"""Rules of points: caps (docs/rules.md, rule 5) and expiry (rule 11)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from rules.days import DAY

POINTS_MAX = 1_000_000  # of one event, and of each number of points in a book
DAYS_SUFFIX = "d"  # ends a rule of expiry by days: `90d`
MONTHS = {"month": 1, "quarter": 3, "year": 12}
NEXT = "next_"  # begins a rule of expiry at the end of the next period
PERIODS = tuple(f"{ahead}{period}" for period in MONTHS for ahead in ("", NEXT))
MONTHS_A_YEAR = 12
DAYS_A_WEEK = 7
DAYS_A_MONTH_MAX = 31
# At this time the date before is over everywhere on earth. Then the points that expire on a date are gone.
EXPIRES_AT = time(12, tzinfo=UTC)


class Period(StrEnum):
    """The period of a cap: an activity date, or the seven dates from a Monday (ISO 8601)."""

    DAY = "day"
    WEEK = "week"


@dataclass(frozen=True, slots=True)
class Cap:
    """The most points that a user's events of one type earn in a period."""

    points: int
    per: Period = Period.DAY

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
    def of(text: str | None) -> "Cap | None":
        """Read a stored cap; None where there is none. Raises ValueError for any other text."""
        points, _, per = (text or "").partition("/")
        return Cap(int(points), Period(per)) if text else None


@dataclass(frozen=True, slots=True)
class AmountRule:
    """What an event earns by a number that it has: minutes read, money spent (docs/rules.md, rule 5).

    Amounts are whole thousandths, so the result is exact.
    """

    of: str  # the property
    each: int  # the amount that earns, in thousandths, above 0
    earns: int  # points of each whole `each` that the event has

    def points(self, amount: int) -> int:
        """Return the points of an amount in thousandths. With 1 for each 5 minutes, 29 minutes earn 5."""
        return amount // self.each * self.earns


def points_left(points: int, limit: int | None, earned_by_limit: Mapping[int, int]) -> int:
    """Return how many of an event's points its cap still allows.

    limit: the points of the event's cap; None: it has no cap. earned_by_limit: the points that events of its
    type and period have earned so far, by the points of their caps. These differ if a later version of the
    book has changed the cap. So for each limit, the events whose cap is at most that limit may together earn
    no more than it.
    """
    if limit is None:
        return points
    # Almost always: the type has had one cap
    if not earned_by_limit or (len(earned_by_limit) == 1 and limit in earned_by_limit):
        return max(0, min(points, limit - earned_by_limit.get(limit, 0)))
    allowed = points
    for each_limit in {limit, *(other for other in earned_by_limit if other > limit)}:
        earned = sum(amount for other, amount in earned_by_limit.items() if other <= each_limit)
        allowed = min(allowed, each_limit - earned)
    return max(0, allowed)


def total_points(points_by_limit: Mapping[int, int]) -> int:
    """Return the points that events of one type and period earn in all, in whatever order they arrive.

    points_by_limit: their points before caps, by the points of their caps. The result is the sum of what
    points_left allows: the events up to a limit earn what those below it earn, and their own points, but no
    more than the limit together.
    """
    total = 0
    for limit in sorted(points_by_limit):
        total = min(limit, total + points_by_limit[limit])
    return total


def expires_on(rule: str, earned_for: date) -> date:
    """Return the first date on which points are no longer there (docs/rules.md, rule 11).

    rule: `90d` for 90 days later, or the end of which period: month, quarter, year, next_month, next_quarter,
    next_year.
    Raises ValueError for any other rule, and for a date beyond the calendar.
    """
    if rule.endswith(DAYS_SUFFIX):
        if (days := int(rule.removesuffix(DAYS_SUFFIX))) < 1:
            raise ValueError(f"{rule!r}: points cannot expire before they are earned")
        try:
            return earned_for + timedelta(days=days)
        except OverflowError as error:
            raise ValueError(f"{rule!r} leads beyond the calendar: {error}") from None
    months = MONTHS.get(rule.removeprefix(NEXT))
    if months is None:
        raise ValueError(f"{rule!r} is no rule of expiry")
    begun = earned_for.year * MONTHS_A_YEAR + (earned_for.month - 1) // months * months
    year, month = divmod(begun + months * _periods(rule), MONTHS_A_YEAR)
    return date(year, month + 1, 1)


def lot_date(rule: str, day: date, cap: Cap | None) -> date:
    """Return the date on which a date's points expire, which names their lot. Raises as expires_on.

    day: the activity date of the points' event. cap: of the event.

    Which events of a period get points under a cap depends on the order in which they arrive. So all points
    of the period expire together, as if they had been earned on its last date.
    """
    return expires_on(rule, cap.last(day) if cap else day)


def lifetime_days_max(rule: str) -> int:
    """Return a number of days that points never outlive, under whatever cap."""
    if rule.endswith(DAYS_SUFFIX):
        days = int(rule.removesuffix(DAYS_SUFFIX))
    else:
        days = DAYS_A_MONTH_MAX * MONTHS[rule.removeprefix(NEXT)] * _periods(rule)
    return days + DAYS_A_WEEK - 1  # under a cap of a week, points expire up to six days later


def instant_of_expiry(on: date) -> datetime:
    """Return the instant at which the points are gone that expire on a date."""
    return datetime.combine(on, EXPIRES_AT)


def last_expired(now: datetime) -> date:
    """Return the newest date on which points have expired by now."""
    return (now.astimezone(UTC) - timedelta(hours=EXPIRES_AT.hour)).date()


def _periods(rule: str) -> int:
    """Return at the end of which period points expire: 1 for the one in which they are earned."""
    return 2 if rule.startswith(NEXT) else 1
