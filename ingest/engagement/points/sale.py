"""Selling a reward of the book: what one attempt writes (rule 13)."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from adapters.book import BookStore
from adapters.engagement.rewards import RedemptionStore, RewardStock
from ingest.engagement.points.command import Command
from ingest.engagement.points.rewards import check_review
from ingest.web.caller import ApiError
from rules.book.book import Books
from rules.book.rewards import Redemption, Reward
from rules.engagement.account_state import Account
from rules.engagement.ledger import Draft, Entry, EntryKind


@dataclass(slots=True)
class Sale:
    """One request to redeem a reward. attempts: how often a transaction was tried."""

    books: BookStore
    stock: RewardStock
    store: RedemptionStore
    user_id: str
    reward_id: str
    now: datetime
    shown: int | None = None
    attempts: int = field(default=0)

    def command(self, account: Account) -> Command:
        """Return what the next attempt writes; raises ApiError for what the newest book does not allow."""
        check_review(account.profile)
        self.attempts += 1
        try:
            return self._by(self.books.books())
        except ApiError:
            # This process may not know a version yet that another one has sold by.
            return self._by(self.books.look())

    def _by(self, books: Books) -> Command:
        version = books.at(self.now)
        reward = version.book.rewards.get(self.reward_id)
        if reward is None:
            raise ApiError(404, "unknown_reward", f"the book of rules has no reward {self.reward_id}")
        if not reward.is_valid(self.now):
            raise ApiError(409, "reward_not_valid", f"{self.reward_id} is not offered now")
        self._check_price(reward.price_points)
        self._check_limit(reward)
        taken = self._taken(reward)
        draft = Draft(
            *(EntryKind.REDEEM, -reward.price_points),
            reward_id=self.reward_id,
            rules_version=version.number,
            brand=reward.brand,
        )
        return Command(draft, also=lambda entry: [self._put(entry, reward), *taken])

    def _check_price(self, price: int) -> None:
        if self.shown not in {None, price}:
            reason = f"{self.reward_id} costs {price} points now, and not {self.shown}"
            raise ApiError(409, "price_changed", reason, {"price_points": price})

    def _check_limit(self, reward: Reward) -> None:
        if (limit := reward.limit_per_user) is None:
            return
        if self.store.owned(self.user_id, self.reward_id) >= limit:
            raise ApiError(409, "reward_limit", f"one user may have {limit} of {self.reward_id}")

    def _taken(self, reward: Reward) -> list[dict[str, Any]]:
        """Return the actions that take one; raises 409 sold_out."""
        taken = []
        if reward.stock is not None:
            number = self.stock.pick(self.reward_id, reward.stock, self.attempts > 1)
            if number is None:
                raise ApiError(409, "sold_out", f"nothing is left of {self.reward_id}")
            taken.append(self.stock.take(self.reward_id, reward.stock, number))
        if reward.limit_per_user is not None:
            taken.append(self.store.count(self.user_id, self.reward_id, reward.limit_per_user))
        return taken

    def _put(self, entry: Entry, reward: Reward) -> dict[str, Any]:
        return self.store.put(
            Redemption(
                self.user_id,
                entry.created_at,
                self.reward_id,
                reward.brand,
                reward.price_points,
                entry.draft.rules_version or 0,
                from_stock=reward.stock is not None,
                is_limited=reward.limit_per_user is not None,
                title=reward.title,
            )
        )
