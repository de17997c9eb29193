"""A part of the ledger as columns of numbers, and what judges each of its events."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analytics.what_if.ledger_parts import CLAWBACK, EARN, NEVER, RERATE, UNLIMITED, Numbers
from analytics.what_if.runs import FIRST
from analytics.what_if.timeline import Ruling, Timeline
from rules.book.point_rules import DAYS_A_WEEK, Cap, Period, expires_on
from rules.days import EPOCH

Flags = NDArray[np.bool_]
NAMES = ("created_at", "counts_at", "what", "points", "version", "undone_at", "freeze", "segment")
DAYS = ("day", "expires_on", "freeze_date")
SUNDAY = 3  # 1970-01-04 was the first one


@dataclass(slots=True)
class JudgedEntries:
    """By EARN entry: what its event is worth before the cap, the cap, and the rest of its ruling.

    is_weekly: per of the cap: 0 for a date, 1 for a week. place: that of the ruling among `rulings`.
    """

    points: Numbers
    limit: Numbers
    is_weekly: Numbers
    is_refused: Flags
    is_new: Flags
    is_passive: Flags
    expires_on: Numbers
    rulings: list[Ruling]
    place: Numbers


class EntryColumns:
    """The entries of some users, by user and place. users: their places among `ids`, ascending.

    table: the same as they came. earns: the places of EARN entries. corrects: those of CLAWBACK and RERATE
    entries.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        coded = table["account_id"].combine_chunks().dictionary_encode()
        self.ids: list[str] = coded.dictionary.to_pylist()
        self.user = _numbers(coded.indices)
        self.size = len(self.ids)
        self.of: dict[str, Numbers] = {name: _numbers(table[name]) for name in NAMES}
        self.of |= {name: _numbers(table[name].cast(pa.int32()), NEVER) for name in DAYS}
        what = self.of["what"]
        self.earns = np.flatnonzero(what == EARN)
        self.corrects = np.flatnonzero((what == CLAWBACK) | (what == RERATE))
        kinds = table["event_type"].combine_chunks().dictionary_encode()
        self.kinds: list[str] = [*kinds.dictionary.to_pylist(), ""]
        self.kind_of_all = _numbers(kinds.indices, len(self.kinds) - 1)
        self.kind = self.kind_of_all[self.earns]
        caps = table["cap"].combine_chunks().dictionary_encode()
        self._caps: list[str | None] = [*caps.dictionary.to_pylist(), None]
        self._cap = _numbers(caps.indices, len(self._caps) - 1)[self.earns]
        self.was_passive = _flags(table["is_passive"])[self.earns]
        self.is_broken = _flags(table["is_broken"])[self.earns]
        self.is_reversed = _flags(table["is_reversed"])[self.earns]
        self.rewards = table["reward"].combine_chunks().dictionary_encode()

    def earn(self, name: str) -> Numbers:
        """Return a column of the EARN entries."""
        return self.of[name][self.earns]

    def correction(self, name: str) -> Numbers:
        """Return a column of the CLAWBACK and RERATE entries."""
        return self.of[name][self.corrects]

    def corrected(self, values: Numbers) -> Numbers:
        """Return sums by user of what CLAWBACK and RERATE entries come to."""
        return self.added(values, self.user[self.corrects])

    def has(self, what: int) -> Flags:
        """Return the users who have an entry of a kind (ledger_parts.KINDS)."""
        users = self.user[self.of["what"] == what]
        return self.added(np.ones(len(users), np.int64), users) > 0

    @cached_property
    def was_active(self) -> Flags:
        """Which EARN entries make their date an active one."""
        return ~(self.was_passive | self.is_reversed)

    @cached_property
    def earner(self) -> Numbers:
        """The users of the EARN entries."""
        return self.user[self.earns]

    def added(self, values: Numbers, users: Numbers | None = None) -> Numbers:
        """Return sums by user. users: whose the values are; those of the EARN entries."""
        sums = np.zeros(self.size, np.int64)
        np.add.at(sums, self.earner if users is None else users, values)
        return sums

    def judged(self, timeline: Timeline) -> JudgedEntries:
        """Return what the books of a timeline say of each EARN entry."""
        rulings, place = self._rulings(timeline)
        rulings, place = self._with_later(rulings, place)
        known = np.array([each.points is not None for each in rulings])[place]
        limits = np.array([_limit(each.cap) for each in rulings], np.int64).reshape(-1, 2)
        stored = np.array([_limit(Cap.of(each)) for each in self._caps], np.int64)[self._cap]
        limit, is_weekly = np.where(known[:, None], limits[place], stored).T
        worth = np.array([each.points or 0 for each in rulings], np.int64)[place]
        keeps = np.array([-1 if each.keeps_streak is None else each.keeps_streak for each in rulings])[place]
        is_new = np.array([each.is_new for each in rulings])[place]
        is_refused = np.array([each.is_refused for each in rulings])[place]
        return JudgedEntries(
            np.where(known, worth, self.earn("points")),
            np.where(is_refused, UNLIMITED, limit),
            is_weekly,
            is_refused,
            is_new,
            np.where(keeps < 0, self.was_passive, keeps == 0),
            self._expiring(rulings, place, is_new, is_weekly),
            rulings,
            place,
        )

    def _rulings(self, timeline: Timeline) -> tuple[list[Ruling], Numbers]:
        """Return the rulings that there are, and which of them is each entry's."""
        version, segment = self.earn("version"), self.earn("segment")
        sizes = (len(self.kinds), int(version.max(initial=0)) + 1, len(timeline.boundaries) + 1, 2)
        codes = np.ravel_multi_index((self.kind, version, segment, self.is_broken.astype(np.int64)), sizes)
        seen = np.flatnonzero(np.bincount(codes, minlength=1))
        places = np.zeros(int(seen.max(initial=0)) + 1, np.int64)
        places[seen] = np.arange(len(seen))
        rulings = [
            timeline.ruling(self.kinds[kind], number or None, timeline.begin_of(part), is_broken=bool(broken))
            for kind, number, part, broken in np.stack(np.unravel_index(seen, sizes), axis=1).tolist()
        ]
        return rulings, places[codes]

    def _with_later(self, rulings: list[Ruling], place: Numbers) -> tuple[list[Ruling], Numbers]:
        """Put the rulings of versions that take over when they are known by an event's arrival."""
        rulings, moved, arrived = [*rulings], place.copy(), self.earn("created_at")
        for number, ruling in enumerate(list(rulings)):
            for begins, each in reversed(ruling.later):
                rulings.append(each)
                since = (begins - EPOCH) // timedelta(microseconds=1)
                moved[(place == number) & (arrived >= since)] = len(rulings) - 1
        return rulings, moved

    def _expiring(
        self, rulings: Sequence[Ruling], place: Numbers, is_new: Flags, is_weekly: Numbers
    ) -> Numbers:
        """Return the days on which entries' points expire, NEVER for those that last."""
        days = self.earn("day")
        # As rules.book.point_rules.lot_of: what is under a cap over a week counts for the week's last date.
        days = np.where(is_weekly, days + (SUNDAY - days) % DAYS_A_WEEK, days)
        found = np.where(is_new, NEVER, self.earn("expires_on"))
        for rule in {each.expiry for each in rulings if each.expiry}:
            follows = np.array([each.expiry == rule for each in rulings])[place] & (found == NEVER)
            known, which = np.unique(days[follows], return_inverse=True)
            ends = [(expires_on(rule, FIRST + timedelta(days=day)) - FIRST).days for day in known.tolist()]
            found[follows] = np.array(ends, np.int64)[which]
        return found


def _limit(cap: Cap | None) -> tuple[int, int]:
    return (cap.points, int(cap.per is Period.WEEK)) if cap else (UNLIMITED, 0)


def _numbers(column: pa.ChunkedArray | pa.Array, absent: int = -1) -> Numbers:
    found = column.cast(pa.int64()).fill_null(absent).to_numpy(zero_copy_only=False)
    return np.asarray(found, np.int64)


def _flags(column: pa.ChunkedArray) -> Flags:
    return np.asarray(column.fill_null(fill_value=False).to_numpy(), np.bool_)
