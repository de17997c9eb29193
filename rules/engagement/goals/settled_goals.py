"""What is kept of a user's streaks, so that nobody reads ten years of days: a letter a period.

It covers the periods that ended before a date, and is kept by whoever has read their days. It follows from
them alone, so it may be thrown away at any time. An entry that changes a day of before says so in the profile
(Profile.past_entry), and what was kept before that entry is no longer used. Nor is what was kept before a
version that took effect in the past.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from rules.book.book import Books
from rules.book.goal_rules import StreakPeriod
from rules.days import DAY
from rules.engagement.account_state import Profile
from rules.engagement.goals.goal_streaks import (
    MeasuredDays,
    Outcome,
    PastPeriods,
    outcome,
    periods,
    rule_of,
    version_at,
)

# A day later than rules.engagement.absorbing.SETTLED_AFTER: two writers' clocks may lie on two dates.
SETTLED_AFTER = timedelta(days=8)
# Of the rules by which periods and achievements are told. What was kept by others is counted anew.
EDITION = 2


@dataclass(frozen=True, slots=True)
class SettledGoals:
    """Periods that ended before a date, by the name of the streak.

    head: the profile's newest entry then. version: the newest of the book that was known then.
    """

    until: date
    head: str = ""
    past: Mapping[str, PastPeriods] = field(default_factory=dict)
    version: int = 0

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


def nothing_settled(books: Books) -> SettledGoals:
    """Return what is settled of a user of whom nothing is kept: all before streaks were declared."""
    declared = [each.effective_at.date() for each in books.versions if each.book.streaks]
    return SettledGoals(min(declared, default=date.max))


def is_usable(kept: SettledGoals | None, profile: Profile, books: Books) -> bool:
    """Whether nothing has changed what is kept since somebody kept it."""
    if kept is None or profile.past_entry > kept.head:
        return False
    return not is_rewritten(books, kept.version, kept.until)


def is_rewritten(books: Books, known: int, until: date) -> bool:
    """Whether a version later than a known one took effect in the past, before a date."""
    return any(
        each.effective_at < each.published_at and each.effective_at.date() < until
        for each in books.versions
        if each.number > known
    )


def settled_until(now: datetime) -> date:
    """Return the date before which days change no more, unless an entry says so in the profile."""
    return now.date() - SETTLED_AFTER


def reads_from(kept: SettledGoals) -> date:
    """Return the first date whose days are needed to go on: that of a month, which may be half settled."""
    return min(per.first(kept.until) for per in StreakPeriod)


@dataclass(frozen=True, slots=True)
class KnownPeriods:
    """A user's periods: those that are kept, and days from reads_from on."""

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
        told = [(first, outcome(rules(first), per, first, self.days)) for first in firsts]
        if past.letters:
            return past.then("".join(letter for _, letter in told))
        begin = next((first for first, letter in told if letter is Outcome.REACHED), end)
        return PastPeriods(per, begin, "".join(letter for first, letter in told if first >= begin))

    def settled(self, until: date, head: str) -> SettledGoals:
        """Return what is to be kept: all periods that end before a date, of streaks of the past, too.

        A streak that a version drops may come again with a later one, and goes on then.
        """
        pers = {name: each.per for name, each in self.kept.past.items()}
        since = version_at(self.books, reads_from(self.kept)).effective_at
        for version in self.books.versions:
            if since <= version.effective_at:
                pers |= {name: rule.per for name, rule in version.book.streaks.items()}
        past = {name: self.before(name, per, until) for name, per in pers.items()}
        kept = {name: each for name, each in past.items() if each.letters}
        return SettledGoals(until, head, kept, self.books.newest.number)
