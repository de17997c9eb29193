"""Redeem a reward of the book, at the book's price (rule 13); and what becomes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.engagement.rewards import RedemptionStore, RewardStock
from ingest.engagement.points.command import CommandResult
from ingest.engagement.points.commands import Commands
from ingest.engagement.points.rewards import REDEEM, Rewards
from ingest.engagement.points.sale import Sale
from ingest.web.caller import ApiError, Caller
from rules.book.rewards import Fulfilment, Redemption
from rules.days import stamp
from rules.engagement.ledger import Entry

OPEN = (Fulfilment.REQUESTED,)
NOT_REVERSED = (Fulfilment.REQUESTED, Fulfilment.FULFILLED)


@dataclass(frozen=True, slots=True)
class FulfilmentResult:
    """How a redemption stands. duplicate: it stood so before."""

    redemption: Redemption
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Redemptions:
    """Commands about rewards of the book. rewards: what reverses their entries."""

    rewards: Rewards
    stock: RewardStock
    store: RedemptionStore

    @property
    def _commands(self) -> Commands:
        return self.rewards.commands

    def redeem(
        self, user_id: str, reward_id: str, key: str, now: datetime, shown: int | None = None
    ) -> CommandResult:
        """Spend a reward's price; points, stock, the user's limit and the key's claim move together or not.

        shown: the price in points that the user has agreed to, if it is known. Raises 404 unknown_reward; 409
        reward_not_valid, price_changed, sold_out, reward_limit, insufficient_balance, under_review, or
        conflict for a key used with another reward.
        """
        sale = Sale(self.rewards.books, self.stock, self.store, user_id, reward_id, now, shown)
        return self._commands.once(user_id, REDEEM + key, f"reward {reward_id}", now, sale.command)

    def get(self, user_id: str, created_at: str) -> Redemption:
        """Return a redemption of a reward; raises 404."""
        if found := self.store.get(user_id, created_at):
            return found
        raise ApiError(404, "not_found", "there is no such redemption of a reward")

    def reverse(self, user_id: str, created_at: str, now: datetime) -> CommandResult:
        """Undo a redemption, whatever it was of; see Rewards.reverse.

        One of a reward gives stock and limit back in the same transaction, also when it was fulfilled.
        """
        return self._reverse(user_id, created_at, now, Fulfilment.REVERSED, NOT_REVERSED)

    def fulfilled(self, user_id: str, created_at: str, by: Caller, now: datetime) -> FulfilmentResult:
        """Note that a user has the reward. Raises 403, 404, or 409 redemption_ended if it was reversed."""
        redemption = self._checked(user_id, created_at, by)
        if self.store.changed(redemption, Fulfilment.FULFILLED, OPEN, stamp(now)):
            return FulfilmentResult(self.get(user_id, created_at))
        redemption = self.get(user_id, created_at)
        if redemption.fulfilment is not Fulfilment.FULFILLED:
            raise _ended(redemption)
        return FulfilmentResult(redemption, duplicate=True)

    def failed(self, user_id: str, created_at: str, by: Caller, now: datetime) -> FulfilmentResult:
        """Note that a user will not get the reward: it is reversed, once, whoever else does so.

        Raises 403, 404, or 409 redemption_ended for one that was fulfilled.
        """
        self._checked(user_id, created_at, by)
        try:
            self._reverse(user_id, created_at, now, Fulfilment.FAILED, OPEN)
        except ApiError as error:
            if error.code != "already_reversed":
                raise
            return FulfilmentResult(self.get(user_id, created_at), duplicate=True)
        return FulfilmentResult(self.get(user_id, created_at))

    def _checked(self, user_id: str, created_at: str, by: Caller) -> Redemption:
        """Return a redemption whose fulfilment a caller may tell of; raises 403 or 404."""
        found = self.store.get(user_id, created_at)
        by.check_fulfilment(found.brand if found else "")
        return found or self.get(user_id, created_at)

    def _reverse(
        self,
        user_id: str,
        created_at: str,
        now: datetime,
        to: Fulfilment,
        among: Sequence[Fulfilment],
    ) -> CommandResult:
        def ended(entry: Entry) -> list[dict[str, Any]]:
            # Only a price of the book is a redemption of the table.
            found = self.store.get(user_id, created_at) if entry.draft.rules_version else None
            if found is None:
                return []
            if found.fulfilment not in NOT_REVERSED:
                raise ApiError(409, "already_reversed", "the redemption was reversed before")
            if found.fulfilment not in among:
                raise _ended(found)
            return [
                {"Update": self.store.change(found, to, among, stamp(now))},
                *([self.stock.give_back(found.reward_id)] if found.from_stock else []),
                *([self.store.uncount(user_id, found.reward_id)] if found.is_limited else []),
            ]

        return self.rewards.reverse(user_id, created_at, now, ended)


def _ended(redemption: Redemption) -> ApiError:
    reason = f"the redemption is {redemption.fulfilment.value}"
    return ApiError(409, "redemption_ended", reason, {"fulfilment": redemption.fulfilment.value})
