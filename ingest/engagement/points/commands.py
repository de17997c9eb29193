"""How a command writes its ledger entry: once for a key, whoever else writes to the account (rule 6)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.claims import ClaimStore, IdempotencyClaim, put_unclaimed
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved
from adapters.engagement.points import Settler, clock_of, is_due
from adapters.platform.aws import pauses
from ingest.engagement.points.command import Command, CommandResult
from ingest.engagement.profile_changes import Change, change_profile
from ingest.web.caller import ApiError
from rules.engagement.account import decide
from rules.engagement.account_state import Account, Decision, Profile
from rules.engagement.ledger import Entry, EntryKind, InsufficientBalance
from rules.engagement.lots import held_points, holds_without

# No sender's key has this letter. So an event whose key is `redeem:abc` is no redemption's.
COMMAND = "\x1f"
CLAIM_PLACE = 1  # the transaction's further actions are the profile (0) and the claim (1)


@dataclass(frozen=True, slots=True)
class Commands:
    """Writes what commands make of accounts.

    claims_table: a command's transaction puts the claim of its key there. settler: what has expired is
    written before what a command writes.
    """

    accounts: AccountStore
    claims: ClaimStore
    claims_table: str
    cache: EngagementCache
    settler: Settler

    def once(
        self, user_id: str, key: str | None, body: str, now: datetime, make: Callable[[Account], Command]
    ) -> CommandResult:
        """Apply a command at most once for a key: its transaction also puts the claim of the key.

        Without a key, each call is a command of its own.
        """

        def held() -> CommandResult | None:
            return self._held(user_id, key, body, now) if key else None

        if earlier := held():
            return earlier

        def attempt(account: Account) -> CommandResult:
            try:
                return self.attempt(account, now, make, claim=(key, body) if key else None)
            except HeadMoved as error:
                if CLAIM_PLACE in error.failed and (earlier := held()):
                    return earlier
                raise

        try:
            return self.retry(user_id, now, attempt)
        except ApiError:
            # An attempt with the same key may have taken, at the same time, what this one found gone.
            if earlier := held():
                return earlier
            raise

    def _held(self, user_id: str, key: str, body: str, now: datetime) -> CommandResult | None:
        claim = self.claims_of(user_id, [key], now).get(key)
        if claim is None:
            return None
        if claim.body_hash != body:
            raise ApiError(409, "conflict", "idempotency_key was used for another body")
        entry = self.accounts.ledger.get(user_id, claim.target)
        return CommandResult(entry, duplicate=True) if entry else None

    def claims_of(self, user_id: str, keys: Iterable[str], now: datetime) -> dict[str, IdempotencyClaim]:
        """Return the claims of commands' keys, by key, of those that have one."""
        found = self.claims.get([(user_id, COMMAND + key) for key in keys], now)
        return {key.removeprefix(COMMAND): claim for (_, key), claim in found.items()}

    def retry(
        self, user_id: str, now: datetime, attempt: Callable[[Account], CommandResult]
    ) -> CommandResult:
        """Attempt a command until no other writer is in the way; raises AccountContended.

        An attempt trusts the profile, because the transaction fails if the profile is out of date. If an
        attempt fails and the profile has not changed, a writer died halfway: then `settle` reads the ledger.
        """
        failed_version = -1
        for _ in pauses(ATTEMPTS_MAX):
            account = Account(self.accounts.profile(user_id), {})
            if is_due(account.profile, now):
                account = Account(self.settler.settle(user_id, now), {})
            if account.profile.version == failed_version:
                account = Account(self.settler.settle(user_id, now), {})
            failed_version = account.profile.version
            try:
                return attempt(account)
            except (HeadMoved, ProjectionMoved):
                continue
            except InsufficientBalance:
                pass
            # The profile may lag behind the ledger: refuse only if the ledger itself says so.
            try:
                return attempt(Account(self.settler.settle(user_id, now), {}))
            except (HeadMoved, ProjectionMoved):
                continue
            except InsufficientBalance as error:
                raise insufficient(error) from None
        raise AccountContended(user_id)

    def attempt(
        self,
        account: Account,
        now: datetime,
        make: Callable[[Account], Command],
        claim: tuple[str, str] | None = None,
    ) -> CommandResult:
        """Write what a command makes of an account as it was read.

        claim: of its key, (key, body). Raises HeadMoved, ProjectionMoved or InsufficientBalance.
        """
        command = make(account)
        drafts = [*command.before, command.draft]
        account = replace(account, days={**account.days, **command.days})
        decision = self.accounts.decide(account, lambda each: decide(each, (), now, drafts))
        decision = _within_what_is_held(decision, command, clock_of(account.profile, now))
        entry = next(each for each in decision.entries if each.draft is command.draft)
        place = command.place and (command.place, "taken")
        claims = [self._claim(each, entry, now) for each in (claim, place) if each]
        self.accounts.commit_at_once(decision, command.undoes, [*claims, *command.also(entry)])
        self.cache.write_through([decision.profile], decision.days.values())
        return CommandResult(entry)

    def change(self, user_id: str, now: datetime, change: Change) -> Profile:
        """Change a profile without an entry, after what has expired; returns it.

        Raises AccountContended, and 409 where `change` raises InsufficientBalance.
        """

        def read() -> Account:
            return Account(self.settler.settle(user_id, now), {})

        try:
            return change_profile(self.accounts, self.cache, read, now, change)
        except InsufficientBalance as error:
            raise insufficient(error) from None

    def _claim(self, claim: tuple[str, str], entry: Entry, now: datetime) -> dict[str, Any]:
        key, body = claim
        held = IdempotencyClaim(entry.account_id, COMMAND + key, body, entry.created_at, entry.created_at)
        return {"Put": put_unclaimed(self.claims_table, held, now)}


def _within_what_is_held(decision: Decision, command: Command, now: datetime) -> Decision:
    """Return a command's decision, with its hold ended.

    Raises InsufficientBalance if it spends points that a hold reserves. A hold that is captured has reserved
    its own: where a clawback left less than all holds reserve, who comes first is served.
    """
    profile = replace(decision.profile, holds=holds_without(decision.profile.holds, command.ends or ""))
    held, wanted = held_points(profile.holds, now), -command.draft.points
    is_spending = command.draft.kind is EntryKind.REDEEM and wanted > 0
    if is_spending and not command.ends and profile.balance < held:
        raise InsufficientBalance(profile.balance + wanted - held, wanted)
    return replace(decision, profile=profile)


def insufficient(error: InsufficientBalance) -> ApiError:
    """Return the answer to a command that the balance does not cover."""
    details = {"balance": error.balance, "points": error.wanted}
    return ApiError(409, "insufficient_balance", str(error), details)
