"""Writes what has expired (docs/rules.md, rule 11): before a command, and by the hourly run. Gives ledgers
what the book says now that they lack (rule 12).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import islice

from adapters.book import BookStore
from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from rules.book.book import Books
from rules.book.book_schema import DAYS_MAX
from rules.book.point_rules import expires_on, instant_of_expiry, last_expired, lifetime_days_max
from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.engagement.account import bump_version, decide
from rules.engagement.account_state import Account, Profile
from rules.engagement.lots import Position, Settlement, settlement_of
from rules.engagement.points import (
    Slot,
    balancing_entries,
    entries_of_weeks,
    monday_of,
    place_before,
    shortfalls,
)

ENTRIES_MAX = 20  # of a transaction, which writes as many days


def clock_of(profile: Profile, now: datetime) -> datetime:
    """Return the instant that an account has reached: now, or its newest entry's if that clock is ahead."""
    return max(now, unstamp(profile.head.created_at) if profile.head else EPOCH)


def is_due(profile: Profile, now: datetime) -> bool:
    """Whether points of an account may have expired that no entry has noted yet."""
    return profile.expiry.is_due(clock_of(profile, now))


@dataclass(frozen=True, slots=True)
class Settler:
    """Settles what has expired of an account."""

    accounts: AccountStore
    books: BookStore  # by which rules points expire

    def settle(self, user_id: str, now: datetime) -> Profile:
        """Write what has expired by now, and return the profile. Raises AccountContended."""
        for _ in pauses(ATTEMPTS_MAX):
            account = self.accounts.settle(user_id, now)
            done = self.of(account.profile, now)
            if not done.drafts and done.expiry == account.profile.expiry:
                return account.profile
            try:
                profile = self._write(account, done, now)
            except (HeadMoved, ProjectionMoved):
                continue
            if not is_due(profile, now):
                return profile
        raise AccountContended(user_id)

    def _write(self, account: Account, done: Settlement, now: datetime) -> Profile:
        profile = account.profile
        if not done.drafts:
            # No transaction notices here that somebody has written entries: their days may have been read,
            # and the profile does not count them yet.
            newest = self.accounts.ledger.newest(profile.user_id)
            if newest and (profile.head is None or newest.created_at != profile.head.created_at):
                raise HeadMoved(())
            profile = bump_version(profile, replace(profile, expiry=done.expiry), now)
            self.accounts.put_profile(profile)
            return profile
        decision = self.accounts.decide(account, lambda each: decide(each, (), now, done.drafts))
        decision = replace(decision, profile=replace(decision.profile, expiry=done.expiry))
        self.accounts.commit_at_once(decision)
        return decision.profile

    def of(self, profile: Profile, now: datetime) -> Settlement:
        """Return what is to be written of an account none of whose entries are pending."""
        if not is_due(profile, now):
            return Settlement([], profile.expiry)
        return settlement_of(self._position(profile, now), clock_of(profile, now))

    def _position(self, profile: Profile, now: datetime) -> Position:
        first, head = profile.expiry.next_on or date.max, profile.head
        place = stamp(instant_of_expiry(first) - MICROSECOND)
        entries = self.accounts.ledger.after(profile.user_id, place)[0]
        return Position(
            profile.expiry,
            profile.balance,
            profile.total_points,
            self._lots(profile.user_id, first, last_expired(clock_of(profile, now))),
            [each for each in entries if head and each.created_at <= head.created_at],
            [each for each in profile.holds if each.is_open(now)],
        )

    def _lots(self, user_id: str, first: date, until: date) -> Counter[date]:
        """Return the points that expire on a date or later, up to the first such date after `until`."""
        # A lot of a version that this process does not know yet would be passed over, and never expire.
        rules = expiry_rules(self.books.look())
        longest = max(map(lifetime_days_max, rules), default=DAYS_MAX)
        lots: Counter[date] = Counter()
        following = date.max
        for day, some in self.accounts.lots(user_id, first - timedelta(days=longest)):
            if min((expires_on(rule, day) for rule in rules), default=first) > following:
                break
            lots.update({on: points for on, points in some.items() if on >= first})
            # A lot that was emptied (rule 12) says nothing of what follows.
            following = min([following, *(on for on in some if on > until and some[on] > 0)])
        return lots


def expiry_rules(books: Books) -> set[str]:
    """Return the rules of expiry of all versions."""
    return {each.book.expiry for each in books.versions if each.book.expiry}


@dataclass(frozen=True, slots=True)
class Rerating:
    """What is rated: dates from the Monday `first` on, by some books."""

    first: date
    books: Books
    reason: str  # what the entries say

    @classmethod
    def since(cls, day: date, books: Books, reason: str) -> "Rerating":
        """Return the rating of the week of a date, and all later ones: a cap may be over a week."""
        return cls(monday_of(day), books, reason)

    @property
    def place(self) -> str:
        """Entries of these dates stand after this place."""
        return place_before(self.first)


@dataclass(frozen=True, slots=True)
class RatingResult:
    """What became of an account."""

    user_id: str
    points: int  # the sum of what is appended
    entries: int
    before: int  # before, after: its balance
    after: int


@dataclass(frozen=True, slots=True)
class Rerater:
    """Rates accounts, one at a time: gives their ledgers what they lack by the book (rule 12).

    What a ledger lacks follows from its entries and the book alone. Each transaction appends some of it, on
    condition that nobody else has written. So a run that died goes on where it was; a second one writes
    nothing.
    """

    accounts: AccountStore
    settler: Settler
    cache: EngagementCache

    def asked(self, profile: Profile, rating: Rerating) -> RatingResult:
        """Return what would become of an account, as far as is applied by now; writes nothing.

        What expires by it is left out.
        """
        changes = self._lacking(profile, rating)
        points = sum(changes.values())
        balance = profile.balance
        return RatingResult(profile.user_id, points, len(changes), balance, balance + points)

    def rate(self, user_id: str, rating: Rerating, now: datetime) -> RatingResult:
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
            return RatingResult(user_id, points, entries, before, profile.balance)
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
