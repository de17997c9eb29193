"""Gives ledgers what the book says now that they lack (docs/rules.md, rule 12).

What a ledger lacks follows from its entries and the book alone. Each transaction appends some of it, on
condition that nobody else has written. So a run that died goes on where it was; a second one writes nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import islice

from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved
from adapters.engagement.points.settling import Settler
from adapters.platform.aws import pauses
from rules.book.book import Books
from rules.days import DAY, stamp
from rules.engagement.account import decide
from rules.engagement.account_state import Account, Profile
from rules.engagement.points import Slot, balancing_entries, entries_of_weeks, monday_of, shortfalls

ENTRIES_MAX = 20  # of a transaction, which writes as many days
APART_MAX = 2 * DAY  # of an event's instant and the date that it counts for


@dataclass(frozen=True, slots=True)
class Rerating:
    """What is rated: dates from the Monday `first` on, by some books. reason: what the entries say."""

    first: date
    books: Books
    reason: str

    @classmethod
    def since(cls, day: date, books: Books, reason: str) -> "Rerating":
        """Return the rating of the week of a date, and all later ones: a cap may be over a week."""
        return cls(monday_of(day), books, reason)

    @property
    def place(self) -> str:
        """Entries of these dates stand after this place."""
        return stamp(datetime.combine(self.first, time(), UTC) - APART_MAX)


@dataclass(frozen=True, slots=True)
class Rated:
    """What became of an account. points: the sum of what is appended. before, after: its balance."""

    user_id: str
    points: int
    entries: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Rerater:
    """Rates accounts, one at a time."""

    accounts: AccountStore
    settler: Settler
    cache: EngagementCache

    def asked(self, profile: Profile, rating: Rerating) -> Rated:
        """Return what would become of an account, as far as is applied by now; writes nothing.

        What expires by it is left out.
        """
        changes = self._lacking(profile, rating)
        points = sum(changes.values())
        balance = profile.balance
        return Rated(profile.user_id, points, len(changes), balance, balance + points)

    def rate(self, user_id: str, rating: Rerating, now: datetime) -> Rated:
        """Append what an account lacks; then what has expired by it. Raises AccountContended."""
        before: int | None = None
        points = entries = 0
        for _ in pauses(ATTEMPTS_MAX):
            profile = self.settler.settle(user_id, now)
            before = profile.balance if before is None else before
            changes = self._lacking(profile, rating)
            try:
                for some in _parts(changes):
                    profile = self._append(profile, some, rating, now)
                    points, entries = points + sum(some.values()), entries + len(some)
            except (HeadMoved, ProjectionMoved):
                continue
            if changes:
                profile = self.settler.settle(user_id, now)
                self.cache.write_through([profile])
            return Rated(user_id, points, entries, before, profile.balance)
        raise AccountContended(user_id)

    def _lacking(self, profile: Profile, rating: Rerating) -> dict[Slot, int]:
        head = profile.head
        if head is None or head.created_at < rating.place:
            return {}
        entries = self.accounts.ledger.after(profile.user_id, rating.place)[0]
        drafts = [each.draft for each in entries if each.created_at <= head.created_at]
        return shortfalls(entries_of_weeks(drafts, rating.first, date.max), rating.books)

    def _append(
        self, profile: Profile, changes: Mapping[Slot, int], rating: Rerating, now: datetime
    ) -> Profile:
        drafts = balancing_entries(changes, rating.books.newest.number, rating.reason)
        dates = {slot.activity_date for slot in changes}
        found = self.accounts.days((profile.user_id, day) for day in dates)
        days = {day: found.get((profile.user_id, day)) for day in dates}
        account = Account(profile, days)
        decision = self.accounts.decide(account, lambda each: decide(each, (), now, drafts))
        self.accounts.commit_at_once(decision)
        self.cache.write_through([decision.profile], decision.days.values())
        return decision.profile


def _parts(changes: Mapping[Slot, int]) -> Iterator[dict[Slot, int]]:
    """Yield what is lacking in parts, those of a week together as far as they fit into a transaction."""
    left = iter(sorted(changes.items(), key=lambda each: (monday_of(each[0].activity_date), each[0].order)))
    while some := dict(islice(left, ENTRIES_MAX)):
        yield some
