"""Points that expire, and ledgers that are rated anew.

Expired points are written to the ledger before a command and by the hourly run (docs/rules.md, rule 11). A
rating appends the points that a ledger lacks by the book (rule 12).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial

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
from rules.engagement.earnings import monday_of
from rules.engagement.lots import Position, Settlement, settlement_of
from rules.engagement.points import (
    Slot,
    balancing_entries,
    entries_of_weeks,
    place_before,
    shortfalls,
)

# A rating appends so many entries in one transaction. It may write as many carriers and as many days, and
# takes 100 actions.
ENTRIES_MAX = 20


def clock_of(profile: Profile, now: datetime) -> datetime:
    """Return the instant that an account has reached: now, or its newest entry's if that clock is ahead."""
    return max(now, unstamp(profile.head.created_at) if profile.head else EPOCH)


def is_due(profile: Profile, now: datetime) -> bool:
    """Whether points of an account may have expired that no entry has noted yet."""
    return profile.expiry.is_due(clock_of(profile, now))


@dataclass(frozen=True, slots=True)
class Settler:
    """Settles the expiry of accounts."""

    accounts: AccountStore
    books: BookStore  # with the rules by which points expire

    def settle(self, user_id: str, now: datetime) -> Profile:
        """Write the entries of all expired points, and return the profile. Raises AccountContended."""
        for _ in pauses(ATTEMPTS_MAX):
            account = self.accounts.finish_pending(user_id, now)
            due = Settlement([], account.profile.expiry)
            if is_due(account.profile, now):
                due = settlement_of(self._position(account.profile, now), clock_of(account.profile, now))
            if not due.drafts and due.expiry == account.profile.expiry:
                return account.profile
            try:
                profile = self._write(account, due, now)
            except (HeadMoved, ProjectionMoved):
                continue
            if not is_due(profile, now):
                return profile
        raise AccountContended(user_id)

    def _write(self, account: Account, due: Settlement, now: datetime) -> Profile:
        profile = account.profile
        if not due.drafts:
            # Only the profile is written. So no condition would notice an entry that another writer has
            # written since, whose lots were read already. Therefore the ledger is read once more.
            newest = self.accounts.ledger.newest(profile.user_id)
            if newest and (profile.head is None or newest.created_at != profile.head.created_at):
                raise HeadMoved(())
            profile = bump_version(profile, replace(profile, expiry=due.expiry), now)
            self.accounts.put_profile(profile)
            return profile
        rule = partial(decide, events=(), now=now, commands=due.drafts)
        decision = self.accounts.decision_of(account, rule)
        decision = replace(decision, profile=replace(decision.profile, expiry=due.expiry))
        self.accounts.commit_at_once(decision)
        return decision.profile

    def _position(self, profile: Profile, now: datetime) -> Position:
        first, head = profile.expiry.next_on or date.max, profile.head
        place = stamp(instant_of_expiry(first) - MICROSECOND)
        entries, _ = self.accounts.ledger.after(profile.user_id, place)
        return Position(
            expiry=profile.expiry,
            balance=profile.balance,
            total=profile.total_points,
            lots=self._lots(profile.user_id, first, last_expired(clock_of(profile, now))),
            entries=[entry for entry in entries if head and entry.created_at <= head.created_at],
            holds=[hold for hold in profile.holds if hold.is_open(now)],
        )

    def _lots(self, user_id: str, first: date, until: date) -> Counter[date]:
        """Return points by expiry date, from `first` up to the first such date after `until`.

        Lots are read in the order in which they were earned. The reading ends where no lot that is earned
        later can expire before that first date, by any rule of the books.
        """
        # The newest books are needed: a lot by a version that this process does not know would never expire.
        rules = expiry_rules(self.books.look())
        longest = max(map(lifetime_days_max, rules), default=DAYS_MAX)
        lots: Counter[date] = Counter()
        following = date.max  # the first expiry date after `until`
        for earned_on, points_by_expiry in self.accounts.lots(user_id, first - timedelta(days=longest)):
            if min((expires_on(rule, earned_on) for rule in rules), default=first) > following:
                break
            for expiry, points in points_by_expiry.items():
                if expiry >= first:
                    lots[expiry] += points
                # A lot that a reversal has emptied (rule 12) does not expire.
                if expiry > until and points > 0:
                    following = min(following, expiry)
        return lots


def expiry_rules(books: Books) -> set[str]:
    """Return the expiry rules of all versions of the book."""
    return {version.book.expiry for version in books.versions if version.book.expiry}


@dataclass(frozen=True, slots=True)
class Rerating:
    """A rating of all dates from a Monday on."""

    first: date  # the Monday
    books: Books  # the versions that dates are rated by
    reason: str  # the reason that the appended entries give

    @classmethod
    def since(cls, day: date, books: Books, reason: str) -> "Rerating":
        """Return the rating of the week of a date and of all later ones: a cap may be over a week."""
        return cls(monday_of(day), books, reason)

    @property
    def place(self) -> str:
        """The place in the ledger after which the entries of these dates stand."""
        return place_before(self.first)


@dataclass(frozen=True, slots=True)
class RatingResult:
    """The result of rating an account."""

    user_id: str
    points: int  # the sum of the appended entries
    entries: int  # how many were appended
    before: int  # the balance before the rating
    after: int  # the balance after it


@dataclass(frozen=True, slots=True)
class Rerater:
    """Rates accounts, one at a time: appends to a ledger the points that it lacks by the book (rule 12).

    These follow from its entries and the book alone. Each transaction appends a part of them, on condition
    that nobody else has written. So a run that died can be repeated, and a second run writes nothing.
    """

    accounts: AccountStore
    settler: Settler
    cache: EngagementCache

    def preview(self, profile: Profile, rating: Rerating) -> RatingResult:
        """Return the result that a rating would have, and write nothing.

        Events that are not applied yet are left out, and so is the expiry of points after the rating.
        """
        changes = self._missing_points(profile, rating)
        points = sum(changes.values())
        balance = profile.balance
        return RatingResult(profile.user_id, points, len(changes), balance, balance + points)

    def rate(self, user_id: str, rating: Rerating, now: datetime) -> RatingResult:
        """Append the points that an account lacks, then settle its expiry. Raises AccountContended."""
        before: int | None = None
        points = entries = 0
        for _ in pauses(ATTEMPTS_MAX):
            profile = self.settler.settle(user_id, now)
            before = profile.balance if before is None else before
            changes = self._missing_points(profile, rating)
            try:
                for chunk in _chunks_by_week(changes):
                    profile = self._append(profile, chunk, rating, now)
                    points, entries = points + sum(chunk.values()), entries + len(chunk)
            except (HeadMoved, ProjectionMoved):
                continue
            if changes:
                profile = self.settler.settle(user_id, now)
                self.cache.write_through([profile])
            return RatingResult(user_id, points, entries, before, profile.balance)
        raise AccountContended(user_id)

    def _missing_points(self, profile: Profile, rating: Rerating) -> dict[Slot, int]:
        """Return the points that an account's ledger lacks by the book, by slot; below 0: it has too many."""
        head = profile.head
        if head is None or head.created_at < rating.place:
            return {}
        entries, _ = self.accounts.ledger.after(profile.user_id, rating.place)
        drafts = [entry.draft for entry in entries if entry.created_at <= head.created_at]
        return shortfalls(entries_of_weeks(drafts, rating.first, date.max), rating.books)

    def _append(
        self, profile: Profile, changes: Mapping[Slot, int], rating: Rerating, now: datetime
    ) -> Profile:
        drafts = balancing_entries(changes, rating.books.newest.number, rating.reason)
        dates = {slot.activity_date for slot in changes}
        stored_days = self.accounts.days((profile.user_id, day) for day in dates)
        account = Account(profile, {day: stored_days.get((profile.user_id, day)) for day in dates})
        rule = partial(decide, events=(), now=now, commands=drafts)
        decision = self.accounts.decision_of(account, rule)
        self.accounts.commit_at_once(decision)
        self.cache.write_through([decision.profile], decision.days.values())
        return decision.profile


def _chunks_by_week(changes: Mapping[Slot, int]) -> Iterator[dict[Slot, int]]:
    """Yield the changes in chunks for one transaction each, sorted by week."""
    slots = sorted(changes, key=lambda slot: (monday_of(slot.activity_date), slot.order))
    for start in range(0, len(slots), ENTRIES_MAX):
        yield {slot: changes[slot] for slot in slots[start : start + ENTRIES_MAX]}
