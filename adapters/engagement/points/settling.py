"""Writes what has expired (docs/rules.md, rule 11): before a command, and by the hourly run."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from adapters.book import BookStore
from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from rules.book.book import Books
from rules.book.book_schema import DAYS_MAX
from rules.book.point_rules import expires_on, instant_of_expiry, last_expired, lasts_days_max
from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.engagement.account import decide, touch
from rules.engagement.account_state import Account, Profile
from rules.engagement.lots import Position, Settlement, settlement_of


def clock_of(profile: Profile, now: datetime) -> datetime:
    """Return the instant that an account has reached: now, or its newest entry's if that clock is ahead."""
    return max(now, unstamp(profile.head.created_at) if profile.head else EPOCH)


def is_due(profile: Profile, now: datetime) -> bool:
    """Whether points of an account may have expired that no entry tells of yet."""
    return profile.expiry.is_due(clock_of(profile, now))


@dataclass(frozen=True, slots=True)
class Settler:
    """Settles what has expired of an account. books: by which rules points expire."""

    accounts: AccountStore
    books: BookStore

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
            profile = touch(profile, replace(profile, expiry=done.expiry), now)
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
        longest = max(map(lasts_days_max, rules), default=DAYS_MAX)
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
