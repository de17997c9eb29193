"""The figures of all users, added up part by part."""

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from analytics.what_if.runs import RunLengths

# What is told of each user, before and after.
MEASURES = ("earned", "balance", "shown", "length", "longest", "active_days", "last")
USERS = pa.schema(
    [
        ("user_id", pa.string()),
        *((f"{name}_{when}", pa.int64()) for when in ("before", "after") for name in MEASURES),
        ("is_replayed", pa.bool_()),
    ]
)


@dataclass(slots=True)
class TypeSums:
    """Of an event type: entries, points that they earned and would earn, and those that would be refused."""

    entries: int = 0
    before: int = 0
    after: int = 0
    refused: int = 0
    broken: int = 0


@dataclass(slots=True)
class GoalSums:
    """Of a streak under some books: how many users have ever reached a period of it, and have it today.

    longest: the longest of any user, in periods. Of an achievement `reached` alone: how many users have it.
    """

    reached: int = 0
    current: int = 0
    longest: int = 0


@dataclass(slots=True)
class GoalChange:
    """A streak or an achievement that the candidate and the book in force do not share.

    change: new, changed or removed. per: the period of a streak; None for an achievement. title: of that one.
    """

    name: str
    change: str
    per: str | None = None
    title: str = ""
    before: GoalSums = field(default_factory=GoalSums)
    after: GoalSums = field(default_factory=GoalSums)


@dataclass(frozen=True, slots=True)
class Impossible:
    """Something that a user did and could not have done. what: redemption, hold, freeze or pause.

    at: a stamp, of a pause its first date. points: its price then. missing: how many points would have been
    missing; 0 if something else was in its way, which `why` tells.
    """

    user_id: str
    what: str
    at: str
    points: int
    missing: int
    why: str


@dataclass(slots=True)
class Figures:
    """What all users come to. months: by month (YYYY-MM), points before and after."""

    types: dict[str, TypeSums] = field(default_factory=dict)
    months: dict[str, list[int]] = field(default_factory=dict)
    runs_before: RunLengths = field(default_factory=RunLengths)
    runs_after: RunLengths = field(default_factory=RunLengths)
    impossible: list[Impossible] = field(default_factory=list)
    redemptions: int = 0
    entries: int = 0
    changes: Counter[int] = field(default_factory=Counter)
    streaks: list[GoalChange] = field(default_factory=list)
    achievements: list[GoalChange] = field(default_factory=list)

    def of_type(self, name: str) -> TypeSums:
        """Return the sums of a type."""
        return self.types.setdefault(name, TypeSums())

    def of_month(self, name: str) -> list[int]:
        """Return the sums of a month."""
        return self.months.setdefault(name, [0, 0])
