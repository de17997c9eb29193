"""Reads a user's streaks that the book declares: an item and the days of two months; once all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from adapters.book import BookStore
from adapters.engagement.account_store import AccountStore
from adapters.engagement.goals.goal_store import GoalStore
from rules.book.book import Books
from rules.book.goal_rules import StreakPeriod
from rules.engagement.account_state import Profile, date_at
from rules.engagement.achievements import StreakHistory
from rules.engagement.goals import (
    KnownPeriods,
    Outcome,
    is_usable,
    nothing_settled,
    outcome,
    reads_from,
    rule_of,
    settled_until,
)

# What is kept is renewed when it has come to be so much older than it could be.
RENEWED_AFTER = timedelta(days=28)


def periods_of(books: Books, now: datetime) -> Mapping[str, StreakPeriod]:
    """Return the streaks of the book in force, with their periods."""
    return {name: rule.per for name, rule in books.at(now).book.streaks.items()}


@dataclass(frozen=True, slots=True)
class StreakReader:
    """Reads periods of streaks, and keeps what it finds settled."""

    accounts: AccountStore
    store: GoalStore
    book_store: BookStore

    def periods(
        self, profile: Profile, first: date, last: date, now: datetime, *, is_strong: bool = False
    ) -> tuple[Profile, KnownPeriods]:
        """Return a user's whole profile, and all periods up to a date.

        first: the first date of the earliest period whose days are asked for. Raises AccountContended if the
        profile's archive is damaged.
        """
        profile = self.accounts.whole(profile)
        books, kept = self.book_store.books(), self.store.get(profile.user_id)
        usable = kept if kept and is_usable(kept, profile, books) else nothing_settled(books)
        upto, since = settled_until(now), reads_from(usable)
        renew = upto - usable.until > RENEWED_AFTER and profile.head is not None
        until = max(last, upto) if renew else last
        found = self.store.days(profile.user_id, min(first, since), until, is_strong=renew or is_strong)
        if renew and profile.head:
            usable = KnownPeriods(usable, books, found).settled(upto, profile.head.created_at)
            self.store.put(profile.user_id, usable)
        return profile, KnownPeriods(usable, books, {day: each for day, each in found.items() if day <= last})

    def history(
        self, profile: Profile, names: Iterable[str], now: datetime, *, is_strong: bool = False
    ) -> tuple[Profile, StreakHistory]:
        """Return a user's whole profile, and some streaks up to the newest period over or reached."""
        books = self.book_store.books()
        pers = {name: per for name, per in periods_of(books, now).items() if name in set(names)}
        if not pers:
            profile = self.accounts.whole(profile)
            return profile, StreakHistory({}, profile.cover, books)
        when = date_at(profile, now)
        first_of_all = min(per.first(when) for per in pers.values())
        profile, known = self.periods(profile, first_of_all, when, now, is_strong=is_strong)
        periods = {}
        for name, per in pers.items():
            first = per.first(when)
            letter = outcome(rule_of(books, name)(first), per, first, known.days)
            past = known.before(name, per, first)
            periods[name] = past.then(letter) if letter is Outcome.REACHED else past
        return profile, StreakHistory(periods, profile.cover, books)
