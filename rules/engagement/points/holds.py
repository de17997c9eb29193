"""Holds: points that are reserved and not spent yet (docs/rules.md, rule 11).

A hold is in the profile while it is open. It writes no ledger entry: capturing it does, as a redemption. At
its deadline it is released without anybody's doing, because whoever reads counts only what is still held.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid5

from rules.days import stamp, unstamp

OPEN_MAX = 5  # of one user; the profile has them, and it is to stay small
HELD_DEFAULT, HELD_MAX = timedelta(minutes=15), timedelta(days=7)
NAMESPACE = UUID("1c1c3d5e-7a0b-5f6e-9d5c-7f7c8f3a2b10")


@dataclass(frozen=True, slots=True)
class Hold:
    """Points reserved for a reward. held_at, until: stamps; from `until` on they are held no more."""

    hold_id: str
    points: int
    reward_id: str
    held_at: str
    until: str

    def is_open(self, now: datetime) -> bool:
        """Whether the points are still reserved."""
        return now < unstamp(self.until)


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """What somebody asks for. lasts: how long nobody else may spend the points."""

    points: int
    reward_id: str
    idempotency_key: str
    lasts: timedelta = HELD_DEFAULT


def hold_id(user_id: str, key: str) -> str:
    """Return the id of the hold that a user's key stands for: the same for every attempt."""
    return str(uuid5(NAMESPACE, f"{user_id}\x00{key}"))


def begun(user_id: str, asked: HoldRequest, now: datetime) -> Hold:
    """Return the hold that begins now."""
    key = hold_id(user_id, asked.idempotency_key)
    return Hold(key, asked.points, asked.reward_id, stamp(now), stamp(now + asked.lasts))


def held_points(holds: Iterable[Hold], now: datetime) -> int:
    """Return the points that open holds reserve."""
    return sum(each.points for each in holds if each.is_open(now))


def without(holds: Iterable[Hold], ended: str) -> tuple[Hold, ...]:
    """Return the holds but the one with an id."""
    return tuple(each for each in holds if each.hold_id != ended)
