"""Rewards (docs/rules.md, rule 13). `Catalogue` shows them, and `Redemptions` sells one at the book's price.

The brand then reports that the reward was handed out, or that it failed, which reverses the redemption.
points_api.py has the routes.
"""

import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from adapters.book_store import BookStore
from adapters.engagement.rewards import RedemptionStore, RewardStock
from ingest.engagement.points.balance import POINTS_MAX, Balances
from ingest.engagement.points.commands import REDEEM, Command, CommandResult, SpendingCommands, check_review
from ingest.web.caller import ApiError, Caller
from ingest.web.json_schema import (
    COUNT,
    INSTANT,
    KEY,
    NEXT_PAGE,
    SHORT,
    TEXT,
    Schema,
    closed_object,
    flag,
    list_of,
    one_of,
    text,
    whole,
)
from ingest.web.paging import cursor_refusal, integer
from rules.book.book import Books
from rules.book.rewards import ALWAYS, NEVER, REWARD_NAME, Fulfilment, Redemption, Reward
from rules.days import stamp
from rules.engagement.account_state import Account
from rules.engagement.ledger import Draft, Entry, EntryKind, entry_id

# The fulfilment of a redemption can be reported only while it is open.
REPORTABLE = (Fulfilment.REQUESTED,)
# An admin may also reverse a redemption whose reward was handed out.
REVERSIBLE = (Fulfilment.REQUESTED, Fulfilment.FULFILLED)
REDEMPTION = closed_object(
    {
        "reward?": text("a reward of the book (GET /v1/rewards), at the book's price", pattern=REWARD_NAME),
        "price_points?": whole(
            "the price that the user was shown: at another one nothing is redeemed", 1, POINTS_MAX
        ),
        "points?": whole(
            "in place of `reward`, with `reward_id`; only streakline/fulfilment and streakline/admin may",
            1,
            POINTS_MAX,
        ),
        "reward_id?": text("what the points are spent on", pattern=SHORT),
        "idempotency_key": KEY,
    },
    example={"reward": "mug", "price_points": 120, "idempotency_key": "3f1c"},
)
REDEMPTION_VIEW = closed_object(
    {
        "entry_id": text("of the ledger entry"),
        "user_id": TEXT,
        "reward": text("its id"),
        "title?": text("what the reward was called when it was redeemed; plain text"),
        "brand": TEXT,
        "price_points": whole("", 1),
        "rules_version": whole("of the book that named the price"),
        "created_at": INSTANT,
        "fulfilment": one_of(Fulfilment),
        "changed_at?": {**INSTANT, "description": "when that changed"},
        "duplicate?": flag("the redemption was in this state before"),
    }
)
REDEMPTIONS = closed_object({"redemptions": list_of(REDEMPTION_VIEW), "cursor": NEXT_PAGE})


PAGE_DEFAULT, PAGE_MAX = 20, 100
# A process uses the count of a stock so long, because counting takes five reads.
STOCK_CACHE_SECONDS = 15
_REWARD: dict[str, Schema] = {
    "reward": text("its id"),
    "title?": text("what people see in place of the id; plain text"),
    "description?": text("plain text, which may have lines"),
    "image_url?": text("a picture of it (https or data:image/)", format="uri"),
    "price_points": whole("", 1),
    "brand": TEXT,
    "limit_per_user?": whole("", 1),
    "valid_from?": INSTANT,
    "valid_until?": INSTANT,
    "left?": {**COUNT, "description": "about so many; left out: no end of them"},
}
_REWARD_FOR_USER: dict[str, Schema] = {
    **_REWARD,
    "affordable": flag("whether `available` covers the price"),
    "left_for_user?": {**COUNT, "description": "how many more the user may have"},
}


def _catalogue(reward: dict[str, Schema], **more: Schema) -> Schema:
    version = whole("of the book of rules")
    rewards = list_of(closed_object(reward))
    return closed_object({"version": version, "rewards": rewards, "cursor": NEXT_PAGE, **more})


CATALOGUE = _catalogue(_REWARD)
USER_CATALOGUE = _catalogue(
    _REWARD_FOR_USER, user_id=TEXT, available={**COUNT, "description": "points that can be spent"}
)


@dataclass(slots=True)
class Sale:
    """One request to redeem a reward: what each attempt writes."""

    books: BookStore
    stock: RewardStock
    store: RedemptionStore
    user_id: str
    reward_id: str
    now: datetime
    price_shown: int | None = None  # the price in points that the user has agreed to, if it is known
    attempts: int = field(default=0)  # how often a transaction was tried

    def command(self, account: Account) -> Command:
        """Return what the next attempt writes; raises 404 or 409 for what the newest book does not allow."""
        check_review(account.profile)
        self.attempts += 1
        try:
            return self._command_by(self.books.books())
        except ApiError:
            # This process may not know the newest version of the book yet: read it, and look again.
            return self._command_by(self.books.look())

    def _command_by(self, books: Books) -> Command:
        version = books.at(self.now)
        reward = version.book.rewards.get(self.reward_id)
        if reward is None:
            raise ApiError(404, "unknown_reward", f"the book of rules has no reward {self.reward_id}")
        if not reward.is_valid(self.now):
            raise ApiError(409, "reward_not_valid", f"{self.reward_id} is not offered now")
        price, limit = reward.price_points, reward.limit_per_user
        if self.price_shown is not None and self.price_shown != price:
            reason = f"{self.reward_id} costs {price} points now, and not {self.price_shown}"
            raise ApiError(409, "price_changed", reason, {"price_points": price})
        if limit is not None and self.store.owned(self.user_id, self.reward_id) >= limit:
            raise ApiError(409, "reward_limit", f"one user may have {limit} of {self.reward_id}")
        take_actions = self._take_actions(reward)
        draft = Draft(
            EntryKind.REDEEM,
            -price,
            reward_id=self.reward_id,
            rules_version=version.number,
            brand=reward.brand,
        )
        return Command(draft, further_actions=lambda entry: [self._put_action(entry, reward), *take_actions])

    def _take_actions(self, reward: Reward) -> list[dict[str, Any]]:
        """Return the actions that take one from stock and from the user's limit; raises 409 sold_out."""
        actions = []
        if reward.stock is not None:
            number = self.stock.pick(self.reward_id, reward.stock, self.attempts > 1)
            if number is None:
                raise ApiError(409, "sold_out", f"nothing is left of {self.reward_id}")
            actions.append(self.stock.take_action(self.reward_id, reward.stock, number))
        if reward.limit_per_user is not None:
            actions.append(self.store.add_owned_action(self.user_id, self.reward_id, reward.limit_per_user))
        return actions

    def _put_action(self, entry: Entry, reward: Reward) -> dict[str, Any]:
        """Return the action that stores the redemption, under the time of its ledger entry."""
        return self.store.put_action(
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
    """The redemption after a report of its fulfilment."""

    redemption: Redemption
    duplicate: bool = False  # the redemption was in this state before


@dataclass(frozen=True, slots=True)
class Redemptions:
    """Commands about rewards of the book."""

    spending: SpendingCommands
    stock: RewardStock
    store: RedemptionStore

    def redeem(
        self, user_id: str, reward_id: str, key: str, now: datetime, price_shown: int | None = None
    ) -> CommandResult:
        """Spend a reward's price; points, stock, the user's limit and the key's claim move together or not.

        price_shown: see Sale. Raises 404 unknown_reward; 409 reward_not_valid, price_changed, sold_out,
        reward_limit, insufficient_balance, under_review, or conflict for a key used with another reward.
        """
        sale = Sale(self.spending.books, self.stock, self.store, user_id, reward_id, now, price_shown)
        return self.spending.commands.once(user_id, REDEEM + key, f"reward {reward_id}", now, sale.command)

    def get(self, user_id: str, created_at: str) -> Redemption:
        """Return a redemption of a reward; raises 404."""
        if redemption := self.store.get(user_id, created_at):
            return redemption
        raise ApiError(404, "not_found", "there is no such redemption of a reward")

    def reverse(self, user_id: str, created_at: str, now: datetime) -> CommandResult:
        """Undo a redemption, whatever it was of; see SpendingCommands.reverse.

        One of a reward gives stock and limit back in the same transaction, also when it was fulfilled.
        """
        return self._reverse(user_id, created_at, now, Fulfilment.REVERSED, REVERSIBLE)

    def report_fulfilled(self, user_id: str, created_at: str, by: Caller, now: datetime) -> FulfilmentResult:
        """Note that the user has the reward. Raises 403, 404, or 409 redemption_ended if it was reversed."""
        redemption = self._redemption_to_report(user_id, created_at, by)
        if self.store.set_fulfilment(redemption, Fulfilment.FULFILLED, REPORTABLE, stamp(now)):
            return FulfilmentResult(self.get(user_id, created_at))
        redemption = self.get(user_id, created_at)
        if redemption.fulfilment is not Fulfilment.FULFILLED:
            raise _redemption_ended(redemption)
        return FulfilmentResult(redemption, duplicate=True)

    def report_failed(self, user_id: str, created_at: str, by: Caller, now: datetime) -> FulfilmentResult:
        """Note that the user will not get the reward, and reverse the redemption, unless it is reversed.

        Raises 403, 404, or 409 redemption_ended for one that was fulfilled.
        """
        self._redemption_to_report(user_id, created_at, by)
        try:
            self._reverse(user_id, created_at, now, Fulfilment.FAILED, REPORTABLE)
        except ApiError as error:
            if error.code != "already_reversed":
                raise
            return FulfilmentResult(self.get(user_id, created_at), duplicate=True)
        return FulfilmentResult(self.get(user_id, created_at))

    def _redemption_to_report(self, user_id: str, created_at: str, by: Caller) -> Redemption:
        """Return a redemption whose fulfilment a caller may report; raises 403 or 404."""
        redemption = self.store.get(user_id, created_at)
        # The check comes first: a caller who may report nothing does not learn whether it exists.
        by.check_fulfilment(redemption.brand if redemption else "")
        return redemption or self.get(user_id, created_at)

    def _reverse(
        self,
        user_id: str,
        created_at: str,
        now: datetime,
        fulfilment: Fulfilment,
        allowed_from: Sequence[Fulfilment],
    ) -> CommandResult:
        """Reverse a redemption, which then has this fulfilment.

        Raises 409 if its fulfilment so far is not in `allowed_from`.
        """

        def further_actions(entry: Entry) -> list[dict[str, Any]]:
            # Points redeemed by amount have no rules_version, and no item in the table of redemptions.
            redemption = self.store.get(user_id, created_at) if entry.draft.rules_version else None
            if redemption is None:
                return []
            if redemption.fulfilment not in REVERSIBLE:
                raise ApiError(409, "already_reversed", "the redemption was reversed before")
            if redemption.fulfilment not in allowed_from:
                raise _redemption_ended(redemption)
            actions = [self.store.change_action(redemption, fulfilment, allowed_from, stamp(now))]
            if redemption.from_stock:
                actions.append(self.stock.give_back_action(redemption.reward_id))
            if redemption.is_limited:
                actions.append(self.store.remove_owned_action(user_id, redemption.reward_id))
            return actions

        return self.spending.reverse(user_id, created_at, now, further_actions)


def _redemption_ended(redemption: Redemption) -> ApiError:
    reason = f"the redemption is {redemption.fulfilment.value}"
    return ApiError(409, "redemption_ended", reason, {"fulfilment": redemption.fulfilment.value})


def redemption_view(redemption: Redemption) -> dict[str, Any]:
    """Return a redemption of a reward as the API shows it."""
    view = {
        "entry_id": entry_id(redemption.created_at),
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
    return {name: value for name, value in view.items() if value is not None}


@dataclass(frozen=True, slots=True)
class StockCount:
    """How many of a reward were left when they were counted."""

    left: int
    fresh_until: float  # a second of the monotonic clock; then they are counted again


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Shows the rewards that are offered, ordered by id."""

    books: BookStore
    stock: RewardStock
    store: RedemptionStore
    balances: Balances
    # By reward and its stock in the book
    counts: dict[tuple[str, int], StockCount] = field(default_factory=dict)

    def page(self, query: Mapping[str, str], now: datetime) -> dict[str, Any]:
        """Return a page of the rewards that are offered now. `left` may be half a minute old. Raises 400."""
        limit = integer(query, "limit", PAGE_DEFAULT, PAGE_MAX)
        after = query.get("cursor") or ""  # the reward that the page before ended with
        if after and not re.fullmatch(REWARD_NAME, after, re.ASCII):
            raise cursor_refusal()
        version = self.books.books().at(now)
        offers = sorted(name for name, reward in version.book.rewards.items() if reward.is_valid(now))
        names = [name for name in offers if name > after][:limit]
        is_last = not names or names[-1] == offers[-1]
        rewards = {name: version.book.rewards[name] for name in names}
        left = self._stock_left(rewards)
        return {
            "version": version.number,
            "rewards": [_reward_view(name, reward, left.get(name)) for name, reward in rewards.items()],
            "cursor": None if is_last else names[-1],
        }

    def page_for(self, user_id: str, query: Mapping[str, str], now: datetime) -> dict[str, Any]:
        """Return a page as `page` does, with what the user may have of each reward, and can pay for."""
        page = self.page(query, now)
        available = self.balances.view(user_id, now)["available"]
        owned = self.store.all_owned(user_id)
        for view in page["rewards"]:
            view["affordable"] = view["price_points"] <= available
            if "limit_per_user" in view:
                view["left_for_user"] = max(0, view["limit_per_user"] - owned.get(view["reward"], 0))
        return {**page, "user_id": user_id, "available": available}

    def _stock_left(self, rewards: Mapping[str, Reward]) -> dict[str, int]:
        """Return about how many are left of each reward that has a stock, counted anew if that is due."""
        stocks = [(name, reward.stock) for name, reward in rewards.items() if reward.stock is not None]
        now = time.monotonic()
        due = [key for key in stocks if key not in self.counts or self.counts[key].fresh_until <= now]
        with ThreadPoolExecutor() as pool:  # one after the other, twenty would take half a second
            for key, left in zip(due, pool.map(lambda key: self.stock.left(*key), due), strict=True):
                self.counts[key] = StockCount(left, now + STOCK_CACHE_SECONDS)
        return {name: self.counts[name, stock].left for name, stock in stocks}


def _reward_view(reward_id: str, reward: Reward, left: int | None) -> dict[str, Any]:
    view = {
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
    return {name: value for name, value in view.items() if value is not None}
