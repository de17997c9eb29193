"""Streaks that the book declares (docs/rules.md, rule 14): a pure function of days, cover and a date; why a
period counts, and what is kept, so that nobody reads ten years of days.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import accumulate

from rules.book.book import Books, Version
from rules.book.goal_rules import Need, NeedKind, StreakPeriod, StreakRule
from rules.days import DAY
from rules.engagement.account_state import Profile
from rules.engagement.events import day_key
from rules.engagement.streak import Cover, StreakStatus

MeasuredDays = Mapping[date, Mapping[str, int]]
RuleOf = Callable[[date], StreakRule | None]  # by the first date of a period; None: nothing is asked
PERIOD_MAX = timedelta(days=31)  # no period is longer
# A day later than rules.engagement.account.SETTLED_AFTER: two writers' clocks may lie on two dates.
SETTLED_AFTER = timedelta(days=8)
# The edition of the rules of periods and achievements. What was kept by another one is counted anew.
EDITION = 2


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
BY_PAUSES = frozenset({Outcome.PAUSABLE, Outcome.COVERABLE})


@dataclass(frozen=True, slots=True)
class GoalStreak:
    """A streak after some periods."""

    length: int = 0  # 0 after a miss
    longest: int = 0
    reached: int = 0  # how many periods were, in all
    last: date | None = None  # the first date of the newest one
    spent: tuple[date, ...] = ()  # first dates of the periods that a freeze covered


def midnight(day: date) -> datetime:
    """Return the instant at which a date begins in UTC: a book comes into force everywhere at once."""
    return datetime.combine(day, time(), UTC)


def version_at(books: Books, first: date) -> Version:
    """Return the version that is in force when a period begins."""
    return books.at(midnight(first))


def judging_version(books: Books, name: str, first: date) -> tuple[Version, StreakRule | None]:
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
    return lambda first: judging_version(books, name, first)[1]


def contribution_of(need: Need, event_types: Iterable[str], days: Iterable[Mapping[str, int]]) -> int:
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
    return contribution_of(rule.need, rule.event_types, found) if found else 0


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
    """Periods one after the other, a letter each (Outcome)."""

    per: StreakPeriod
    first: date  # the first date of the first of them
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


def shown_goal_streak(
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


@dataclass(frozen=True, slots=True)
class SettledGoals:
    """What is kept of a user's streaks, so that nobody reads ten years of days: a letter a period.

    It covers the periods that ended before a date, and is kept by whoever has read their days. It follows
    from them alone, so it may be thrown away at any time. An entry that changes a day of before says so in
    the profile (Profile.past_entry), and what was kept before that entry is no longer used. Nor is what was
    kept before a version that took effect in the past.
    """

    until: date  # the periods ended before it
    head: str = ""  # the profile's newest entry then
    past: Mapping[str, PastPeriods] = field(default_factory=dict)  # by the name of the streak
    version: int = 0  # the newest of the book that was known then

    @property
    def text(self) -> str:
        """As a text: a line with date, head and version, and one for each streak."""
        named = (
            f"{name} {each.per} {each.first.isoformat()} {each.letters}"
            for name, each in sorted(self.past.items())
        )
        return "\n".join((f"{self.until.isoformat()} {self.head} {self.version} {EDITION}", *named))

    @classmethod
    def of(cls, text: str) -> "SettledGoals":
        """Read a text; raises ValueError for one that is none of these, or is of other rules."""
        until, *lines = text.split("\n")
        day, head, version, edition = until.split(" ")
        if int(edition) != EDITION:
            raise ValueError(f"edition {edition} was kept by other rules")
        past = {}
        for line in lines:
            name, per, first, letters = line.split(" ")
            for letter in set(letters):
                Outcome(letter)
            past[name] = PastPeriods(StreakPeriod(per), date.fromisoformat(first), letters)
        return cls(date.fromisoformat(day), head, past, int(version))


def unsettled_goals(books: Books) -> SettledGoals:
    """Return what is settled of a user of whom nothing is kept: all before streaks were declared."""
    declared = [each.effective_at.date() for each in books.versions if each.book.streaks]
    return SettledGoals(min(declared, default=date.max))


def is_usable(kept: SettledGoals | None, profile: Profile, books: Books) -> bool:
    """Whether nothing has changed what is kept since somebody kept it."""
    if kept is None or profile.past_entry > kept.head:
        return False
    return not is_rewritten(books, kept.version, kept.until)


def is_rewritten(books: Books, version: int, until: date) -> bool:
    """Whether a version later than a known one took effect in the past, before a date."""
    return any(
        each.effective_at < each.published_at and each.effective_at.date() < until
        for each in books.versions
        if each.number > version
    )


def settled_until(now: datetime) -> date:
    """Return the date before which days change no more, unless an entry says so in the profile."""
    return now.date() - SETTLED_AFTER


def first_date_needed(kept: SettledGoals) -> date:
    """Return the first date whose days are needed to go on: that of a month, which may be half settled."""
    return min(per.first(kept.until) for per in StreakPeriod)


@dataclass(frozen=True, slots=True)
class KnownPeriods:
    """A user's periods: those that are kept, and days from first_date_needed on."""

    kept: SettledGoals
    books: Books
    days: MeasuredDays

    def before(self, name: str, per: StreakPeriod, until: date) -> PastPeriods:
        """Return all of a streak's periods that end before a date. It may lie before what is settled.

        Periods before the first that was reached are left out.
        """
        begun = per.first(self.kept.until)
        past = self.kept.past.get(name) or PastPeriods(per, begun)
        end = per.first(until)  # the period of this date does not end before it
        if end <= past.first:
            return PastPeriods(per, end)
        if end <= begun:
            return replace(past, letters=past.letters[: per.between(past.first, end)])
        if not past.letters:  # nothing is reached before the first date that adds anything
            begun = per.first(min((day for day in self.days if begun <= day), default=end))
        rules, firsts = rule_of(self.books, name), periods(per, begun, end - DAY)
        outcomes = [(first, outcome(rules(first), per, first, self.days)) for first in firsts]
        if past.letters:
            return past.then("".join(letter for _, letter in outcomes))
        begin = next((first for first, letter in outcomes if letter is Outcome.REACHED), end)
        return PastPeriods(per, begin, "".join(letter for first, letter in outcomes if first >= begin))

    def settled(self, until: date, head: str) -> SettledGoals:
        """Return what is to be kept: all periods that end before a date, of streaks of the past, too.

        A streak that a version drops may come again with a later one, and goes on then.
        """
        pers = {name: each.per for name, each in self.kept.past.items()}
        since = version_at(self.books, first_date_needed(self.kept)).effective_at
        for version in self.books.versions:
            if since <= version.effective_at:
                pers |= {name: rule.per for name, rule in version.book.streaks.items()}
        past = {name: self.before(name, per, until) for name, per in pers.items()}
        kept = {name: each for name, each in past.items() if each.letters}
        return SettledGoals(until, head, kept, self.books.newest.number)

    def standing(
        self, name: str, per: StreakPeriod, when: date, cover: Cover
    ) -> tuple[GoalStreak, StreakStatus]:
        """Return a streak as it shows on a date."""
        first = per.first(when)
        rule = rule_of(self.books, name)(first)
        have = progress(rule, first, self.days) if rule else 0
        return shown_goal_streak(rule, self.before(name, per, first), have, cover)

    def until(self, name: str, per: StreakPeriod, when: date) -> PastPeriods:
        """Return a streak's periods up to the newest that is over on a date, or has been reached."""
        first = per.first(when)
        letter = outcome(rule_of(self.books, name)(first), per, first, self.days)
        past = self.before(name, per, first)
        return past.then(letter) if letter is Outcome.REACHED else past


class PeriodReason(StrEnum):
    """Why a period counts or does not."""

    REACHED = "reached"
    FREEZE = "covered_by_freeze"
    PAUSE = "paused"
    SKIPPED = "skipped_by_zone"
    MISSED = "missed"
    OPEN = "not_over_yet"
    UNASKED = "not_asked"
    BEFORE = "before_first_period"


def explain_period(
    past: PastPeriods, letter: Outcome, cover: Cover, *, is_over: bool, is_asked: bool = True
) -> tuple[PeriodReason, int]:
    """Say why the period after some others counts or does not; and return the streak that it leaves.

    past: all before it. letter: what it comes to, or has come to so far. is_asked: whether the book asks
    anything of it.
    """
    before, after = fold_periods(past, cover), fold_periods(past.then(letter), cover)
    per, first = past.per, past.end
    if letter is Outcome.REACHED:
        reason = PeriodReason.REACHED
    elif letter is Outcome.UNASKED and (is_over or not is_asked):
        reason = PeriodReason.UNASKED
    elif is_neutral(per, first, cover, by_pauses=letter in BY_PAUSES):
        is_skipped = is_neutral(per, first, cover, by_pauses=False)
        reason = PeriodReason.SKIPPED if is_skipped else PeriodReason.PAUSE
    elif not is_over:
        return PeriodReason.OPEN, before.length
    elif not before.reached:
        reason = PeriodReason.BEFORE
    else:
        reason = PeriodReason.FREEZE if first in after.spent else PeriodReason.MISSED
    return reason, after.length
