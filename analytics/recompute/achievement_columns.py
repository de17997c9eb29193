"""Achievements that the book declares, folded in columns: all users at once.

All entries stand one after the other, user by user, each in the order of its history; a condition is true
from the first entry of a user on after which a running sum is high enough.
"""

from collections.abc import Collection, Mapping
from datetime import date, datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analytics.recompute.goal_columns import lengths_of
from rules.book.book import Books
from rules.book.goal_rules import Condition, ConditionKind, NeedKind, StreakRule
from rules.book.point_rules import COUNTED
from rules.engagement.achievements import declared_achievements
from rules.engagement.streak import Cover

Numbers = NDArray[np.int64]
EPOCH = date(1970, 1, 1)
NEVER = 1 << 60


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
            for user in np.flatnonzero(places < NEVER).tolist():
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
        return np.array([_amount(each, name) for each in self.measures], np.int64)

    def _first(self, adds: Numbers, at_least: int) -> Numbers:
        """Return the first place of each user at which the sum of what was added is high enough."""
        sums = np.cumsum(adds)
        before = np.where(self.starts > 0, sums[self.starts - 1], 0)
        is_enough = (sums - before[self.user] >= at_least) & (np.cumsum(np.ones_like(adds)) > 0)
        places = np.where(is_enough, np.arange(len(adds)), NEVER)
        return np.minimum.reduceat(places, self.starts) if len(adds) else places

    def _streak(self, name: str, length: int, at: datetime | None) -> Numbers:
        assert at is not None  # noqa: S101 (a condition is of a book)
        per = self.books.at(at).book.streaks[name].per
        found = np.full(len(self.ids), NEVER, np.int64)
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
            have += _amount(self.measures[place], rule.need.property) if rule.need.property else 1
            if (len(dates) if rule.need.kind is NeedKind.ACTIVE_DAYS else have) >= rule.need.at_least:
                return place
        return NEVER


def _amount(measures: str, name: str | None) -> int:
    said = dict(each.split("=") for each in measures.split(",") if each and each != COUNTED)
    return int(said.get(name or "", 0))
