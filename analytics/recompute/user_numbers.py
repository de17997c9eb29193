"""Gives user ids small numbers (codes): 0, 1, 2 ... in the order in which they were first seen.

Looking up 50 million texts in a hash table would take longer than the rest of a recompute. Curated files are
sorted by user, so a `Directory` finds most ids in a third of that time. It reads eight bytes of an id as a
number, and searches for it among the numbers of the known ids, which are sorted (so neighbours lie side by
side in memory). It then compares the id that it found in full. Only the ids that this leaves open go to a
hash table.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Codes = NDArray[np.int32]
UNKNOWN = np.int32(-1)
UNSETTLED = np.int32(-2)
PROBES_MAX = 4
KEY_BYTES = 8
# The directory is made anew when it lacks more than this share of the ids seen.
STALE_SHARE_MAX = 0.05


@dataclass(frozen=True, slots=True)
class Directory:
    """The known ids, sorted, with each id's code and key.

    prefix: how many leading bytes all ids share. A key is the eight bytes from there on, as a number.
    """

    ids: pa.StringArray
    codes: Codes
    prefix: int
    keys: NDArray[np.uint64]

    def find(self, ids: pa.StringArray) -> Codes:
        """Return codes: UNKNOWN for an id that is not here, UNSETTLED if too many known ids share its key."""
        if not len(self.ids) or not len(ids):
            return np.full(len(ids), UNKNOWN)
        wanted = _keys(ids, self.prefix)
        places = np.searchsorted(self.keys, wanted)
        found = np.minimum(places, len(self.ids) - 1)
        same = self._is_same(found, ids)
        codes = np.where(same, self.codes[found], UNKNOWN)
        rows = np.flatnonzero(~same)
        self._probe(codes, rows, places[rows], wanted[rows], ids.take(pa.array(rows)))
        return codes

    def _is_same(self, places: NDArray[np.int64], ids: pa.StringArray) -> NDArray[np.bool_]:
        same: NDArray[np.bool_] = pc.equal(self.ids.take(pa.array(places)), ids).to_numpy(
            zero_copy_only=False
        )
        return same

    def _probe(
        self,
        codes: Codes,
        rows: NDArray[np.int64],
        places: NDArray[np.int64],
        wanted: NDArray[np.uint64],
        ids: pa.StringArray,
    ) -> None:
        """Compare each open id with further known ids of the same key, up to PROBES_MAX of them."""
        for _ in range(PROBES_MAX):
            inside = places < len(self.keys)
            inside[inside] = self.keys[places[inside]] == wanted[inside]
            rows, places, wanted = rows[inside], places[inside], wanted[inside]
            if not rows.size:
                return
            ids = ids.filter(pa.array(inside))
            hit = self._is_same(places, ids)
            codes[rows[hit]] = self.codes[places[hit]]
            rows, places, wanted = rows[~hit], places[~hit] + 1, wanted[~hit]
            ids = ids.filter(pa.array(~hit))
        codes[rows] = UNSETTLED


def directory(ids: pa.StringArray) -> Directory:
    """Return the directory of some ids. An id's code is its place in `ids`."""
    order = pc.sort_indices(ids)
    known = ids.take(order)
    prefix = _common(known[0].as_py(), known[-1].as_py()) if len(known) else 0
    return Directory(known, order.to_numpy().astype(np.int32), prefix, _keys(known, prefix))


def _common(first: str, last: str) -> int:
    """Return how many leading bytes two texts share. All texts between the two share these bytes too."""
    pairs = zip(first.encode(), last.encode(), strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(first), len(last)))


def _keys(ids: pa.StringArray, prefix: int) -> NDArray[np.uint64]:
    """Return each id's eight bytes from `prefix` on as a number. Sorted ids have sorted numbers.

    A short id is filled up with zeros.
    """
    if not len(ids):
        return np.empty(0, np.uint64)
    _, offsets, data = ids.buffers()
    bounds = np.frombuffer(offsets, np.int32)[ids.offset : ids.offset + len(ids) + 1].astype(np.int64)
    text = np.frombuffer(data or b"", np.uint8)
    if bounds[-2] + prefix + KEY_BYTES > len(text):  # the last window reaches beyond it
        text = np.concatenate([text, np.zeros(prefix + KEY_BYTES, np.uint8)])
    windows = np.lib.stride_tricks.sliding_window_view(text, KEY_BYTES)
    found: NDArray[np.uint64] = windows[bounds[:-1] + prefix].view(">u8").ravel().astype(np.uint64)
    lengths = np.clip(np.diff(bounds) - prefix, 0, KEY_BYTES)
    if lengths.size and lengths.min() < KEY_BYTES:
        beyond = (8 * (KEY_BYTES - lengths)).astype(np.uint64)
        found = np.where(lengths > 0, found >> (beyond % 64) << (beyond % 64), np.uint64(0))
    return found


class Users:
    """The ids seen so far. A user's code is the id's place in `ids`."""

    def __init__(self, ids: pa.StringArray) -> None:
        self.ids = ids
        self.directory = directory(ids)

    def settle(self, columns: Sequence[pa.StringArray], codes: Sequence[Codes], seen: int) -> None:
        """Replace UNKNOWN and UNSETTLED by codes, in place; a new id gets the next code.

        seen: how many ids the directory had when it looked the columns up.
        """
        self._look_up(columns, codes, UNSETTLED, 0)
        self._look_up(columns, codes, UNKNOWN, seen)
        if len(self.ids) - len(self.directory.ids) > STALE_SHARE_MAX * len(self.ids):
            self.directory = directory(self.ids)

    def _look_up(
        self, columns: Sequence[pa.StringArray], codes: Sequence[Codes], which: np.int32, since: int
    ) -> None:
        rows = [np.flatnonzero(each == which) for each in codes]
        left = pa.concat_arrays(
            [column.take(pa.array(some)) for column, some in zip(columns, rows, strict=True) if some.size]
            or [pa.array([], pa.string())]
        )
        if not len(left):
            return
        found = pc.index_in(left, value_set=self.ids[since:])
        if found.null_count:
            self.ids = pa.concat_arrays([self.ids, pc.unique(left.filter(pc.is_null(found)))])
            found = pc.index_in(left, value_set=self.ids[since:])
        settled = found.to_numpy(zero_copy_only=False) + since
        for each, some in zip(codes, rows, strict=True):
            each[some], settled = settled[: some.size], settled[some.size :]
