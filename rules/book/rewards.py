"""Rewards (docs/rules.md, rule 13): what the book offers, the stock of a reward, and redemptions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

FREEZE_REWARD, REPAIR_REWARD = "streak_freeze", "streak_repair"  # what a ledger calls a freeze, and a repair
REWARD_NAME = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
ALWAYS, NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
# A stock is counted in so many items, because transactions on one item conflict. Of a thousand redemptions a
# second each item gets four. A transaction takes 15 ms. So an item is busy 6% of the time (4 x 15 ms).
SLICES = 256
# Slices lie in so many partitions. One takes a thousand write units a second, and taking a piece costs two.
GROUPS = 4
SPARES = -1  # in place of a slice's number: the pieces that were given back, which have a key of their own


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward that users can redeem in [valid_from, valid_until)."""

    price_points: int  # of one, above 0
    brand: str  # the company that is paid for it, or that pays for it
    stock: int | None = None  # the number of pieces, over all versions of the book; None: unlimited
    limit_per_user: int | None = None  # how many of them one user may have; None: any number
    valid_from: datetime = ALWAYS
    valid_until: datetime = NEVER
    title: str = ""  # plain text that people read; "": none
    description: str = ""  # likewise
    image_url: str = ""  # a picture of it (https, or data:image/); "": none

    def is_valid(self, now: datetime) -> bool:
        """Whether it can be redeemed at an instant."""
        return self.valid_from <= now < self.valid_until


def slice_size(stock: int, number: int) -> int:
    """Return how many pieces of a stock a slice has. Sizes differ by one at most; their sum is the stock.

    Each slice has stock // SLICES, and the first stock % SLICES slices have one more. Both follow from
    rounding up (stock - number) / SLICES. Example: with a stock of 257, slice 0 has 2, and each other slice
    has 1.

    A slice counts how many of its pieces were taken, and that number only grows. So a full slice stays full
    until the stock is raised, and a process that has seen all slices full need not read them again. A piece
    that a reversal gives back belongs to no slice but to the spares, which are taken last. So one read of the
    spares decides whether anything is left.
    """
    return (stock + SLICES - 1 - number) // SLICES


def group_of(number: int) -> int:
    """Return the partition of a slice."""
    return number % GROUPS


def open_slices(stock: int, taken: Mapping[int, int]) -> tuple[int, ...]:
    """Return the slices that are not full. taken: by slice, how many pieces were taken; no entry: none."""
    return tuple(number for number in range(SLICES) if taken.get(number, 0) < slice_size(stock, number))


def pieces_left(stock: int, taken: Mapping[int, int], spares: int) -> int:
    """Return how many pieces are left in all."""
    return spares + sum(max(0, slice_size(stock, number) - taken.get(number, 0)) for number in range(SLICES))


class Fulfilment(StrEnum):
    """The state of a redemption."""

    REQUESTED = "requested"
    FULFILLED = "fulfilled"  # an admin may still reverse it, if the user sends the reward back
    FAILED = "failed"  # the user will not get the reward, and has got the points back
    REVERSED = "reversed"  # an admin has reversed it, and the user has got the points back


@dataclass(frozen=True, slots=True)
class Redemption:
    """A reward that a user has redeemed."""

    user_id: str
    created_at: str  # the place of its ledger entry
    reward_id: str
    brand: str
    price_points: int
    rules_version: int  # of the book that named the price
    from_stock: bool = False  # whether it was taken from a stock, so that a reversal gives it back
    is_limited: bool = False  # whether it was counted for the user's limit, so that a reversal uncounts it
    fulfilment: Fulfilment = Fulfilment.REQUESTED
    changed_at: str | None = None  # when its fulfilment changed
    title: str = ""  # the reward's title at that time; "": none
