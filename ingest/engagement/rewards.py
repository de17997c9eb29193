"""Commands that write ledger entries: redeem, reverse, freeze (rules 2 and 6)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any

from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.claims import ClaimStore, IdempotencyClaim, to_item
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from ingest.web.caller import ApiError
from rules.days import today
from rules.engagement.account_state import Account, Profile
from rules.engagement.accounts import decide
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, InsufficientBalance
from rules.engagement.points import FREEZE_PRICE_POINTS, FREEZES_HELD_MAX
from rules.engagement.streaks import effective

FREEZE_REWARD = "streak_freeze"
CLAIM_PLACE = 1  # the transaction's further actions are the profile (0) and the claim (1)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The entry that a command wrote. duplicate: an earlier attempt with the same key wrote it."""

    entry: Entry
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Rewards:
    """Commands that write entries. claims_table: a command's transaction puts the claim of its key there."""

    accounts: AccountStore
    claims: ClaimStore
    claims_table: str
    cache: EngagementCache

    def redeem(self, user_id: str, points: int, reward_id: str, key: str, now: datetime) -> CommandResult:
        """Spend points; raises 409 insufficient_balance, 409 conflict for a key used with another body."""
        draft = Draft(EntryKind.REDEEM, -points, reward_id=reward_id)
        return self._once(user_id, f"redeem:{key}", f"{points} {reward_id}", now, lambda _: draft)

    def grant_freeze(
        self, user_id: str, key: str | None, granted_on: date | None, now: datetime
    ) -> CommandResult:
        """Buy a freeze at its price; raises 409 insufficient_balance, conflict or freezes_held_max.

        granted_on: the first date that the freeze can cover. Only admins give it, and no maximum applies.
        """

        def draft(account: Account) -> Draft:
            local = today(now, account.profile.zone)
            held = self._held(account.profile, local)
            if granted_on is None and held >= FREEZES_HELD_MAX:
                raise ApiError(409, "freezes_held_max", f"{held} freezes are held already")
            since = (granted_on or local).isoformat()
            return Draft(
                *(EntryKind.REDEEM, -FREEZE_PRICE_POINTS),
                reward_id=FREEZE_REWARD,
                freeze=FreezeNote.GRANTED,
                freeze_date=since,
            )

        if key is None:
            return self._retry(user_id, now, lambda account: self._attempt(account, now, draft))
        return self._once(user_id, f"freeze:{key}", str(granted_on), now, draft)

    def _held(self, profile: Profile, local: date) -> int:
        last = profile.streak.last if profile.streak else local
        return effective(profile.streak, profile.cover, max(local, last)).freezes_available

    def reverse(self, user_id: str, created_at: str, now: datetime) -> CommandResult:
        """Undo a redemption; raises 404, 409 not_reversible, 409 already_reversed.

        If it bought a freeze, the freeze goes too. A freeze that is spent already becomes a debt.
        """

        def redemption() -> Entry:
            entry = self.accounts.ledger.get(user_id, created_at)
            if entry is None:
                raise ApiError(404, "not_found", "there is no such entry")
            if entry.draft.kind is not EntryKind.REDEEM:
                raise ApiError(
                    409, "not_reversible", f"an entry of kind {entry.draft.kind} is not a redemption"
                )
            if entry.reversed_by:
                raise ApiError(409, "already_reversed", "the redemption was reversed before")
            return entry

        def attempt(account: Account) -> CommandResult:
            entry = redemption()
            return self._attempt(account, now, partial(self._undo, entry, now), entry)

        return self._retry(user_id, now, attempt)

    def _undo(self, entry: Entry, now: datetime, account: Account) -> Draft:
        undo = Draft(
            EntryKind.REVERSE, -entry.draft.points, reverses=entry.created_at, reward_id=entry.draft.reward_id
        )
        if entry.draft.freeze is FreezeNote.GRANTED and entry.draft.freeze_date:
            local = today(now, account.profile.zone).isoformat()
            gone = max(local, entry.draft.freeze_date)
            return replace(undo, freeze=FreezeNote.REVOKED, freeze_date=gone)
        return undo

    def _once(
        self, user_id: str, key: str, body: str, now: datetime, draft: Callable[[Account], Draft]
    ) -> CommandResult:
        """Apply a command at most once for a key: its transaction also puts the claim of the key."""

        def held() -> CommandResult | None:
            claim = self.claims.get([(user_id, key)], now).get((user_id, key))
            if claim is None:
                return None
            if claim.body_hash != body:
                raise ApiError(409, "conflict", "idempotency_key was used for another body")
            entry = self.accounts.ledger.get(user_id, claim.target)
            return CommandResult(entry, duplicate=True) if entry else None

        if earlier := held():
            return earlier

        def attempt(account: Account) -> CommandResult:
            try:
                return self._attempt(account, now, draft, claim=(key, body))
            except HeadMoved as error:
                if CLAIM_PLACE in error.failed and (earlier := held()):
                    return earlier
                raise

        return self._retry(user_id, now, attempt)

    def _retry(
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

    def _attempt(
        self,
        account: Account,
        now: datetime,
        make: Callable[[Account], Draft],
        undone: Entry | None = None,
        claim: tuple[str, str] | None = None,
    ) -> CommandResult:
        draft = make(account)
        decision = self.accounts.decide(account, lambda each: decide(each, (), now, [draft]))
        entry = next(each for each in decision.entries if each.draft is draft)
        also = self._claim(account.profile.user_id, claim, entry)
        self.accounts.commit_at_once(decision, undone, also)
        self.cache.write_through([decision.profile])
        return CommandResult(entry)

    def _claim(self, user_id: str, claim: tuple[str, str] | None, entry: Entry) -> Sequence[dict[str, Any]]:
        if claim is None:
            return ()
        held = to_item(IdempotencyClaim(user_id, claim[0], claim[1], entry.created_at, entry.created_at))
        condition = "attribute_not_exists(user_id)"
        return [{"Put": {"TableName": self.claims_table, "Item": held, "ConditionExpression": condition}}]
