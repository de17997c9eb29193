"""How a command writes its ledger entry: once for a key, whoever else writes to the account (rule 6)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.claims import ClaimStore, IdempotencyClaim, put_unclaimed
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from ingest.web.caller import ApiError
from rules.engagement.account_state import Account
from rules.engagement.accounts import decide
from rules.engagement.ledger import Draft, Entry, InsufficientBalance

CLAIM_PLACE = 1  # the transaction's further actions are the profile (0) and the claim (1)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The entry that a command wrote. duplicate: an earlier attempt with the same key wrote it."""

    entry: Entry
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """The entry that a command writes. place: of the month's free freezes, the one that it takes."""

    draft: Draft
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Commands:
    """Writes what commands make of accounts.

    claims_table: a command's transaction puts the claim of its key there.
    """

    accounts: AccountStore
    claims: ClaimStore
    claims_table: str
    cache: EngagementCache

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

        return self.retry(user_id, now, attempt)

    def _held(self, user_id: str, key: str, body: str, now: datetime) -> CommandResult | None:
        claim = self.claims.get([(user_id, key)], now).get((user_id, key))
        if claim is None:
            return None
        if claim.body_hash != body:
            raise ApiError(409, "conflict", "idempotency_key was used for another body")
        entry = self.accounts.ledger.get(user_id, claim.target)
        return CommandResult(entry, duplicate=True) if entry else None

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
            if account.profile.version == failed_version:
                account = self.accounts.settle(user_id, now)
            failed_version = account.profile.version
            try:
                return attempt(account)
            except (HeadMoved, ProjectionMoved):
                continue
            except InsufficientBalance:
                pass
            # The profile may lag behind the ledger: refuse only if the ledger itself says so.
            try:
                return attempt(self.accounts.settle(user_id, now))
            except (HeadMoved, ProjectionMoved):
                continue
            except InsufficientBalance as error:
                details = {"balance": error.balance, "points": error.wanted}
                raise ApiError(409, "insufficient_balance", str(error), details) from None
        raise AccountContended(user_id)

    def attempt(
        self,
        account: Account,
        now: datetime,
        make: Callable[[Account], Command],
        undone: Entry | None = None,
        claim: tuple[str, str] | None = None,
    ) -> CommandResult:
        """Write what a command makes of an account as it was read.

        undone: the entry that it reverses. claim: of its key, (key, body). Raises HeadMoved,
        ProjectionMoved or InsufficientBalance.
        """
        command = make(account)
        decision = self.accounts.decide(account, lambda each: decide(each, (), now, [command.draft]))
        entry = next(each for each in decision.entries if each.draft is command.draft)
        place = command.place and (command.place, "taken")
        also = [self._claim(each, entry, now) for each in (claim, place) if each]
        self.accounts.commit_at_once(decision, undone, also)
        self.cache.write_through([decision.profile])
        return CommandResult(entry)

    def _claim(self, claim: tuple[str, str], entry: Entry, now: datetime) -> dict[str, Any]:
        key, body = claim
        held = IdempotencyClaim(entry.account_id, key, body, entry.created_at, entry.created_at)
        return {"Put": put_unclaimed(self.claims_table, held, now)}
