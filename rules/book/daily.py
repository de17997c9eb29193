"""What a book says of dates: when they begin, on which weekdays one without activity is no miss, and which
boards and leagues count them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from rules.book.board_rules import BoardRule, board_rules
from rules.book.league_rules import LeagueRules, league_rules
from rules.days import AT_MIDNIGHT, DAY, DayStarts

REPAIRED_MAX = 7  # the most that RepairRules.within_days and dates_max may be
REST_DAYS_MAX = 6  # a week has at least one date on which something is asked for
MIDNIGHT = time()
DAY_START = "^(0[0-5]:[0-5][0-9]|06:00)$"  # up to rules.days.LATEST_START


class Weekday(IntEnum):
    """A day of the week, numbered as date.weekday() does."""

    MONDAY = 0
    TUESDAY = 1
    WEDNESDAY = 2
    THURSDAY = 3
    FRIDAY = 4
    SATURDAY = 5
    SUNDAY = 6

    @classmethod
    def of(cls, name: str) -> "Weekday":
        """Return the weekday of a name in small letters; raises ValueError for any other text."""
        for weekday in cls:
            if weekday.name.lower() == name:
                return weekday
        raise ValueError(f"{name} is no weekday")


def weekday_names(weekdays: Iterable[Weekday]) -> list[str]:
    """Return the names of weekdays, from Monday on: `["saturday", "sunday"]`."""
    return [weekday.name.lower() for weekday in sorted(weekdays)]


WEEKDAYS = weekday_names(Weekday)


@dataclass(frozen=True, slots=True)
class DailyRules:
    """The rest days of a book, when its dates begin, its boards and leagues.

    It has weekdays, or lets users choose some, and not both.
    """

    rest_days: frozenset[Weekday] = frozenset()
    chosen_max: int = 0  # how many weekdays a user may choose
    # When a date begins by the clock on the wall. A date that the rules judge ends so on the next one.
    day_starts_at: time = MIDNIGHT
    boards: tuple[BoardRule, ...] = ()  # those that begin with the next date (rules/engagement/periods.py)
    leagues: LeagueRules | None = None  # on one of the boards (rules/engagement/leagues.py)

    @property
    def rest(self) -> tuple[frozenset[Weekday], int]:
        """What the rules say of dates."""
        return self.rest_days, self.chosen_max


NO_REST = DailyRules()
DailyTerms = tuple[tuple[date, DailyRules], ...]  # rules, each from its date on until the next


def daily_rules(
    section: Mapping[str, Any] | None,
    boards: Mapping[str, Any] | None = None,
    leagues: Mapping[str, Any] | None = None,
) -> DailyRules:
    """Return what a document's sections `daily`, `boards` and `leagues` say; None: it has none."""
    if not section:
        return DailyRules(boards=board_rules(boards), leagues=league_rules(leagues)) if boards else NO_REST
    weekdays = frozenset(map(Weekday.of, section.get("rest_days", ())))
    return DailyRules(
        weekdays,
        section.get("rest_days_chosen", 0),
        time.fromisoformat(section.get("day_starts_at", "00:00")),
        board_rules(boards),
        league_rules(leagues),
    )


class DatedRules(NamedTuple):
    """What a version says, and since when."""

    number: int
    effective_at: datetime
    published_at: datetime
    rules: DailyRules


def daily_terms(versions: Iterable[DatedRules]) -> DailyTerms:
    """Return what versions say of dates: rules, each from its date on until the next; empty for NO_REST.

    The version that is in force when a date begins in UTC judges it, among those that had been published by
    then; before any had been, the one with the lowest number. So a version that takes effect in the past
    changes no date that has begun. versions: at least one.
    """
    in_order = sorted(versions, key=lambda version: (version.effective_at, version.number))
    first = min(in_order, key=lambda version: version.number)
    terms = [(date.min, first.rules)]
    for day in sorted({_first_date_at(_known_in_force_at(version)) for version in in_order}):
        begins = datetime.combine(day, time(), UTC)
        rules = [version.rules for version in in_order if _known_in_force_at(version) <= begins][-1]
        if rules != terms[-1][1]:
            terms.append((day, rules))
    return tuple(terms) if len(terms) > 1 or terms[0][1] != NO_REST else ()


@lru_cache(maxsize=64)
def day_starts(terms: DailyTerms) -> DayStarts:
    """Return when dates begin.

    The version that judges a date says when the date ends: so its own start is that of the next date. By then
    every process has known the version for hours, wherever the date begins. And each date begins once.
    """
    starts = [(since, rules.day_starts_at) for since, rules in terms]
    if all(start == MIDNIGHT for _, start in starts):
        return AT_MIDNIGHT
    return tuple((since if since == date.min else since + DAY, start) for since, start in starts)


@lru_cache(maxsize=64)
def short_dates(terms: DailyTerms) -> frozenset[date]:
    """Return the dates that end earlier by the clock than they began, because a version moved the start.

    Nobody who comes once in 24 hours is sure to come on one of them, so they are no misses.
    """
    starts = day_starts(terms)
    changes = ((before, since, start) for (_, before), (since, start) in pairwise(starts))
    return frozenset(since - DAY for before, since, start in changes if start < before)


def with_starts_of(terms: DailyTerms, others: DailyTerms) -> DailyTerms:
    """Return terms with the rest days that they have, and all else of others."""
    mixed: list[tuple[date, DailyRules]] = []
    for day in sorted({since for since, _ in (*terms, *others)}):
        other = rules_on(day, others)
        rest = rules_on(day, terms)
        rules = replace(other, rest_days=rest.rest_days, chosen_max=rest.chosen_max)
        if not mixed or rules != mixed[-1][1]:
            mixed.append((day, rules))
    return tuple(mixed) if len(mixed) > 1 or any(rules != NO_REST for _, rules in mixed) else ()


def rules_on(day: date, terms: DailyTerms) -> DailyRules:
    """Return the rules that judge a date."""
    return next((rules for since, rules in reversed(terms) if since <= day), NO_REST)


def _known_in_force_at(version: DatedRules) -> datetime:
    return max(version.effective_at, version.published_at)


def _first_date_at(instant: datetime) -> date:
    """Return the first date that begins at an instant or later, in UTC."""
    day = instant.astimezone(UTC).date()
    return day if datetime.combine(day, time(), UTC) == instant else day + DAY


@dataclass(frozen=True, slots=True)
class RepairRules:
    """What it costs to repair the run that has just broken, and how much may be repaired."""

    price_points: int  # the price of each repaired date
    within_days: int  # so many dates after the first missed one it can be repaired
    dates_max: int  # how many dates one repair may cover; 0: there are no repairs
    a_year: int  # how many of any 365 dates in a row a user may repair


NO_REPAIRS = RepairRules(0, 0, 0, 0)
