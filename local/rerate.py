"""`streakline rules rerate`: gives ledgers what a book says that took effect in the past (rule 12).

Run again, it writes nothing. It is safe while events arrive: entries are appended as any others.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from adapters.engagement.points import RatingResult, Rerater, Rerating, Settler
from local.command import DAY, command, option
from local.stack import Stack
from local.stores import accounts_of, books_of, cache_of, over_accounts
from rules.engagement.account_state import Profile
from rules.engagement.ledger import debt_of

SHOWN_MAX = 20  # of those who gain or lose most


@dataclass(slots=True)
class Summary:
    """What became of all accounts. owed: what users in debt owe; liability: what all balances come to."""

    accounts: int = 0
    entries: int = 0
    gained: int = 0
    lost: int = 0
    liability_before: int = 0
    liability_after: int = 0
    owed_before: int = 0
    owed_after: int = 0
    changed: list[RatingResult] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def add(self, rated: RatingResult) -> None:
        """Count an account in."""
        self.accounts += 1
        self.entries += rated.entries
        self.gained += max(0, rated.points)
        self.lost += max(0, -rated.points)
        self.liability_before += rated.before
        self.liability_after += rated.after
        self.owed_before += debt_of(rated.before)
        self.owed_after += debt_of(rated.after)
        if rated.entries:
            self.changed.append(rated)

    def lines(self, *, is_dry: bool) -> Iterator[str]:
        """Yield what is told of it."""
        would = "would be " if is_dry else ""
        entries = f"by {self.entries} entries"
        yield f"{self.accounts} accounts looked at; {len(self.changed)} {would}changed, {entries}"
        yield f"points: {self.gained} {would}given, {self.lost} {would}taken"
        yield f"liability: {self.liability_before} -> {self.liability_after}"
        yield f"owed by users: {self.owed_before} -> {self.owed_after}"
        most = sorted(self.changed, key=lambda each: (-abs(each.points), each.user_id))
        for each in most[:SHOWN_MAX]:
            debt = f", a debt of {debt_of(each.after)}" if each.after < 0 else ""
            yield f"  {each.user_id}: {each.points:+d}, balance {each.before} -> {each.after}{debt}"
        if len(most) > SHOWN_MAX:
            yield f"  and {len(most) - SHOWN_MAX} more"
        yield from (f"  left as it is: {each}" for each in self.failed)


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
    accounts, cache = accounts_of(stack), cache_of(stack)
    books = books_of(stack)
    known = books.look()
    note = reason or f"judged anew by version {known.newest.number} of the rules"
    rating = Rerating.since(first, known, note)
    rerater = Rerater(accounts, Settler(accounts, books), cache)
    found = rerate(rerater, accounts.all_profiles(), rating, is_dry=dry_run)
    print("\n".join(found.lines(is_dry=dry_run)))
    if found.failed:
        raise RuntimeError(f"{len(found.failed)} accounts could not be rated: mend them, and run this again")


def rerate(
    rerater: Rerater, profiles: Iterable[Profile], rating: Rerating, *, is_dry: bool = False
) -> Summary:
    """Rate accounts; returns what became of them. is_dry: writes nothing.

    An account whose ledger cannot be read, or that is busy all the time, stops no other.
    """

    def rated(profile: Profile) -> RatingResult:
        preview = rerater.preview(profile, rating)
        if is_dry or not preview.entries:
            return preview
        return rerater.rate(profile.user_id, rating, datetime.now(UTC))

    found = Summary()
    for account in over_accounts(profiles, rated, lambda profile: profile.user_id):
        if isinstance(account, str):
            found.failed.append(account)
        else:
            found.add(account)
    return found
