"""Streaks of users without cover, in columns; of those who have some, by the rule; and how long runs last."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from analytics.what_if.ledger_parts import DAY_BITS, DAY_ZERO, Numbers
from rules.days import EPOCH
from rules.engagement.streak import Cover, Streak, advance, opening_streak, shown_streak

FIRST = EPOCH.date()
NO_DAY = -DAY_ZERO


@dataclass(slots=True)
class RunLengths:
    """How many runs had which length: those that have ended, and those that go on."""

    ended: Counter[int] = field(default_factory=Counter)
    alive: Counter[int] = field(default_factory=Counter)

    def add(self, lengths: Numbers, is_alive: NDArray[np.bool_]) -> None:
        """Count runs in."""
        for counter, some in ((self.ended, lengths[~is_alive]), (self.alive, lengths[is_alive])):
            found, times = np.unique(some, return_counts=True)
            counter.update(dict(zip(found.tolist(), times.tolist(), strict=True)))

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
class StreakColumns:
    """By user: length of the run that ends on the last active day; what shows today; longest; active days.

    last: the last active day, NO_DAY for none.
    """

    length: Numbers
    shown: Numbers
    longest: Numbers
    active: Numbers
    last: Numbers

    def put(self, user: int, streak: Streak | None, shown: int) -> None:
        """Set a user's streak."""
        self.length[user] = streak.length if streak else 0
        self.longest[user] = streak.longest if streak else 0
        self.active[user] = streak.active_days if streak else 0
        self.last[user] = (streak.last - FIRST).days if streak else NO_DAY
        self.shown[user] = shown


def active_keys(users: Numbers, days: Numbers) -> Numbers:
    """Return users and active days as keys (user << 24 | day), ascending and without repetition."""
    keys = np.sort((users << DAY_BITS) + days + DAY_ZERO, kind="stable")  # np.unique takes ten times as long
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


def streaks(
    keys: Numbers, size: int, today: Numbers, left_out: NDArray[np.bool_], lengths: RunLengths
) -> StreakColumns:
    """Return the streaks of `size` users as if nobody had cover; count in the runs of those not left out.

    today: by user, the date as a number of days.
    """
    length, shown, longest, active = np.zeros((4, size), np.int64)
    columns = StreakColumns(length, shown, longest, active, np.full(size, NO_DAY, np.int64))
    if not len(keys):
        return columns
    starts = np.flatnonzero(np.append(True, np.diff(keys) != 1))
    ends = np.append(starts[1:], len(keys)) - 1
    runs, users = ends - starts + 1, keys[starts] >> DAY_BITS
    days = (keys[ends] & (1 << DAY_BITS) - 1) - DAY_ZERO
    np.maximum.at(columns.longest, users, runs)
    np.add.at(columns.active, users, runs)
    is_last = np.append(users[1:] != users[:-1], True)
    columns.length[users[is_last]] = runs[is_last]
    columns.last[users[is_last]] = days[is_last]
    is_alive = is_last & (days >= today[users] - 1)
    columns.shown[users[is_alive]] = runs[is_alive]
    counted = ~left_out[users]
    lengths.add(runs[counted], is_alive[counted])
    return columns


def days_of(keys: Numbers, user: int) -> list[date]:
    """Return a user's active days, ascending."""
    first, last = np.searchsorted(keys, [user << DAY_BITS, (user + 1) << DAY_BITS])
    return [
        FIRST + timedelta(days=key) for key in ((keys[first:last] & (1 << DAY_BITS) - 1) - DAY_ZERO).tolist()
    ]


def fold_user(
    days: Iterable[date], cover: Cover, today: date, lengths: RunLengths
) -> tuple[Streak | None, int]:
    """Return a user's streak and what shows today, and count the runs in."""
    state: Streak | None = opening_streak(cover)
    ended: list[int] = []
    for day in days:
        before, state = state, advance(state, day, cover)
        if before and state.length == 1:
            ended.append(before.length)
    shown = shown_streak(state, cover, max(today, state.last)).current if state else 0
    lengths.ended.update(ended)
    if state:
        (lengths.alive if shown else lengths.ended).update([state.length])
    return state, shown


def fold_covered(
    columns: StreakColumns, keys: Numbers, covers: Mapping[int, Cover], today: Numbers, lengths: RunLengths
) -> None:
    """Work out the streaks of the users who have cover, by the rule."""
    for user, cover in covers.items():
        day = FIRST + timedelta(days=int(today[user]))
        columns.put(user, *fold_user(days_of(keys, user), cover, day, lengths))
