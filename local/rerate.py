"""`streakline rules rerate`: judges past events by a version of the book that took effect in the past (rule
12).

The difference to each ledger is appended as an entry, as any other, so events may arrive meanwhile. A second
run writes nothing. In this order: one account, all accounts, the command.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import partial

from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from adapters.platform.tables import chunks
from local.command import DAY, command, option
from local.stack import Stack
from local.stores import accounts_of, books_of, cache_of, over_accounts
from rules.book.book import Books
from rules.engagement.account import decide
from rules.engagement.account_state import Account, Profile
from rules.engagement.earnings import monday_of
from rules.engagement.ledger import debt_of
from rules.engagement.points import Slot, balancing_entries, entries_of_weeks, place_before, shortfalls

# Entries of one transaction, which takes 100 actions. An entry may need three: itself, a carrier, its day.
ENTRIES_MAX = 20
SHOWN_MAX = 20  # of those who gain or lose most


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
    """Appends to ledgers the points that they lack by the book, one account at a time.

    What a ledger lacks follows from its entries and the book alone. It is computed for each slot: one event
    type on one date, with one cap and one expiry (rules.engagement.points.Slot).

    Each transaction gives the points of some slots, on condition that nobody else has written. So a run that
    died can be repeated: then only the other slots still lack points.
    """

    accounts: AccountStore
    settler: Settler
    cache: EngagementCache
    books: Books  # the versions that judge the events
    first: date  # the first activity date; its whole week is judged, because a cap may be over a week
    reason: str  # what the appended entries say

    def preview(self, profile: Profile) -> RerateResult:
        """Return the result that a rerate would have, and write nothing.

        Events that are not applied yet are left out, and so is the expiry of points after the rerate.
        """
        missing = self._missing_points(profile)
        points = sum(missing.values())
        return RerateResult(profile.user_id, points, len(missing), profile.balance, profile.balance + points)

    def rerate(self, user_id: str, now: datetime) -> RerateResult:
        """Append the points that an account lacks, then settle its expiry. Raises AccountContended."""
        before: int | None = None
        appended: list[int] = []  # the points of each entry, in all attempts
        for _ in pauses(ATTEMPTS_MAX):
            profile = self.settler.settle(user_id, now)
            before = profile.balance if before is None else before
            parts = self._parts(self._missing_points(profile))
            try:
                for part in parts:
                    profile = self._append(profile, part, now)
                    appended += part.values()
            except (HeadMoved, ProjectionMoved):
                continue  # what is appended stays; the next attempt appends the rest
            if parts:
                profile = self.settler.settle(user_id, now)
                self.cache.write_through([profile])
            return RerateResult(user_id, sum(appended), len(appended), before, profile.balance)
        raise AccountContended(user_id)

    @staticmethod
    def _parts(missing: Mapping[Slot, int]) -> list[dict[Slot, int]]:
        """Return missing points in parts that fit into a transaction each, week after week."""
        slots = sorted(missing, key=lambda slot: (monday_of(slot.activity_date), slot.order))
        return [{slot: missing[slot] for slot in chunk} for chunk in chunks(slots, ENTRIES_MAX)]

    def _missing_points(self, profile: Profile) -> dict[Slot, int]:
        """Return the points that an account's ledger lacks by the book, by slot; below 0: it has too many."""
        head, monday = profile.head, monday_of(self.first)
        if head is None or head.created_at < place_before(monday):
            return {}
        entries, _ = self.accounts.ledger.after(profile.user_id, place_before(monday))
        drafts = [entry.draft for entry in entries if entry.created_at <= head.created_at]
        return shortfalls(entries_of_weeks(drafts, monday, date.max), self.books)

    def _append(self, profile: Profile, missing: Mapping[Slot, int], now: datetime) -> Profile:
        """Append missing points in one transaction, and return the profile."""
        drafts = balancing_entries(missing, self.books.newest.number, self.reason)
        dates = {slot.activity_date for slot in missing}
        stored_days = self.accounts.days((profile.user_id, day) for day in dates)
        account = Account(profile, {day: stored_days.get((profile.user_id, day)) for day in dates})
        rule = partial(decide, events=(), now=now, commands=drafts)
        decision = self.accounts.decision_of(account, rule)
        self.accounts.commit_at_once(decision)
        self.cache.write_through([decision.profile], decision.days.values())
        return decision.profile


@dataclass(slots=True)
class Summary:
    """What became of all accounts, or in a dry run what would."""

    accounts: int = 0
    entries: int = 0
    gained: int = 0  # points, of all accounts that gain
    lost: int = 0  # points, of all accounts that lose
    liability_before: int = 0  # the sum of all balances
    liability_after: int = 0
    owed_before: int = 0  # by users whose balance is below 0
    owed_after: int = 0
    changed: list[RerateResult] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def add(self, result: RerateResult) -> None:
        """Count an account in."""
        self.accounts += 1
        self.entries += result.entries
        self.gained += max(0, result.points)
        self.lost += max(0, -result.points)
        self.liability_before += result.before
        self.liability_after += result.after
        self.owed_before += debt_of(result.before)
        self.owed_after += debt_of(result.after)
        if result.entries:
            self.changed.append(result)

    def lines(self, *, is_dry: bool) -> Iterator[str]:
        """Yield the summary as lines for the operator. Those who gain or lose most come first."""
        would = "would be " if is_dry else ""
        entries = f"by {self.entries} entries"
        yield f"{self.accounts} accounts looked at; {len(self.changed)} {would}changed, {entries}"
        yield f"points: {self.gained} {would}given, {self.lost} {would}taken"
        yield f"liability: {self.liability_before} -> {self.liability_after}"
        yield f"owed by users: {self.owed_before} -> {self.owed_after}"
        by_change = sorted(self.changed, key=lambda result: (-abs(result.points), result.user_id))
        for result in by_change[:SHOWN_MAX]:
            debt = f", a debt of {debt_of(result.after)}" if result.after < 0 else ""
            yield f"  {result.user_id}: {result.points:+d}, balance {result.before} -> {result.after}{debt}"
        if len(by_change) > SHOWN_MAX:
            yield f"  and {len(by_change) - SHOWN_MAX} more"
        yield from (f"  left as it is: {account}" for account in self.failed)


def rerate(rerater: Rerater, profiles: Iterable[Profile], *, is_dry: bool = False) -> Summary:
    """Rerate accounts. One whose ledger cannot be read, or that is busy all the time, stops no other."""

    def rerate_account(profile: Profile) -> RerateResult:
        preview = rerater.preview(profile)
        if is_dry or not preview.entries:
            return preview
        return rerater.rerate(profile.user_id, datetime.now(UTC))

    summary = Summary()
    for result in over_accounts(profiles, rerate_account, lambda profile: profile.user_id):
        if isinstance(result, str):
            summary.failed.append(result)
        else:
            summary.add(result)
    return summary


@command("rules rerate --from 2026-11-01 --dry-run", "rules rerate --from 2026-11-01")
@option(
    "--from",
    "first",
    type=DAY,
    required=True,
    help="the first activity date; the whole week of it is rated, and all that follows",
)
@option("--dry-run", is_flag=True, help="only say who would gain and lose")
@option("--reason", default="", help="what the entries say", show_default="the version")
def rerate_command(stack: Stack, first: date, dry_run: bool, reason: str) -> None:
    """Judge past events by a version that took effect in the past. Run again, it writes nothing."""
    accounts, stored_books = accounts_of(stack), books_of(stack)
    books = stored_books.look()
    note = reason or f"judged anew by version {books.newest.number} of the rules"
    rerater = Rerater(accounts, Settler(accounts, stored_books), cache_of(stack), books, first, note)
    summary = rerate(rerater, accounts.all_profiles(), is_dry=dry_run)
    print("\n".join(summary.lines(is_dry=dry_run)))
    if summary.failed:
        raise RuntimeError(
            f"{len(summary.failed)} accounts could not be rated: mend them, and run this again"
        )
