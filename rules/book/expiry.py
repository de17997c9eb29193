"""When points expire (docs/rules.md, rule 11): on a date that follows from the one they were earned for.

A rule is a text: `90d` for 90 days later, or the end of which period: month, quarter, year, next_month,
next_quarter, next_year.
"""

from datetime import UTC, date, datetime, time, timedelta

from rules.book.caps import Cap

DAYS = "d"
MONTHS = {"month": 1, "quarter": 3, "year": 12}
NEXT = "next_"
PERIODS = tuple(f"{ahead}{period}" for period in MONTHS for ahead in ("", NEXT))
MONTHS_A_YEAR = 12
DAYS_A_WEEK = 7
# The points of a date are there until that date is over everywhere on earth.
EXPIRES_AT = time(12, tzinfo=UTC)


def expires_on(rule: str, earned_for: date) -> date:
    """Return the first date on which points are no longer there.

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


def lasts_days_max(rule: str) -> int:
    """Return a number of days that points never outlive, under whatever cap."""
    months = MONTHS.get(rule.removeprefix(NEXT), 0) * (2 if rule.startswith(NEXT) else 1)
    return (31 * months if months else int(rule.removesuffix(DAYS))) + DAYS_A_WEEK - 1


def instant_of_expiry(on: date) -> datetime:
    """Return the instant at which what expires on a date is gone."""
    return datetime.combine(on, EXPIRES_AT)


def last_expired(now: datetime) -> date:
    """Return the newest date on which points have expired by now."""
    return (now.astimezone(UTC) - timedelta(hours=EXPIRES_AT.hour)).date()
