"""Points that expire, and ledgers that are judged anew by the book.

To settle an account is to write the entries of its points that have expired: before a command, and in the
hourly run (docs/rules.md, rule 11). To rerate it is to append the points that its ledger lacks by the book
(rule 12).
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
from rules.engagement.lots import Settlement, SettlementBasis, settlement_of
from rules.engagement.points import (
    Slot,
    balancing_entries,
    entries_of_weeks,
    place_before,
    shortfalls,
)

# A rerate appends so many entries in one transaction. It may write as many carriers and as many days, and
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
            settlement = self._due(account.profile, now)
            if settlement is None:
                return account.profile
            try:
                profile = self._write(account, settlement, now)
            except (HeadMoved, ProjectionMoved):
                continue
            if not is_due(profile, now):
                return profile
        raise AccountContended(user_id)

    def _due(self, profile: Profile, now: datetime) -> Settlement | None:
        """Return the settlement that an account needs; None: it would change nothing."""
        if not is_due(profile, now):
            return None
        settlement = settlement_of(self._settlement_basis(profile, now), clock_of(profile, now))
        return settlement if settlement.drafts or settlement.expiry != profile.expiry else None

    def _write(self, account: Account, settlement: Settlement, now: datetime) -> Profile:
        profile = account.profile
        if not settlement.drafts:
            # Only the profile is written. So no condition would notice an entry that another writer has
            # written since, whose lots were read already. Therefore the ledger is read once more.
            newest = self.accounts.ledger.newest(profile.user_id)
            if newest and (profile.head is None or newest.created_at != profile.head.created_at):
                raise HeadMoved(())
            profile = bump_version(profile, replace(profile, expiry=settlement.expiry), now)
            self.accounts.put_profile(profile)
            return profile
        rule = partial(decide, events=(), now=now, commands=settlement.drafts)
        decision = self.accounts.decision_of(account, rule)
        decision = replace(decision, profile=replace(decision.profile, expiry=settlement.expiry))
        self.accounts.commit_at_once(decision)
        return decision.profile

    def _settlement_basis(self, profile: Profile, now: datetime) -> SettlementBasis:
        oldest_unsettled, head = profile.expiry.next_on or date.max, profile.head
        entries, _ = self.accounts.ledger.after(profile.user_id, _place_before_expiry(oldest_unsettled))
        return SettlementBasis(
            expiry=profile.expiry,
            balance=profile.balance,
            total=profile.total_points,
            lots=self._lots(profile.user_id, oldest_unsettled, last_expired(clock_of(profile, now))),
            entries=[entry for entry in entries if head and entry.created_at <= head.created_at],
            holds=[hold for hold in profile.holds if hold.is_open(now)],
        )

    def _lots(self, user_id: str, oldest_unsettled: date, last_expired_day: date) -> Counter[date]:
        """Return points by expiry date, from `oldest_unsettled` to the first such date after the other one.

        Lots are read in the order in which they were earned. The reading ends where no lot that is earned
        later can expire before that first date, by any rule of the books. Example: points last 90 days, and a
        lot expires on June 5, the next date. Then a lot that was earned on March 8 ends the reading.
        """
        # The newest books are needed: a lot by a version that this process does not know would never expire.
        rules = expiry_rules(self.books.look())
        lifetime_days = max(map(lifetime_days_max, rules), default=DAYS_MAX)
        oldest_earned = oldest_unsettled - timedelta(days=lifetime_days)
        lots: Counter[date] = Counter()
        next_expiry = date.max  # the first expiry date after last_expired_day
        for earned_on, points_by_expiry in self.accounts.lots(user_id, oldest_earned):
            if _cannot_expire_by(rules, earned_on, next_expiry):
                break
            for expiry, points in points_by_expiry.items():
                if expiry >= oldest_unsettled:
                    lots[expiry] += points
                # A lot that a reversal has emptied (rule 12) does not expire.
                if expiry > last_expired_day and points > 0:
                    next_expiry = min(next_expiry, expiry)
        return lots


def _place_before_expiry(on: date) -> str:
    """Return the ledger place right before an instant of expiry: an entry at the instant stands after it."""
    return stamp(instant_of_expiry(on) - MICROSECOND)


def _cannot_expire_by(rules: set[str], earned_on: date, next_expiry: date) -> bool:
    """Whether points earned on a date, or later, expire after `next_expiry` by each rule.

    Without rules nobody knows when they expire, so the answer is False, and all lots are read.
    """
    return bool(rules) and min(expires_on(rule, earned_on) for rule in rules) > next_expiry


def expiry_rules(books: Books) -> set[str]:
    """Return the expiry rules of all versions of the book."""
    return {version.book.expiry for version in books.versions if version.book.expiry}


@dataclass(frozen=True, slots=True)
class RerateScope:
    """What a rerate judges anew, and by which books: all dates from a Monday on."""

    first: date  # the Monday
    books: Books  # the versions that dates are judged by
    reason: str  # the reason that the appended entries give

    @classmethod
    def since(cls, day: date, books: Books, reason: str) -> "RerateScope":
        """Return the scope of the week of a date and of all later ones: a cap may be over a week."""
        return cls(monday_of(day), books, reason)

    @property
    def place(self) -> str:
        """The place in the ledger after which the entries of these dates stand."""
        return place_before(self.first)


@dataclass(frozen=True, slots=True)
class RerateResult:
    """The result of rerating an account."""

    user_id: str
    points: int  # the sum of the appended entries
    entries: int  # how many were appended
    before: int  # the balance before the rerate
    after: int  # the balance after it


@dataclass(frozen=True, slots=True)
class Rerater:
    """Rerates accounts, one at a time: appends to a ledger the points that it lacks by the book (rule 12).

    These follow from its entries and the book alone. They are computed for each slot, which is one event type
    on one date, with the same cap and the same expiry (rules.engagement.points.Slot).

    Each transaction appends a part of them, on condition that nobody else has written. So a run that died can
    be repeated, and a second run writes nothing.
    """

    accounts: AccountStore
    settler: Settler
    cache: EngagementCache

    def preview(self, profile: Profile, scope: RerateScope) -> RerateResult:
        """Return the result that a rerate would have, and write nothing.

        Events that are not applied yet are left out, and so is the expiry of points after the rerate.
        """
        changes = self._missing_points(profile, scope)
        points = sum(changes.values())
        balance = profile.balance
        return RerateResult(profile.user_id, points, len(changes), balance, balance + points)

    def rerate(self, user_id: str, scope: RerateScope, now: datetime) -> RerateResult:
        """Append the points that an account lacks, then settle its expiry. Raises AccountContended."""
        before: int | None = None
        points = entries = 0
        for _ in pauses(ATTEMPTS_MAX):
            profile = self.settler.settle(user_id, now)
            before = profile.balance if before is None else before
            changes = self._missing_points(profile, scope)
            try:
                for chunk in _chunks_by_week(changes):
                    profile = self._append(profile, chunk, scope, now)
                    points, entries = points + sum(chunk.values()), entries + len(chunk)
            except (HeadMoved, ProjectionMoved):
                continue
            if changes:
                profile = self.settler.settle(user_id, now)
                self.cache.write_through([profile])
            return RerateResult(user_id, points, entries, before, profile.balance)
        raise AccountContended(user_id)

    def _missing_points(self, profile: Profile, scope: RerateScope) -> dict[Slot, int]:
        """Return the points that an account's ledger lacks by the book, by slot; below 0: it has too many."""
        head = profile.head
        if head is None or head.created_at < scope.place:
            return {}
        entries, _ = self.accounts.ledger.after(profile.user_id, scope.place)
        drafts = [entry.draft for entry in entries if entry.created_at <= head.created_at]
        return shortfalls(entries_of_weeks(drafts, scope.first, date.max), scope.books)

    def _append(
        self, profile: Profile, changes: Mapping[Slot, int], scope: RerateScope, now: datetime
    ) -> Profile:
        drafts = balancing_entries(changes, scope.books.newest.number, scope.reason)
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
