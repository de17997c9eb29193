"""The periods of boards: their dates and names, when they end, and which boards count in them.

A period is two dates, so boards whose periods have the same dates share them, and what is counted in them.
Nothing else maps a board to dates: counters, snapshots, lists, history, leagues and SQL's rows ask here.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache

from rules.book.board_rules import BoardPeriod, BoardRule
from rules.book.daily import DailyTerms, day_starts, rules_on
from rules.book.goal_rules import StreakPeriod
from rules.days import DAY, GREATEST_OFFSET, LEAST_OFFSET, start_of

EVERYWHERE = "-12:00"  # a date ends here last
FINAL_AFTER = timedelta(hours=72)  # an event without a receipt may be so late (rule 3)
# A counter is kept for so long after the end has become final: a closing may be two weeks late.
COUNTED_AFTER = timedelta(days=15)
WEEKLY = BoardRule("", BoardPeriod.WEEK)  # a board with the periods of leagues
WEEK_NAME = re.compile(r"(\d{4})-W(\d{2})", re.ASCII)
MONTH_NAME = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
SEASON_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})--(\d{4}-\d{2}-\d{2})", re.ASCII)
NAMES = "2026-W48, 2026-11, or the first and the last date of a season: 2027-06-01--2027-08-31"


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """The dates of one contest, all from the first to the last."""

    first: date
    last: date  # included

    @property
    def name(self) -> str:
        """The name: `2026-W48` of a week, `2026-11` of a month, else both dates (ISO 8601, 4.4.4.2).

        Example: `2027-06-01--2027-08-31`. The year of a week is that of its Thursday.
        """
        if self == _around(StreakPeriod.WEEK, self.first):
            year, week, _ = self.first.isocalendar()
            return f"{year:04}-W{week:02}"
        if self == _around(StreakPeriod.MONTH, self.first):
            return f"{self.first:%Y-%m}"
        return f"{self.first}--{self.last}"

    def has(self, day: date) -> bool:
        """Whether a date is in the period."""
        return self.first <= day <= self.last


def period_of(rule: BoardRule, day: date) -> Period | None:
    """Return a board's period that a date is in; None if the date is outside the board's only one."""
    if rule.per is not None:
        return _around(StreakPeriod(rule.per), day)
    if rule.first is None or rule.last is None:
        return None
    season = Period(rule.first, rule.last)
    return season if season.has(day) else None


def period_named(name: str) -> Period:
    """Return the period of a name; raises ValueError, with the reason, for any other text."""
    try:
        if match := WEEK_NAME.fullmatch(name):
            first = date.fromisocalendar(int(match[1]), int(match[2]), 1)
            return _around(StreakPeriod.WEEK, first)
        if match := MONTH_NAME.fullmatch(name):
            return _around(StreakPeriod.MONTH, date(int(match[1]), int(match[2]), 1))
        if match := SEASON_NAME.fullmatch(name):
            season = Period(date.fromisoformat(match[1]), date.fromisoformat(match[2]))
            if season.first <= season.last and season.name == name:
                return season
    except (ValueError, OverflowError) as error:
        raise ValueError(f"is no period that exists: {error}") from None
    raise ValueError(f"must be a period's name: {NAMES}")


def period_before(rule: BoardRule, period: Period) -> Period | None:
    """Return a board's period before one of its own; None for the only one."""
    return period_of(rule, period.first - DAY) if rule.per is not None else None


def first_period_from(rule: BoardRule, day: date) -> Period | None:
    """Return a board's first period that begins on a date or later; None if there is none."""
    period = period_of(rule, max(day, rule.first or day))
    if period and period.first < day:
        return period_of(rule, period.last + DAY) if rule.per else None
    return period


@lru_cache(maxsize=256)
def ends_at(period: Period, terms: DailyTerms) -> datetime:
    """Return the instant (UTC) at which a period has ended everywhere on earth: in the zone UTC-12.

    terms: of the books (Books.daily_terms). They say when the date after the last one begins. That is certain
    once the last date has begun.
    """
    return start_of(period.last + DAY, EVERYWHERE, day_starts(terms))


def final_at(period: Period, terms: DailyTerms) -> datetime:
    """Return the instant from which on no entry of the ledger changes the standing."""
    return ends_at(period, terms) + FINAL_AFTER


def counted_until(period: Period, terms: DailyTerms) -> datetime:
    """Return the instant until which profiles keep what they have counted in a period."""
    return final_at(period, terms) + COUNTED_AFTER


def begins_at(period: Period) -> datetime:
    """Return the instant (UTC) at which a period's first date begins anywhere, at midnight: in UTC+14."""
    return start_of(period.first, "+14:00", ())


def boards_in(period: Period, terms: DailyTerms) -> tuple[BoardRule, ...]:
    """Return the boards that count in a period, by name.

    They are those of the version that judges the date before the period: the one in force when that date
    begins in UTC. So every process has known it for hours when the period begins anywhere, and no later
    version changes what has begun.
    """
    declared = rules_on(period.first - DAY, terms).boards if period.first > date.min else ()
    return tuple(rule for rule in declared if period_of(rule, period.first) == period)


def period_with(board: str, day: date, terms: DailyTerms) -> Period | None:
    """Return the period of a board, by name, that has a date; None if the board does not count on it."""
    periods = counting_periods(day, terms)
    return next(
        (each for each in periods if any(rule.name == board for rule in boards_in(each, terms))), None
    )


@lru_cache(maxsize=1024)
def counting_periods(day: date, terms: DailyTerms) -> tuple[Period, ...]:
    """Return the periods in which boards count a date's points, the earliest first."""
    rules = {rule for _, judging in terms for rule in judging.boards}
    periods = {period for rule in rules if (period := period_of(rule, day))}
    return tuple(sorted(period for period in periods if boards_in(period, terms)))


def closed_periods(day: date, came: datetime, terms: DailyTerms) -> list[Period]:
    """Return the periods that have a date, and in which nothing counts for it any more. came: the event."""
    return [period for period in counting_periods(day, terms) if final_at(period, terms) <= came]


def periods_between(since: date, until: date, terms: DailyTerms) -> list[Period]:
    """Return the periods in which boards count that have a date of a span, both ends included."""
    found: set[Period] = set()
    for rule in {rule for _, judging in terms for rule in judging.boards}:
        day = since if rule.per else max(since, rule.first or since)
        while day <= until and (period := period_of(rule, day)):
            found.add(period)
            day = period.last + DAY
    return sorted(period for period in found if boards_in(period, terms))


def unfinished_periods(now: datetime, terms: DailyTerms) -> list[Period]:
    """Return the periods that have begun somewhere and are not final yet, the earliest first."""
    latest = (now + GREATEST_OFFSET).date()
    earliest = (now + LEAST_OFFSET - FINAL_AFTER).date() - DAY
    periods = periods_between(earliest, latest, terms)
    return [period for period in periods if begins_at(period) <= now < final_at(period, terms)]


def _around(per: StreakPeriod, day: date) -> Period:
    first = per.first(day)
    return Period(first, per.last(first))
