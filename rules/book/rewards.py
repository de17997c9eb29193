"""The catalogue of rewards: what points are spent on, at a price of the book (docs/rules.md, rule 13)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rules.days import parse_moment

REWARD_NAME = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
# What a freeze is called in the ledger. It has its price elsewhere in the book.
RESERVED = frozenset({"streak_freeze"})
ALWAYS, NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
Problem = tuple[tuple[str, ...], str]  # the keys that lead to what is wrong; a reason


@dataclass(frozen=True, slots=True)
class Reward:
    """What can be redeemed in [valid_from, valid_until). brand: who is to be paid for it, or pays for it.

    price_points: of one, above 0. stock: how many there are in all, over all versions of the book; None: no
    end of them. limit_per_user: how many of them one user may have; None: any number.
    """

    price_points: int
    brand: str
    stock: int | None = None
    limit_per_user: int | None = None
    valid_from: datetime = ALWAYS
    valid_until: datetime = NEVER

    def is_valid(self, now: datetime) -> bool:
        """Whether it can be redeemed at an instant."""
        return self.valid_from <= now < self.valid_until


def read_rewards(document: Mapping[str, Any]) -> dict[str, Reward]:
    """Return the rewards of a document that has no faults, by id."""
    return {reward_id: _reward(said) for reward_id, said in document.get("rewards", {}).items()}


def _reward(said: Mapping[str, Any]) -> Reward:
    return Reward(
        said["price_points"],
        said["brand"],
        said.get("stock"),
        said.get("limit_per_user"),
        parse_moment(said["valid_from"]).utc if "valid_from" in said else ALWAYS,
        parse_moment(said["valid_until"]).utc if "valid_until" in said else NEVER,
    )


def reward_problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what makes no sense in the rewards of a document that satisfies book_schema.BOOK."""
    for reward_id, said in document.get("rewards", {}).items():
        if reward_id in RESERVED:
            yield ("rewards", reward_id), "is the name of what the book sells elsewhere"
        unreadable = False
        for name in ("valid_from", "valid_until"):
            try:
                parse_moment(said.get(name, "2000-01-01T00:00:00Z"))
            except ValueError as error:
                unreadable = True
                yield ("rewards", reward_id, name), str(error)
        if not unreadable and _reward(said).valid_from >= _reward(said).valid_until:
            yield ("rewards", reward_id, "valid_until"), "is not after valid_from"


def lowered_stocks(
    earlier: Sequence[Mapping[str, Reward]],
    rewards: Mapping[str, Reward],
    later: Sequence[Mapping[str, Reward]] = (),
) -> Iterator[Problem]:
    """Yield the stocks that are lower than those of a version before, or higher than those of one after.

    A stock lies in slices, and some are gone from each (rules.engagement.points.stock). What has been
    spread cannot be gathered without asking all of them at once, so a stock is only ever raised.
    """
    for reward_id, reward in rewards.items():
        if (stock := reward.stock) is None:
            continue
        path = ("rewards", reward_id, "stock")
        before = [had for each in earlier if (had := _stock_of(each, reward_id)) is not None]
        after = [gets for each in later if (gets := _stock_of(each, reward_id)) is not None]
        if before and stock < max(before):
            yield path, f"was {max(before)}: a stock is never lowered; end the reward by valid_until"
        if after and stock > min(after):
            yield path, f"is {min(after)} in a version that is planned: a stock is never lowered"


def _stock_of(rewards: Mapping[str, Reward], reward_id: str) -> int | None:
    return rewards[reward_id].stock if reward_id in rewards else None
