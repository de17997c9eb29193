"""The question of a what-if, and its answer: figures over all users, which are added up part by part."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from rules.book.book import Book

LARGEST_CHANGES = 20  # the answer lists so many users, those who change most
# The figures of each user, before and after.
MEASURES = ("earned", "balance", "shown", "length", "longest", "active_days", "last")
USERS = pa.schema(
    [
        ("user_id", pa.string()),
        *((f"{name}_{when}", pa.int64()) for when in ("before", "after") for name in MEASURES),
    ]
)


@dataclass(slots=True)
class RunLengths:
    """The lengths of runs of active dates: how many runs have each length."""

    ended: Counter[int] = field(default_factory=Counter)
    alive: Counter[int] = field(default_factory=Counter)  # runs that may still grow

    def survival(self, days: Iterable[int]) -> dict[int, float]:
        """Return the share of runs that reach each number of dates, by Kaplan and Meier.

        A run that may still grow has surely reached its length; how much further it comes is unknown.
        """
        share, shares = 1.0, {}
        at_risk = self.ended.total() + self.alive.total()
        lengths = sorted(self.ended.keys() | self.alive.keys())
        index = 0
        for day in sorted(days):
            while index < len(lengths) and lengths[index] < day:
                ended, alive = self.ended[lengths[index]], self.alive[lengths[index]]
                share *= 1 - ended / at_risk
                at_risk -= ended + alive
                index += 1
            shares[day] = share
        return shares


@dataclass(slots=True)
class TypeSums:
    """The sums of an event type."""

    entries: int = 0
    before: int = 0  # points that the entries have earned
    after: int = 0  # points that they would earn
    refused: int = 0  # how many events would be refused
    broken: int = 0  # how many of these because the contract refuses their properties


@dataclass(slots=True)
class PointSums:
    """The points of a month."""

    before: int = 0
    after: int = 0


@dataclass(slots=True)
class GoalSums:
    """The sums of a streak or an achievement under some books. An achievement has `reached` alone."""

    reached: int = 0  # how many users have ever reached a period of the streak, or have the achievement
    current: int = 0  # how many users have the streak today
    longest: int = 0  # the longest of any user, in periods

    def add(self, other: "GoalSums") -> None:
        """Count other users in."""
        self.reached += other.reached
        self.current += other.current
        self.longest = max(self.longest, other.longest)


@dataclass(slots=True)
class GoalChange:
    """A streak or an achievement that the candidate and the book in force do not share."""

    name: str
    change: str  # new, changed or removed
    per: str | None = None  # the period of a streak; None: it is an achievement
    title: str = ""  # of an achievement
    before: GoalSums = field(default_factory=GoalSums)
    after: GoalSums = field(default_factory=GoalSums)


@dataclass(slots=True)
class LevelUsers:
    """How many users are on a level: by the book in force now, and by the predicted points and book."""

    name: str | None  # None: on no level
    title: str = ""
    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True)
class ImpossibleAct:
    """Something that a user did and could not have done under the candidate."""

    user_id: str
    what: str  # redemption, hold, freeze, repair or pause
    at: str  # a stamp; of a pause its first date
    points: int  # what it would have cost
    missing: int  # how many points would have been missing; 0: it was impossible for another reason
    why: str


@dataclass(slots=True)
class Figures:
    """The figures of all users together."""

    types: dict[str, TypeSums] = field(default_factory=dict)
    months: dict[str, PointSums] = field(default_factory=dict)  # by YYYY-MM
    runs_before: RunLengths = field(default_factory=RunLengths)
    runs_after: RunLengths = field(default_factory=RunLengths)
    impossible: list[ImpossibleAct] = field(default_factory=list)
    redemptions: int = 0  # the number of redemptions in the ledgers
    entries: int = 0  # the number of the ledgers' entries
    bonuses: int = 0  # how many entries of bonuses the ledgers have
    streaks: list[GoalChange] = field(default_factory=list)
    achievements: list[GoalChange] = field(default_factory=list)
    levels: list[LevelUsers] = field(default_factory=list)  # none if no book has levels

    def of_type(self, name: str) -> TypeSums:
        """Return the sums of a type."""
        return self.types.setdefault(name, TypeSums())

    def of_month(self, day: date) -> PointSums:
        """Return the sums of a date's month."""
        return self.months.setdefault(day.isoformat()[:7], PointSums())

    def add(self, other: "Figures") -> None:
        """Count other users in. Both are of one question, so goals and levels are the same."""
        for name, sums in other.types.items():
            total = self.of_type(name)
            for figure in fields(TypeSums):
                setattr(total, figure.name, getattr(total, figure.name) + getattr(sums, figure.name))
        for name, points in other.months.items():
            month = self.months.setdefault(name, PointSums())
            month.before += points.before
            month.after += points.after
        run_pairs = ((self.runs_before, other.runs_before), (self.runs_after, other.runs_after))
        for runs, other_runs in run_pairs:
            runs.ended.update(other_runs.ended)
            runs.alive.update(other_runs.alive)
        self.impossible += other.impossible
        self.redemptions += other.redemptions
        self.entries += other.entries
        self.bonuses += other.bonuses
        other_changes = [*other.streaks, *other.achievements]
        for change, other_change in zip([*self.streaks, *self.achievements], other_changes, strict=True):
            change.before.add(other_change.before)
            change.after.add(other_change.after)
        for users, other_users in zip(self.levels, other.levels, strict=True):
            users.before += other_users.before
            users.after += other_users.after


@dataclass(frozen=True, slots=True)
class WhatIfQuestion:
    """A question to the lake."""

    book: Book | None  # the candidate; None: the real versions judge, so the prediction must change nothing
    now: datetime  # the prediction is as of this instant: expired points, and each user's date
    since: datetime | None = None  # since, until: when the candidate is in force
    until: datetime | None = None


@dataclass(slots=True)
class WhatIfAnswer:
    """The prediction, or the part of it that is about some users."""

    question: WhatIfQuestion
    users: pa.Table  # a row for each user (USERS)
    figures: Figures
    largest_changes: list[dict[str, Any]]  # the users who change most, and why
    limits: list[str] = field(default_factory=list)  # sentences: what it cannot say

    def add(self, other: "WhatIfAnswer") -> None:
        """Count other users in."""
        self.users = pa.concat_tables([self.users, other.users])
        self.figures.add(other.figures)
        changes = sorted([*self.largest_changes, *other.largest_changes], key=rank)
        self.largest_changes = changes[:LARGEST_CHANGES]


def rank(change: dict[str, Any]) -> tuple[int, str]:
    """Return the sort key of a user's change: the largest score comes first."""
    return -change["score"], change["user_id"]
