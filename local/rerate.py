"""`streakline rules rerate`: judges past events by a version of the book that took effect in the past (rule
12).

The difference to each ledger is appended as an entry, as any other, so events may arrive meanwhile. A second
run writes nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from adapters.engagement.points import Rerater, RerateResult, RerateScope, Settler
from local.command import DAY, command, option
from local.stack import Stack
from local.stores import accounts_of, books_of, cache_of, over_accounts
from rules.engagement.account_state import Profile
from rules.engagement.ledger import debt_of

SHOWN_MAX = 20  # of those who gain or lose most


@dataclass(slots=True)
class Summary:
    """What became of all accounts."""

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
    versions = books.look()
    note = reason or f"judged anew by version {versions.newest.number} of the rules"
    scope = RerateScope.since(first, versions, note)
    rerater = Rerater(accounts, Settler(accounts, books), cache)
    summary = rerate(rerater, accounts.all_profiles(), scope, is_dry=dry_run)
    print("\n".join(summary.lines(is_dry=dry_run)))
    if summary.failed:
        raise RuntimeError(
            f"{len(summary.failed)} accounts could not be rated: mend them, and run this again"
        )


def rerate(
    rerater: Rerater, profiles: Iterable[Profile], scope: RerateScope, *, is_dry: bool = False
) -> Summary:
    """Rerate accounts; returns what became of them, or in a dry run what would.

    An account whose ledger cannot be read, or that is busy all the time, stops no other.
    """

    def rerate_account(profile: Profile) -> RerateResult:
        preview = rerater.preview(profile, scope)
        if is_dry or not preview.entries:
            return preview
        return rerater.rerate(profile.user_id, scope, datetime.now(UTC))

    summary = Summary()
    for result in over_accounts(profiles, rerate_account, lambda profile: profile.user_id):
        if isinstance(result, str):
            summary.failed.append(result)
        else:
            summary.add(result)
    return summary
