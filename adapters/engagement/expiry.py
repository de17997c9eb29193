"""Settles accounts: writes the ledger entries of expired points and of bonuses (docs/rules.md, rules 11, 15).

If an account is due, it is settled before a command changes it, and before its balance is shown. An hourly
run (processors/expiry.py) settles the accounts of users who stay away. rules/engagement/lots.py decides what
has expired, rules/engagement/bonuses.py which bonuses there are. The Settler reads what these decisions need,
and writes what comes of them.
"""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial

from adapters.book_store import BookStore
from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.achievements import AchievementReader
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from rules.book.book import Books
from rules.book.book_schema import DAYS_MAX
from rules.book.point_rules import expires_on, instant_of_expiry, last_expired, lifetime_days_max
from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.engagement.account import bump_version, decide, with_bonuses_due
from rules.engagement.account_state import Account, Decision, Profile
from rules.engagement.bonuses import BONUSES_MAX
from rules.engagement.lots import Settlement, SettlementBasis, settlement_of


def clock_of(profile: Profile, now: datetime) -> datetime:
    """Return the instant that an account has reached: now, or its newest entry's if that clock is ahead."""
    return max(now, unstamp(profile.head.created_at) if profile.head else EPOCH)


def is_due(profile: Profile, now: datetime) -> bool:
    """Whether points of an account may have expired that no entry has noted yet, or bonuses may differ."""
    return profile.expiry.is_due(clock_of(profile, now))


def expiry_rules(books: Books) -> set[str]:
    """Return the expiry rules of all versions of the book."""
    return {version.book.expiry for version in books.versions if version.book.expiry}


@dataclass(frozen=True, slots=True)
class Settler:
    """Settles accounts, one at a time."""

    accounts: AccountStore
    books: BookStore  # with the rules by which points expire

    def settle(self, user_id: str, now: datetime) -> Profile:
        """Write the entries of all bonuses and expired points, and return the profile.

        Bonuses come first: they add to what may be spent. Raises AccountContended.
        """
        for _ in pauses(ATTEMPTS_MAX):
            account = self.accounts.finish_pending(user_id, now)
            profile = account.profile
            if not is_due(profile, now):
                return profile
            try:
                settlement = self._settlement(profile, now)
                if not settlement.drafts and settlement.expiry == profile.expiry:
                    return profile
                profile = self._write(account, settlement, now)
            except (HeadMoved, ProjectionMoved):
                continue
            # One settlement has a limited number of dates, so the account may still be due.
            if not is_due(profile, now):
                return profile
        raise AccountContended(user_id)

    def preview(self, profile: Profile, now: datetime) -> Profile:
        """Return a profile as it is once its account is settled; writes nothing.

        A settlement of many bonuses or dates is begun only. Raises HeadMoved if the profile is out of date.
        """
        for _ in range(2):  # bonuses, then expired points
            if not is_due(profile, now):
                break
            settlement = self._settlement(profile, now)
            expiry = replace(settlement.expiry, bonuses_due=False)
            if settlement.drafts:
                profile = self._decision(Account(profile, {}), settlement, now).profile
            profile = replace(profile, expiry=expiry)
        return profile

    def _settlement(self, profile: Profile, now: datetime) -> Settlement:
        """Return the entries that an account lacks: bonuses, or else of expired points. Raises HeadMoved."""
        if not profile.expiry.bonuses_due:
            return settlement_of(self._settlement_basis(profile, now), clock_of(profile, now))
        reader = AchievementReader.of(self.accounts, self.books)
        drafts = reader.bonus_drafts(profile, clock_of(profile, now))
        if drafts is None:
            raise HeadMoved(())
        expiry = replace(profile.expiry, bonuses_due=len(drafts) > BONUSES_MAX)
        return Settlement(drafts[:BONUSES_MAX], expiry)

    def _settlement_basis(self, profile: Profile, now: datetime) -> SettlementBasis:
        """Read what a settlement follows from. Entries newer than the profile's head are left out."""
        oldest_unsettled, head = profile.expiry.first_unsettled or date.max, profile.head
        # An entry at the very instant of an expiry comes after it.
        place = stamp(instant_of_expiry(oldest_unsettled) - MICROSECOND)
        entries, _ = self.accounts.ledger.after(profile.user_id, place)
        return SettlementBasis(
            expiry=profile.expiry,
            balance=profile.balance,
            total=profile.total_points,
            lots=self._lots(profile.user_id, oldest_unsettled, last_expired(clock_of(profile, now))),
            entries=[entry for entry in entries if head and entry.created_at <= head.created_at],
            holds=[hold for hold in profile.holds if hold.is_open(now)],
        )

    def _lots(self, user_id: str, oldest_unsettled: date, last_expired_on: date) -> Counter[date]:
        """Return points by expiry date, from `oldest_unsettled` to the first such date after the other one.

        Lots are read in the order in which they were earned. The reading ends where no lot that is earned
        later can expire before that first date, by any rule of the books. Example: points last 90 days, and a
        lot expires on June 5, the next date. Then a lot that was earned on March 8 ends the reading.
        """
        # The newest books are needed: a lot by a version that this process does not know would never expire.
        rules = expiry_rules(self.books.look())
        lifetime_days = max(map(lifetime_days_max, rules), default=DAYS_MAX)
        lots: Counter[date] = Counter()
        next_expiry = date.max  # the first expiry date after last_expired_on
        for earned_on, points_by_expiry in self.accounts.lots(
            user_id, oldest_unsettled - timedelta(days=lifetime_days)
        ):
            # Without rules nobody knows when points expire, so all lots are read.
            if rules and min(expires_on(rule, earned_on) for rule in rules) > next_expiry:
                break
            for expiry, points in points_by_expiry.items():
                if expiry >= oldest_unsettled:
                    lots[expiry] += points
                # A lot that a reversal has emptied (rule 12) does not expire.
                if expiry > last_expired_on and points > 0:
                    next_expiry = min(next_expiry, expiry)
        return lots

    def _write(self, account: Account, settlement: Settlement, now: datetime) -> Profile:
        """Write a settlement, and return the profile. Raises HeadMoved or ProjectionMoved."""
        if settlement.drafts:
            decision = self._decision(account, settlement, now)
            self.accounts.commit_at_once(decision)
            return decision.profile
        # Only the profile is written, so no condition would notice an entry that another writer has appended
        # since, and whose lots were read already. Therefore the ledger is read once more.
        head, newest = account.profile.head, self.accounts.ledger.newest(account.profile.user_id)
        if newest and (head is None or newest.created_at != head.created_at):
            raise HeadMoved(())
        profile = bump_version(account.profile, replace(account.profile, expiry=settlement.expiry), now)
        self.accounts.commit(Decision(account, head, (), {}, profile))
        return profile

    def _decision(self, account: Account, settlement: Settlement, now: datetime) -> Decision:
        """Return the decision by which an account gets a settlement's entries."""
        rule = partial(decide, events=(), now=now, commands=settlement.drafts)
        decision = self.accounts.decision_of(account, rule)
        # A decision may have entries besides, such as an amnesty's, that make bonuses due again.
        expiry = with_bonuses_due(decision.profile, settlement.expiry, decision.entries)
        return replace(decision, profile=replace(decision.profile, expiry=expiry))
