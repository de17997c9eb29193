"""The figures of all users, added up part by part."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields

import pyarrow as pa

# What is told of each user, before and after.
MEASURES = ("earned", "balance", "shown", "length", "longest", "active_days", "last")
USERS = pa.schema(
    [
        ("user_id", pa.string()),
        *((f"{name}_{when}", pa.int64()) for when in ("before", "after") for name in MEASURES),
    ]
)


@dataclass(slots=True)
class RunLengths:
    """How many runs had which length: those that have ended, and those that go on."""

    ended: Counter[int] = field(default_factory=Counter)
    alive: Counter[int] = field(default_factory=Counter)

    def survival(self, days: Iterable[int]) -> dict[int, float]:
        """Return the share of runs that reach so many dates, by Kaplan and Meier.

        A run that goes on is known to have reached its length, and no more.
        """
        share, shares = 1.0, {}
        at_risk = self.ended.total() + self.alive.total()
        lengths = sorted(self.ended.keys() | self.alive.keys())
        place = 0
        for day in sorted(days):
            while place < len(lengths) and lengths[place] < day:
                ended, alive = self.ended[lengths[place]], self.alive[lengths[place]]
                share *= 1 - ended / at_risk
                at_risk -= ended + alive
                place += 1
            shares[day] = share
        return shares


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

    def add(self, other: "GoalSums") -> None:
        """Count other users in."""
        self.reached += other.reached
        self.current += other.current
        self.longest = max(self.longest, other.longest)


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
    streaks: list[GoalChange] = field(default_factory=list)
    achievements: list[GoalChange] = field(default_factory=list)

    def of_type(self, name: str) -> TypeSums:
        """Return the sums of a type."""
        return self.types.setdefault(name, TypeSums())

    def of_month(self, name: str) -> list[int]:
        """Return the sums of a month."""
        return self.months.setdefault(name, [0, 0])

    def add(self, other: "Figures") -> None:
        """Count other users in. Both are of one question, so streaks and achievements are the same."""
        for name, sums in other.types.items():
            known = self.of_type(name)
            for each in fields(TypeSums):
                setattr(known, each.name, getattr(known, each.name) + getattr(sums, each.name))
        for name, (before, after) in other.months.items():
            month = self.of_month(name)
            month[0] += before
            month[1] += after
        for mine, theirs in ((self.runs_before, other.runs_before), (self.runs_after, other.runs_after)):
            mine.ended.update(theirs.ended)
            mine.alive.update(theirs.alive)
        self.impossible += other.impossible
        self.redemptions += other.redemptions
        self.entries += other.entries
        ours, others = ([*each.streaks, *each.achievements] for each in (self, other))
        for mine_of, theirs_of in zip(ours, others, strict=True):
            mine_of.before.add(theirs_of.before)
            mine_of.after.add(theirs_of.after)
