"""Rewards of the book (rule 13): the catalogue in force with what is left of each, what is sold at the
book's price, and what becomes of it.
"""

import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from adapters.book import BookStore
from adapters.engagement.rewards import RedemptionStore, RewardStock
from ingest.engagement.points.balance import Balances
from ingest.engagement.points.commands import REDEEM, Command, CommandResult, Commands, Rewards, check_review
from ingest.web.caller import ApiError, Caller
from ingest.web.paging import integer
from rules.book.book import Books
from rules.book.rewards import ALWAYS, NEVER, REWARD_NAME, Fulfilment, Redemption, Reward
from rules.days import stamp
from rules.engagement.account_state import Account
from rules.engagement.ledger import Draft, Entry, EntryKind

OPEN = (Fulfilment.REQUESTED,)
NOT_REVERSED = (Fulfilment.REQUESTED, Fulfilment.FULFILLED)
PAGE_DEFAULT, PAGE_MAX = 20, 100
# What is left of a stock is counted so seldom by one process: five reads each time.
STOCK_CACHE_SECONDS = 15
STOCK_READERS = 8  # at the same time: a page of twenty would take half a second one after the other


# Selling a reward of the book: what one attempt writes (rule 13).


@dataclass(slots=True)
class Sale:
    """One request to redeem a reward."""

    books: BookStore
    stock: RewardStock
    store: RedemptionStore
    user_id: str
    reward_id: str
    now: datetime
    shown: int | None = None
    attempts: int = field(default=0)  # how often a transaction was tried

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
        taken = self._take_actions(reward)
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

    def _take_actions(self, reward: Reward) -> list[dict[str, Any]]:
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


@dataclass(frozen=True, slots=True)
class FulfilmentResult:
    """How a redemption stands."""

    redemption: Redemption
    duplicate: bool = False  # it stood so before


@dataclass(frozen=True, slots=True)
class Redemptions:
    """Commands about rewards of the book."""

    rewards: Rewards  # what reverses their entries
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
        redemption = self._redemption_to_report(user_id, created_at, by)
        if self.store.changed(redemption, Fulfilment.FULFILLED, OPEN, stamp(now)):
            return FulfilmentResult(self.get(user_id, created_at))
        redemption = self.get(user_id, created_at)
        if redemption.fulfilment is not Fulfilment.FULFILLED:
            raise _redemption_ended(redemption)
        return FulfilmentResult(redemption, duplicate=True)

    def failed(self, user_id: str, created_at: str, by: Caller, now: datetime) -> FulfilmentResult:
        """Note that a user will not get the reward: it is reversed, once, whoever else does so.

        Raises 403, 404, or 409 redemption_ended for one that was fulfilled.
        """
        self._redemption_to_report(user_id, created_at, by)
        try:
            self._reverse(user_id, created_at, now, Fulfilment.FAILED, OPEN)
        except ApiError as error:
            if error.code != "already_reversed":
                raise
            return FulfilmentResult(self.get(user_id, created_at), duplicate=True)
        return FulfilmentResult(self.get(user_id, created_at))

    def _redemption_to_report(self, user_id: str, created_at: str, by: Caller) -> Redemption:
        """Return a redemption whose fulfilment a caller may report; raises 403 or 404."""
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
                raise _redemption_ended(found)
            return [
                {"Update": self.store.change(found, to, among, stamp(now))},
                *([self.stock.give_back(found.reward_id)] if found.from_stock else []),
                *([self.store.uncount(user_id, found.reward_id)] if found.is_limited else []),
            ]

        return self.rewards.reverse(user_id, created_at, now, ended)


def _redemption_ended(redemption: Redemption) -> ApiError:
    reason = f"the redemption is {redemption.fulfilment.value}"
    return ApiError(409, "redemption_ended", reason, {"fulfilment": redemption.fulfilment.value})


# The catalogue of rewards in force, with what is left of each; and what of it a user can have.


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Shows rewards, by id."""

    books: BookStore
    stock: RewardStock
    store: RedemptionStore
    balances: Balances
    # What was left of a reward's stock, and until when that is shown
    counted: dict[tuple[str, int], tuple[float, int]] = field(default_factory=dict)

    def page(self, query: Mapping[str, str], now: datetime) -> dict[str, Any]:
        """Return a page of the rewards that are offered now. `left` may be half a minute old. Raises 400."""
        limit, after = integer(query, "limit", PAGE_DEFAULT, PAGE_MAX), _cursor_reward(query)
        version = self.books.books().at(now)
        offered = sorted(name for name, each in version.book.rewards.items() if each.is_valid(now))
        listed = [name for name in offered if name > after][:limit]
        is_last = not listed or listed[-1] == offered[-1]
        rewards = {name: version.book.rewards[name] for name in listed}
        left = self._stock_left(rewards)
        return {
            "version": version.number,
            "rewards": [_reward_view(name, each, left.get(name)) for name, each in rewards.items()],
            "cursor": None if is_last else listed[-1],
        }

    def page_for(self, user_id: str, query: Mapping[str, str], now: datetime) -> dict[str, Any]:
        """Return a page as `page` does, with what the user may have of each reward, and can pay for."""
        found = self.page(query, now)
        available = self.balances.view(user_id, now)["available"]
        owned = self.store.all_owned(user_id)
        for each in found["rewards"]:
            each["affordable"] = each["price_points"] <= available
            if "limit_per_user" in each:
                each["left_for_user"] = max(0, each["limit_per_user"] - owned.get(each["reward"], 0))
        return {**found, "user_id": user_id, "available": available}

    def _stock_left(self, rewards: Mapping[str, Reward]) -> dict[str, int]:
        """Return about how many are left of each reward that has a stock, counted anew if that is due."""
        stocks = {name: each.stock for name, each in rewards.items() if each.stock is not None}
        now = time.monotonic()
        due = [key for key in stocks.items() if self.counted.get(key, (0.0, 0))[0] <= now]
        with ThreadPoolExecutor(STOCK_READERS) as pool:
            for key, left in zip(due, pool.map(lambda key: self.stock.left(*key), due), strict=True):
                self.counted[key] = now + STOCK_CACHE_SECONDS, left
        return {name: self.counted[name, stock][1] for name, stock in stocks.items()}


def _reward_view(reward_id: str, reward: Reward, left: int | None) -> dict[str, Any]:
    shown = {
        "reward": reward_id,
        "title": reward.title or None,
        "description": reward.description or None,
        "image_url": reward.image_url or None,
        "price_points": reward.price_points,
        "brand": reward.brand,
        "limit_per_user": reward.limit_per_user,
        "valid_from": None if reward.valid_from == ALWAYS else stamp(reward.valid_from),
        "valid_until": None if reward.valid_until == NEVER else stamp(reward.valid_until),
        "left": left,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _cursor_reward(query: Mapping[str, str]) -> str:
    after = query.get("cursor") or ""
    if after and not re.fullmatch(REWARD_NAME, after, re.ASCII):
        raise ApiError(400, "invalid_parameter", "cursor is not one that a page returned")
    return after


def redemption_view(redemption: Redemption, entry_id: str) -> dict[str, Any]:
    """Return a redemption of a reward as the API shows it."""
    shown = {
        "entry_id": entry_id,
        "user_id": redemption.user_id,
        "reward": redemption.reward_id,
        "title": redemption.title or None,
        "brand": redemption.brand,
        "price_points": redemption.price_points,
        "rules_version": redemption.rules_version,
        "created_at": redemption.created_at,
        "fulfilment": redemption.fulfilment.value,
        "changed_at": redemption.changed_at,
    }
    return {name: value for name, value in shown.items() if value is not None}
