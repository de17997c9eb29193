"""Streaks that the book declares, folded in columns: all users at once.

Users are rows and periods are columns of a matrix, and a walk goes over the columns.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rules.book.book import Books
from rules.book.goal_rules import Condition, ConditionKind, NeedKind, StreakPeriod, StreakRule
from rules.book.point_rules import COUNTED
from rules.engagement.achievements import declared_achievements
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
    reached = _reached_flags(columns, entries, _numbers(users.indices), len(ids))
    _, lengths = _walk_periods(
        columns, reached, _neutral(columns, ids, covers), _granted_freezes(columns, ids, covers)
    )
    return columns, np.where(reached, lengths, 0)


def _date(number: int) -> date:
    return EPOCH + timedelta(days=number)


def _reached_flags(columns: Columns, entries: pa.Table, user: Numbers, users: int) -> Flags:
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


def _granted_freezes(columns: Columns, ids: list[str], covers: Mapping[str, Cover]) -> Numbers:
    """Return for each user and period the freezes granted up to its end; 0 where none may cover it."""
    found = np.zeros((len(ids), len(columns.rules)), np.int64)
    for row, user in enumerate(ids):
        for day, change in covers.get(user, Cover()).freezes:
            found[row] += np.where(columns.starts[1:] > (day - EPOCH).days, change, 0)
    return np.where(columns.flags("freezes"), found, 0)


def _walk_periods(
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


# Achievements that the book declares, folded in columns: all users at once.
#
# All entries stand one after the other, user by user, each in the order of its history; a condition is true
# from the first entry of a user on after which a running sum is high enough.


NEVER_REACHED = 1 << 60


class HistoryColumns:
    """All users' entries, each user's in order. covers: by user.

    entries: user_id, day (since 1970), event_type, measures ("" for none), event_id, events (1), points.
    """

    def __init__(self, entries: pa.Table, books: Books, covers: Mapping[str, Cover]) -> None:
        self.entries, self.books, self.covers = entries, books, covers
        users = entries["user_id"].combine_chunks().dictionary_encode()
        self.ids = users.dictionary
        self.user = np.asarray(users.indices.to_numpy(), np.int64)
        self.day = np.asarray(entries["day"].to_numpy(), np.int64)
        self.points = np.asarray(entries["points"].to_numpy(), np.int64)
        self.types, self.measures = entries["event_type"].to_pylist(), entries["measures"].to_pylist()
        self.starts = np.searchsorted(self.user, np.arange(len(self.ids)))

    def achieved(self, at: datetime | None, names: Collection[str] | None = None) -> pa.Table:
        """Return a row for each user and achievement that the user has: user_id, name, event_id; by these.

        at: what the book in force at this instant declares. names: of which achievements; None: of all.
        """
        found: list[tuple[str, str, str]] = []
        known = declared_achievements(self.books, at) if at else {}
        known = {name: each for name, each in known.items() if names is None or name in names}
        ids, events = self.ids.to_pylist(), self.entries["event_id"]
        for name, each in known.items():
            true = np.stack([self.true_since(one, at) for one in each.rule.conditions])
            places = true.max(axis=0) if each.rule.needs_all else true.min(axis=0)
            since = (each.since - EPOCH).days
            for user in np.flatnonzero(places < NEVER_REACHED).tolist():
                later = np.flatnonzero(self.day[places[user] : self._end(user)] >= since)
                if len(later):
                    found.append((ids[user], name, events[int(places[user] + later[0])].as_py()))
        columns = list(zip(*sorted(found), strict=True)) or [(), (), ()]
        return pa.table(
            {
                name: pa.array(each, pa.string())
                for name, each in zip(("user_id", "name", "event_id"), columns, strict=True)
            }
        )

    def _end(self, user: int) -> int:
        """Return the place after a user's last entry."""
        return int(self.starts[user + 1]) if user + 1 < len(self.ids) else len(self.user)

    def true_since(self, condition: Condition, at: datetime | None) -> Numbers:
        """Return the place of each user's entry from which on a condition is true; NEVER if it is not."""
        if condition.kind is ConditionKind.STREAK:
            return self._streak(condition.streak or "", condition.at_least, at)
        if condition.kind is ConditionKind.POINTS:
            return self._first(self.points, condition.at_least)
        is_of_type = np.array([each == condition.event_type for each in self.types], np.int64)
        if condition.kind is ConditionKind.SUM:
            is_of_type *= self._amounts(condition.property)
        return self._first(is_of_type, condition.at_least)

    def _amounts(self, name: str | None) -> Numbers:
        return np.array([_achievement_amount(each, name) for each in self.measures], np.int64)

    def _first(self, adds: Numbers, at_least: int) -> Numbers:
        """Return the first place of each user at which the sum of what was added is high enough."""
        sums = np.cumsum(adds)
        before = np.where(self.starts > 0, sums[self.starts - 1], 0)
        is_enough = (sums - before[self.user] >= at_least) & (np.cumsum(np.ones_like(adds)) > 0)
        places = np.where(is_enough, np.arange(len(adds)), NEVER_REACHED)
        return np.minimum.reduceat(places, self.starts) if len(adds) else places

    def _streak(self, name: str, length: int, at: datetime | None) -> Numbers:
        assert at is not None  # noqa: S101 (a condition is of a book)
        per = self.books.at(at).book.streaks[name].per
        found = np.full(len(self.ids), NEVER_REACHED, np.int64)
        measured = self.entries.filter(pa.array([bool(each) for each in self.measures]))
        if not measured.num_rows:
            return found
        columns, lengths = lengths_of(name, per, measured, self.books, self.covers)
        users = {each: number for number, each in enumerate(self.ids.to_pylist())}
        for row, user_id in enumerate(
            measured["user_id"].combine_chunks().dictionary_encode().dictionary.to_pylist()
        ):
            long_enough = np.flatnonzero(lengths[row] >= length)
            if len(long_enough) and (rule := columns.rules[long_enough[0]]):
                first, end = columns.starts[long_enough[0] : long_enough[0] + 2]
                found[users[user_id]] = self._reached(users[user_id], rule, int(first), int(end))
        return found

    def _reached(self, user: int, rule: StreakRule, first: int, end: int) -> int:
        """Return the place of the entry by which a period (first date, and the one after it) was reached."""
        have, dates = 0, set()
        begin, after = int(self.starts[user]), self._end(user)
        days = self.day[begin:after]
        for later in np.flatnonzero((days >= first) & (days < end)).tolist():
            place = begin + int(later)
            if self.types[place] not in rule.event_types or not self.measures[place]:
                continue
            dates.add(self.day[place])
            have += _achievement_amount(self.measures[place], rule.need.property) if rule.need.property else 1
            if (len(dates) if rule.need.kind is NeedKind.ACTIVE_DAYS else have) >= rule.need.at_least:
                return place
        return NEVER_REACHED


def _achievement_amount(measures: str, name: str | None) -> int:
    said = dict(each.split("=") for each in measures.split(",") if each and each != COUNTED)
    return int(said.get(name or "", 0))
