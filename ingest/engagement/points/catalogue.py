"""The catalogue of rewards (docs/rules.md, rule 13): how many are left, and how many a user may have."""

import re
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from adapters.book import BookStore
from adapters.engagement.rewards import RedemptionStore, RewardStock
from ingest.engagement.points.balance import Balances
from ingest.web.caller import ApiError
from ingest.web.json_schema import (
    COUNT,
    INSTANT,
    NEXT_PAGE,
    TEXT,
    Schema,
    closed_object,
    flag,
    list_of,
    text,
    whole,
)
from ingest.web.paging import integer
from rules.book.rewards import ALWAYS, NEVER, REWARD_NAME, Reward
from rules.days import stamp

PAGE_DEFAULT, PAGE_MAX = 20, 100
# A process uses the count of a stock so long, because counting takes five reads.
STOCK_CACHE_SECONDS = 15
STOCK_READERS = 8  # stocks counted at the same time: one after the other, twenty would take half a second
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


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Shows the rewards that are offered, ordered by id."""

    books: BookStore
    stock: RewardStock
    store: RedemptionStore
    balances: Balances
    # By (reward, stock): the monotonic second until which a count is shown, and how many were left.
    counted: dict[tuple[str, int], tuple[float, int]] = field(default_factory=dict)

    def page(self, query: Mapping[str, str], now: datetime) -> dict[str, Any]:
        """Return a page of the rewards that are offered now. `left` may be half a minute old. Raises 400."""
        limit, after = integer(query, "limit", PAGE_DEFAULT, PAGE_MAX), _cursor_reward(query)
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
        stocks = {name: reward.stock for name, reward in rewards.items() if reward.stock is not None}
        now = time.monotonic()
        due = []
        for key in stocks.items():
            shown_until, _ = self.counted.get(key, (0.0, 0))
            if shown_until <= now:
                due.append(key)
        with ThreadPoolExecutor(STOCK_READERS) as pool:
            for key, left in zip(due, pool.map(lambda key: self.stock.left(*key), due), strict=True):
                self.counted[key] = now + STOCK_CACHE_SECONDS, left
        return {name: self.counted[name, stock][1] for name, stock in stocks.items()}


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


def _cursor_reward(query: Mapping[str, str]) -> str:
    after = query.get("cursor") or ""
    if after and not re.fullmatch(REWARD_NAME, after, re.ASCII):
        raise ApiError(400, "invalid_parameter", "cursor is not one that a page returned")
    return after
