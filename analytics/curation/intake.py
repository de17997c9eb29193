"""Reads raw lines: each becomes a staged row or a refused line.

The staging reads most lines by columns. The intake reads the other lines one by one. Refused lines are stored
as soon as their batch of objects has been read.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from adapters.platform.objects import Objects, StoredObject
from analytics.curation.raw_lines import Batch, Unreadable, batches, unzip
from analytics.curation.refused_lines import WHOLE_OBJECT, ndjson, raw_of
from analytics.curation.row_staging import Staging, table_of_rows
from analytics.lake.layout import Place, quarantine_key, raw_place, source_name
from rules.lake.packed_records import row_text
from rules.lake.valid_row import RowRefused, read_row

FETCHED_AT_ONCE = 16
FETCHED_BYTES = 64 * 2**20  # more than this only if one object has more
SINGLY_AT_ONCE = 5_000  # a row takes a few kilobytes until it is in a column


@dataclass(slots=True)
class Intake:
    """Reads raw objects into a staging, and counts their lines."""

    objects: Objects
    staging: Staging
    # The number of lines, without blank ones and the frames of records. An object's unreadable part counts as
    # one line.
    lines_read: int = 0
    quarantined: int = 0  # how many of these lines were refused
    refused: list[str] = field(default_factory=list)  # the keys of raw objects with refused lines
    # Refused lines that are not stored yet, by the raw object's key
    _entries: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _next_number: int = 0  # of the next line among all lines; it becomes the row's `n` (see Staging)

    def take(self, raw: Sequence[StoredObject]) -> None:
        """Stage the rows of raw objects, in the order of their keys, and store the refused lines.

        Each entry of a quarantine file has `source`, `line` (from 1, or WHOLE_OBJECT), `reason` and the line.
        """
        for place, raw_of_place in groupby(raw, lambda stored: raw_place(stored.key)):
            for batch in batches(self._texts(list(raw_of_place))):
                blank_lines = self._take_batch(batch, place) if place else self._refuse_batch(batch)
                self.lines_read += len(batch.lines) - int(batch.frame.sum()) - blank_lines
                del batch  # so that its memory is free before the next one's is taken
                self._store_refused()
        self._store_refused()

    def _store_refused(self) -> None:
        for key, entries in self._entries.items():
            self.objects.put(quarantine_key(key), ndjson(entries))
            self.refused.append(key)
            self.quarantined += len(entries)
        self._entries.clear()

    def _texts(self, raw: Sequence[StoredObject]) -> Iterator[tuple[str, bytes]]:
        """Yield the key and text of raw objects. The unreadable part of an object is refused."""
        for key, data in _fetch(self.objects, raw):
            try:
                text = unzip(data)
            except Unreadable as error:
                text = error.text
                self.lines_read += 1
                self._refuse(key, {"line": WHOLE_OBJECT, "reason": f"unreadable object: {error}"})
            yield key, text

    def _take_batch(self, batch: Batch, place: Place) -> int:
        """Stage the rows of a batch, and refuse the other lines. place: the hour of its objects.

        Returns how many lines are blank.
        """
        first = self._next_number
        self._next_number += len(batch.lines)
        unread = self.staging.add_lines(batch, place, first)
        pieces = [unread[at : at + SINGLY_AT_ONCE] for at in range(0, len(unread), SINGLY_AT_ONCE)]
        return sum(self._take_singly(batch, place, first, indices) for indices in pieces)

    def _take_singly(self, batch: Batch, place: Place, first: int, indices: Iterable[int]) -> int:
        """Read each of these lines by itself; returns how many are blank.

        first: the number of the batch's first line.
        """
        entity, hour = self.staging.entity, str(place.hour)
        rows, numbers, blank_lines = [], [], 0
        for index in indices:
            line = batch.lines[index].as_py()
            if not line.strip():
                blank_lines += 1
                continue
            try:
                rows.append(read_row(line, entity, place.dt, hour))
                numbers.append(first + index)
            except RowRefused as error:
                key, number = batch.origin(index)
                self._refuse(key, {"line": number, "reason": str(error)} | _raw(line))
        if rows:
            self.staging.add_rows(table_of_rows(entity, rows), np.array(numbers))
        return blank_lines

    def _refuse_batch(self, batch: Batch) -> int:
        """Refuse all lines of objects that lie under no hour; returns how many lines are blank."""
        blank_lines = 0
        for index in np.flatnonzero(~batch.frame).tolist():
            line = batch.lines[index].as_py()
            if not line.strip():
                blank_lines += 1
                continue
            key, number = batch.origin(index)
            folder = source_name(key).rpartition("/")[0]
            reason = f"it lies under no existing arrived=/dt=/hour=: {folder}"
            self._refuse(key, {"line": number, "reason": reason} | _raw(line))
        return blank_lines

    def _refuse(self, key: str, entry: dict[str, Any]) -> None:
        """Keep an entry of an object's quarantine file until _store_refused. key: the object's."""
        self._entries.setdefault(key, []).append({"source": key} | entry)


def _fetch(objects: Objects, raw: Sequence[StoredObject]) -> Iterator[tuple[str, bytes]]:
    """Yield the key and bytes of objects, which are fetched side by side, a few ahead."""
    if len(raw) == 1:
        yield raw[0].key, objects.get(raw[0].key)
        return
    with ThreadPoolExecutor(FETCHED_AT_ONCE) as pool:
        for keys in _fetch_batches(raw):
            yield from zip(keys, pool.map(objects.get, keys), strict=True)


def _fetch_batches(raw: Sequence[StoredObject]) -> Iterator[list[str]]:
    """Yield the keys of objects that are fetched together, in their order."""
    keys: list[str] = []
    size = 0
    for stored_object in raw:
        if keys and (len(keys) == FETCHED_AT_ONCE or size + stored_object.size > FETCHED_BYTES):
            yield keys
            keys, size = [], 0
        keys.append(stored_object.key)
        size += stored_object.size
    if keys:
        yield keys


def _raw(line: bytes) -> dict[str, str]:
    """Return the field of an entry that has a refused line, without the line's end."""
    return raw_of(row_text(line).rstrip(b"\r\n"))
