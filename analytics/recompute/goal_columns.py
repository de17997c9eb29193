"""Streaks that the book declares, folded in columns: all users at once.

Users are rows and periods are columns of a matrix, and a walk goes over the columns.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rules.book.book import Books
from rules.book.goal_rules import NeedKind, StreakPeriod, StreakRule
from rules.book.point_rules import COUNTED
from rules.engagement.goals import rule_of
from rules.engagement.streak import Cover

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
EPOCH = date(1970, 1, 1)
NEVER = -(1 << 40)


@dataclass(frozen=True, slots=True)
class Columns:
    """The periods of a streak, one after the other. starts: first dates, as days since 1970, and one more."""

    starts: Numbers
    rules: list[StreakRule | None]

    @classmethod
    def of(
        cls, name: str, per: StreakPeriod, days: Numbers, books: Books, until: date = date.min
    ) -> "Columns":
        """Return the periods of all these days, and those up to a date."""
        first, last = per.first(_date(int(days.min()))), max(until, _date(int(days.max())))
        firsts = [first]
        while firsts[-1] <= last:
            firsts.append(per.after(firsts[-1]))
        rules = rule_of(books, name)
        starts = np.array([(each - EPOCH).days for each in firsts], np.int64)
        return cls(starts, list(map(rules, firsts[:-1])))

    def flags(self, name: str) -> Flags:
        """Return for each period whether freezes, or pauses, may cover it."""
        return np.array([bool(each and getattr(each, name)) for each in self.rules])


def lengths_of(
    name: str, per: StreakPeriod, entries: pa.Table, books: Books, covers: Mapping[str, Cover]
) -> tuple[Columns, Numbers]:
    """Return a streak's periods, and its length after each of them, by user (as entries first name them)."""
    users = entries["user_id"].combine_chunks().dictionary_encode()
    ids = users.dictionary.to_pylist()
    columns = Columns.of(name, per, _numbers(entries["day"]), books)
    reached = _reached(columns, entries, _numbers(users.indices), len(ids))
    _, lengths = _walked(columns, reached, _neutral(columns, ids, covers), _granted(columns, ids, covers))
    return columns, np.where(reached, lengths, 0)


@dataclass(frozen=True, slots=True)
class GoalStandings:
    """How a streak stands by user, of those who have ever reached a period of it.

    current: the streak that shows today. longest: the longest of it. reached: how many periods.
    """

    ids: list[str]
    current: Numbers
    longest: Numbers
    reached: Numbers


def standings_of(
    name: str, entries: pa.Table, books: Books, covers: Mapping[str, Cover], today_of: Callable[[str], date]
) -> GoalStandings:
    """Return how a streak stands today, as `GET .../streaks` shows it: the open period is no miss.

    entries: user_id, day (since 1970), event_type, measures, events (how many); at least one, by user.
    today_of: which date is today, by user.
    """
    per = next(each.book.streaks[name].per for each in books.versions if name in each.book.streaks)
    users = entries["user_id"].combine_chunks().dictionary_encode()
    ids = users.dictionary.to_pylist()
    today = np.array([(today_of(each) - EPOCH).days for each in ids], np.int64)[:, None]
    columns = Columns.of(name, per, _numbers(entries["day"]), books, _date(int(today.max())))
    reached = _reached(columns, entries, _numbers(users.indices), len(ids)) & (columns.starts[:-1] <= today)
    neutral, granted = _neutral(columns, ids, covers), _granted(columns, ids, covers)
    (_, _, longest, count, _), lengths = _walked(
        columns, reached, neutral, granted, columns.starts[1:] <= today
    )
    some = np.flatnonzero(count)
    return GoalStandings([ids[at] for at in some], lengths[some, -1], longest[some], count[some])


def _date(number: int) -> date:
    return EPOCH + timedelta(days=number)


def _reached(columns: Columns, entries: pa.Table, user: Numbers, users: int) -> Flags:
    """Return for each user and period whether it has what it needs."""
    day, events = _numbers(entries["day"]), _numbers(entries["events"])
    column = np.searchsorted(columns.starts, day, side="right") - 1
    types = entries["event_type"].combine_chunks().dictionary_encode()
    texts = entries["measures"].combine_chunks().dictionary_encode()
    names, kinds = types.dictionary.to_pylist(), _numbers(types.indices)
    have = np.zeros((users, len(columns.rules)), np.int64)
    for rule in {each for each in columns.rules if each}:
        in_force = np.array([each == rule for each in columns.rules])
        listed = np.array([each in rule.event_types for each in names])
        at = np.flatnonzero(in_force[column] & listed[kinds])
        if rule.need.kind is NeedKind.ACTIVE_DAYS:
            seen = np.unique(np.stack([user[at], column[at], day[at]]), axis=1)
            np.add.at(have, (seen[0], seen[1]), 1)
            continue
        each_adds = np.ones(len(at), np.int64)
        if rule.need.kind is NeedKind.SUM:
            sums = np.array([_amount(text, rule.need.property) for text in texts.dictionary.to_pylist()])
            each_adds = sums[_numbers(texts.indices)[at]]
        np.add.at(have, (user[at], column[at]), each_adds * events[at])
    least = np.array([each.need.at_least if each else 1 for each in columns.rules], np.int64)
    return have >= least


def _amount(measures: str, name: str | None) -> int:
    said = dict(each.split("=") for each in measures.split(",") if each != COUNTED)
    return int(said.get(name or "", 0))


def _neutral(columns: Columns, ids: list[str], covers: Mapping[str, Cover]) -> Flags:
    """Return for each user and period whether most of its dates are skipped, or paused if that counts."""
    first, end = int(columns.starts[0]), int(columns.starts[-1])
    found = np.zeros((len(ids), len(columns.rules)), np.bool_)
    bounds, dates = columns.starts[:-1] - first, np.diff(columns.starts)
    for row, user in enumerate(ids):
        cover = covers.get(user)
        if cover is None or not (cover.pauses or cover.skipped):
            continue
        skipped, paused = np.zeros(end - first, np.int64), np.zeros(end - first, np.int64)
        for begun, last in cover.pauses:
            paused[max(0, (begun - EPOCH).days - first) : max(0, (last - EPOCH).days + 1 - first)] = 1
        for day in cover.skipped:
            if first <= (day - EPOCH).days < end:
                skipped[(day - EPOCH).days - first] = 1
        either = np.add.reduceat(paused | skipped, bounds)
        free = np.where(columns.flags("pauses"), either, np.add.reduceat(skipped, bounds))
        found[row] = 2 * free > dates
    return found


def _granted(columns: Columns, ids: list[str], covers: Mapping[str, Cover]) -> Numbers:
    """Return for each user and period the freezes granted up to its end; 0 where none may cover it."""
    found = np.zeros((len(ids), len(columns.rules)), np.int64)
    for row, user in enumerate(ids):
        for day, change in covers.get(user, Cover()).freezes:
            found[row] += np.where(columns.starts[1:] > (day - EPOCH).days, change, 0)
    return np.where(columns.flags("freezes"), found, 0)


def _walked(
    columns: Columns, reached: Flags, neutral: Flags, granted: Numbers, is_over: Flags | None = None
) -> tuple[tuple[Numbers, ...], Numbers]:
    """Return the figures of ROWS after each user's newest period reached; and all lengths, user by user.

    The first figure is that period (NEVER for none). is_over: for each user and period whether it may be a
    miss by now; None: all of them.
    """
    last, run, longest, count, spent, kept, used = (np.zeros(len(reached), np.int64) for _ in range(7))
    last += NEVER
    lengths = np.zeros(reached.shape, np.int64)
    for column, rule in enumerate(columns.rules):
        now = reached[:, column] & (rule is not None)
        may_miss = rule is not None and not rule.is_opening
        missed = ~now & ~neutral[:, column] & (run > 0) & may_miss
        if is_over is not None:
            missed &= is_over[:, column]
        covered = missed & (granted[:, column] > spent)
        spent += covered
        run = np.where(now, run + 1, np.where(missed & ~covered, 0, run))
        lengths[:, column] = run
        longest, count = np.maximum(longest, run), count + now
        last = np.where(now, columns.starts[column], last)
        kept, used = np.where(now, run, kept), np.where(now, spent, used)
    return (last, kept, longest, count, used), lengths


def _numbers(column: pa.ChunkedArray | pa.Array) -> Numbers:
    return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)
