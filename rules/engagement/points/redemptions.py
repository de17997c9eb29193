"""A redeemed reward, until somebody has it in their hands (docs/rules.md, rule 13)."""

from dataclasses import dataclass
from enum import StrEnum


class Fulfilment(StrEnum):
    """What has become of a redemption. The last two are the end of it: its points have gone back.

    A fulfilled one may still be reversed by hand, when the reward comes back.
    """

    REQUESTED = "requested"
    FULFILLED = "fulfilled"
    FAILED = "failed"
    REVERSED = "reversed"


@dataclass(frozen=True, slots=True)
class Redemption:
    """A reward that a user has redeemed. created_at: the place of its ledger entry, which has its price too.

    rules_version: of the book that named the price. from_stock, is_limited: whether it was taken from a stock
    and counted for its user, so that a reversal gives back as much. changed_at: when its fulfilment changed.
    title: what the reward was called then, "" for none.
    """

    user_id: str
    created_at: str
    reward_id: str
    brand: str
    price_points: int
    rules_version: int
    from_stock: bool = False
    is_limited: bool = False
    fulfilment: Fulfilment = Fulfilment.REQUESTED
    changed_at: str | None = None
    title: str = ""
