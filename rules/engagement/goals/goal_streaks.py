"""Streaks that the book declares (docs/rules.md, rule 14): a pure function of days, cover and a date.

Each period (a date, a week, a month) is judged by the version of the book that is in force when it begins, at
midnight UTC of its first date. If that one lacks the streak, the first version within the period that has it
judges it: such a period counts if it is reached, and is no miss if it is not. So whatever is published later
takes nothing away from a period that has begun. A period is told by one letter (Outcome). The fold goes over
these letters, from the first period that was reached.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import accumulate

from rules.book.book import Books, Version
from rules.book.goal_rules import Need, NeedKind, StreakPeriod, StreakRule
from rules.days import DAY
from rules.engagement.goals.measures import day_key
from rules.engagement.streaks import Cover, StreakStatus

MeasuredDays = Mapping[date, Mapping[str, int]]
RuleOf = Callable[[date], StreakRule | None]  # by the first date of a period; None: nothing is asked


class Outcome(StrEnum):
    """What became of a period: reached, not asked for, or missed; and what may cover it if it was missed."""

    REACHED = "R"
    UNASKED = "-"
    MISSED = "m"
    FREEZABLE = "f"
    PAUSABLE = "p"
    COVERABLE = "b"  # by freezes and by pauses


MISSED = {
    (False, False): Outcome.MISSED,
    (True, False): Outcome.FREEZABLE,
    (False, True): Outcome.PAUSABLE,
    (True, True): Outcome.COVERABLE,
}
BY_FREEZES = frozenset({Outcome.FREEZABLE, Outcome.COVERABLE})
PERIOD_MAX = timedelta(days=31)  # no period is longer
BY_PAUSES = frozenset({Outcome.PAUSABLE, Outcome.COVERABLE})


@dataclass(frozen=True, slots=True)
class GoalStreak:
    """A streak after some periods. length: 0 after a miss. reached: how many periods were, in all.

    last: the first date of the newest one. spent: first dates of the periods that a freeze covered.
    """

    length: int = 0
    longest: int = 0
    reached: int = 0
    last: date | None = None
    spent: tuple[date, ...] = ()


def midnight(day: date) -> datetime:
    """Return the instant at which a date begins in UTC: a book comes into force everywhere at once."""
    return datetime.combine(day, time(), UTC)


def version_at(books: Books, first: date) -> Version:
    """Return the version that is in force when a period begins."""
    return books.at(midnight(first))


def judging(books: Books, name: str, first: date) -> tuple[Version, StreakRule | None]:
    """Return the version that judges a streak's period, and its rule; None: nothing is asked."""
    begun = version_at(books, first)
    if (rule := begun.book.streaks.get(name)) is not None:
        return begun, rule
    for version in books.beginning(midnight(first), midnight(first) + PERIOD_MAX):
        if (rule := version.book.streaks.get(name)) is not None:
            if version.effective_at < midnight(rule.per.after(first)):
                return version, replace(rule, is_opening=True)
            break
    return begun, None


def rule_of(books: Books, name: str) -> RuleOf:
    """Return which rule each period of a streak has."""
    return lambda first: judging(books, name, first)[1]


def contributed(need: Need, event_types: Iterable[str], days: Iterable[Mapping[str, int]]) -> int:
    """Return what days have of what a period needs: dates, events, or thousandths of a sum."""
    keys = [day_key(each, need.property) for each in event_types]
    found = [sum(day.get(key, 0) for key in keys) for day in days]
    return sum(map(bool, found)) if need.kind is NeedKind.ACTIVE_DAYS else sum(found)


def dates_of(per: StreakPeriod, first: date) -> list[date]:
    """Return a period's dates."""
    if per is StreakPeriod.DAY:
        return [first]
    return [first + number * DAY for number in range((per.after(first) - first).days)]


def progress(rule: StreakRule, first: date, days: MeasuredDays) -> int:
    """Return what a period has of what it needs, of all its days."""
    found = [days[each] for each in dates_of(rule.per, first) if each in days]
    return contributed(rule.need, rule.event_types, found) if found else 0


def outcome(rule: StreakRule | None, per: StreakPeriod, first: date, days: MeasuredDays) -> Outcome:
    """Return what a period that is over comes to.

    A rule of another period asks nothing, and neither does the opening one if the period is not reached.
    """
    if rule is None or rule.per is not per:
        return Outcome.UNASKED
    if progress(rule, first, days) >= rule.need.at_least:
        return Outcome.REACHED
    return Outcome.UNASKED if rule.is_opening else MISSED[rule.freezes, rule.pauses]


def periods(per: StreakPeriod, since: date, until: date) -> Iterator[date]:
    """Yield the first dates of the periods from that of one date to that of another, both included."""
    first = per.first(since)
    while first <= until:
        yield first
        first = per.after(first)


def outcomes(rules: RuleOf, per: StreakPeriod, days: MeasuredDays, since: date, until: date) -> str:
    """Return the letters of the periods from that of one date to that of another, both included."""
    return "".join(outcome(rules(first), per, first, days) for first in periods(per, since, until))


def is_neutral(per: StreakPeriod, first: date, cover: Cover, *, by_pauses: bool) -> bool:
    """Whether a missed period is no miss: most of its dates were paused or skipped by the user's zone.

    by_pauses: whether pauses count for the streak.
    """
    dates = dates_of(per, first)
    neutral = sum(day in cover.skipped or (by_pauses and cover.is_neutral(day)) for day in dates)
    return 2 * neutral > len(dates)


class Grants:
    """How many freezes were granted up to a date, of a cover that has put nothing away."""

    def __init__(self, cover: Cover) -> None:
        changes = sorted(cover.freezes)
        self._dates = [day for day, _ in changes]
        self._sums = list(accumulate((change for _, change in changes), initial=0))

    def up_to(self, day: date) -> int:
        """Return the sum of grants and returns of these dates."""
        return self._sums[bisect_right(self._dates, day)]


@dataclass(frozen=True, slots=True)
class PastPeriods:
    """Periods one after the other, a letter each (Outcome). first: the first date of the first of them."""

    per: StreakPeriod
    first: date
    letters: str = ""

    @property
    def end(self) -> date:
        """The first date of the period after them."""
        return self.per.later(self.first, len(self.letters))

    def then(self, letters: str) -> "PastPeriods":
        """Return these periods with those that follow."""
        return replace(self, letters=self.letters + letters)


def fold_periods(past: PastPeriods, cover: Cover) -> GoalStreak:
    """Return the streak after some periods.

    Each streak uses a freeze for itself: the same one may cover a date of the daily streak, too.
    """
    per, grants = past.per, Grants(cover)
    length, longest, newest, spent = 0, 0, -1, list[date]()
    for number, letter in enumerate(past.letters):
        if letter == Outcome.REACHED:
            length, newest = length + 1, number
            longest = max(longest, length)
        elif length and letter != Outcome.UNASKED:  # a miss after a miss costs nothing
            first = per.later(past.first, number)
            if _is_covered(per, first, letter, cover):
                continue
            if letter in BY_FREEZES and grants.up_to(per.last(first)) > len(spent):
                spent.append(first)
            else:
                length = 0
    last = per.later(past.first, newest) if newest >= 0 else None
    return GoalStreak(length, longest, past.letters.count(Outcome.REACHED), last, tuple(spent))


def _is_covered(per: StreakPeriod, first: date, letter: str, cover: Cover) -> bool:
    return is_neutral(per, first, cover, by_pauses=letter in BY_PAUSES)


def shown(
    rule: StreakRule | None, past: PastPeriods, have: int, cover: Cover
) -> tuple[GoalStreak, StreakStatus]:
    """Return a streak as it shows in the period after some. rule: None where that one asks nothing.

    have: what it has of what it needs. It is no miss before it is over.
    """
    is_reached = rule is not None and have >= rule.need.at_least
    state = fold_periods(past.then(Outcome.REACHED if is_reached else Outcome.UNASKED), cover)
    if is_reached:
        status = StreakStatus.ACTIVE
    elif not state.length:
        status = StreakStatus.BROKEN if state.reached else StreakStatus.NONE
    elif rule is None or rule.is_opening or is_neutral(past.per, past.end, cover, by_pauses=rule.pauses):
        status = StreakStatus.ACTIVE
    else:
        status = StreakStatus.AT_RISK
    return state, status
