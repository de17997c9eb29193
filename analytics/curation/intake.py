"""Reads raw lines: each becomes a staged row or a refused line.

The staging reads most lines by columns. The intake reads the other lines one by one. Refused lines are stored
as soon as their batch of objects has been read: in the quarantine, each unchanged and with the reason, in a
file for each raw object. A rebuild for which raw objects are gone reads these lines again, with today's
declarations.
"""

import base64
import json
from collections.abc import Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from adapters.platform.objects import Objects, StoredObject
from analytics.curation.raw_lines import LineBatch, Unreadable, batches, unzip
from analytics.curation.row_staging import Staging, table_of_rows
from analytics.lake import layout
from analytics.lake.bookkeeping import Bookkeeping, Counts
from analytics.lake.layout import Partition, quarantine_key, raw_partition
from rules.lake.packed_records import row_text
from rules.lake.valid_row import RowRefused, read_row

FETCHED_AT_ONCE = 16
FETCHED_BYTES = 64 * 2**20  # more than this only if one object has more
WHOLE_OBJECT = 0  # the line number of an entry about the object as a whole; it is the first of its file
Entry = dict[str, Any]  # of a quarantine file: source, line, reason, and raw or raw_base64
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
    _entries: dict[str, list[Entry]] = field(default_factory=dict)
    _next_number: int = 0  # of the next line among all lines; it becomes the row's `n` (see Staging)
    # Rows that were read one by one and are not staged yet, with their numbers. A table has many of them,
    # because to make one takes as long as to read dozens of rows
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _numbers: list[int] = field(default_factory=list)

    def take(self, raw: Sequence[StoredObject]) -> None:
        """Stage the rows of raw objects, in the order of their keys, and store the refused lines.

        Each entry of a quarantine file has `source`, `line` (from 1, or WHOLE_OBJECT), `reason` and the line.
        """
        # A month's hours have an object each: they are fetched side by side, too.
        for partition, fetched in groupby(_fetch(self.objects, raw), lambda pair: raw_partition(pair[0])):
            assert partition  # noqa: S101 (strays are in no task)
            for batch in batches(self._texts(fetched)):
                blank_lines = self._take_batch(batch, partition)
                self.lines_read += len(batch.lines) - int(batch.frame.sum()) - blank_lines
                del batch  # so that its memory is free before the next one's is taken
                self._store_refused()
        self._stage_rows()
        self._store_refused()

    def _stage_rows(self) -> None:
        if self._rows:
            self.staging.add_rows(table_of_rows(self.staging.entity, self._rows), np.array(self._numbers))
        self._rows, self._numbers = [], []

    def _store_refused(self) -> None:
        for key, entries in self._entries.items():
            self.objects.put(quarantine_key(key), _ndjson(entries))
            self.refused.append(key)
            self.quarantined += len(entries)
        self._entries.clear()

    def _texts(self, fetched: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        """Yield the key and text of raw objects. The unreadable part of an object is refused."""
        for key, data in fetched:
            try:
                text = unzip(data)
            except Unreadable as error:
                text = error.text
                self.lines_read += 1
                self._refuse(key, {"line": WHOLE_OBJECT, "reason": f"unreadable object: {error}"})
            yield key, text

    def _take_batch(self, batch: LineBatch, partition: Partition) -> int:
        """Stage the rows of a batch, and refuse the other lines. partition: the hour of its objects.

        Returns how many lines are blank.
        """
        first = self._next_number
        self._next_number += len(batch.lines)
        unread = self.staging.add_lines(batch, partition, first)
        entity, hour = self.staging.entity, str(partition.hour)
        blank_lines = 0
        for index in unread:
            line = batch.lines[index].as_py()
            if not line.strip():
                blank_lines += 1
                continue
            try:
                self._rows.append(read_row(line, entity, partition.dt, hour))
                self._numbers.append(first + index)
            except RowRefused as error:
                key, number = batch.origin(index)
                self._refuse(key, {"line": number, "reason": str(error)} | _raw(line))
            if len(self._rows) == SINGLY_AT_ONCE:
                self._stage_rows()
        return blank_lines

    def _refuse(self, key: str, entry: Entry) -> None:
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


@dataclass(slots=True)
class RefusedLines:
    """Lines that were refused by an earlier run, and are read again."""

    # The entries of lines that are refused again, by the key of their quarantine file
    refused_again: dict[str, list[Entry]] = field(default_factory=dict)

    def take(
        self, objects: Objects, task: Partition, before: Bookkeeping, fresh: Container[str], staging: Staging
    ) -> Counts:
        """Stage the refused lines that are rows today. Returns the counts of the file with them.

        in_: the number of lines read for the earlier file. quarantined: how many of them are still refused.
        before: the bookkeeping of the partition's file. fresh: the source names of raw objects that are read
        again anyhow: their lines are left out. Lines that the quarantine no longer has are not counted as
        read. So the counts are right even if an earlier rebuild crashed before `store`.
        """
        count = 0
        for key in quarantine_keys(objects, task):
            raw = layout.raw_key(key)
            name = layout.source_name(raw, task)
            if name in before.sources and name not in fresh:
                entries = [json.loads(line) for line in objects.get(key).splitlines()]
                count += len(entries)
                self.refused_again[key] = self._take(entries, layout.raw_partition(raw), staging)
        forgotten = max(0, before.counts.quarantined - count)
        return Counts(before.counts.in_ - forgotten, quarantined=sum(map(len, self.refused_again.values())))

    def _take(self, entries: list[Entry], partition: Partition | None, staging: Staging) -> list[Entry]:
        """Stage the lines of a quarantine file that are rows today; returns the entries of the others."""
        rows, refused_again = [], []
        for entry in entries:
            line = line_of(entry)
            if partition is None or line is None:
                refused_again.append(entry)
                continue
            try:
                rows.append(read_row(line, staging.entity, partition.dt, str(partition.hour)))
            except RowRefused as error:
                refused_again.append(entry | {"reason": str(error)})
        staging.add_earlier(table_of_rows(staging.entity, rows))
        return refused_again

    def store(self, objects: Objects) -> None:
        """Update the quarantine. This comes after the partition's file is written."""
        objects.delete([key for key, entries in self.refused_again.items() if not entries])
        for key, entries in self.refused_again.items():
            if entries:
                objects.put(key, _ndjson(entries))


def quarantine_keys(objects: Objects, task: Partition) -> Iterator[str]:
    """Yield the keys of a partition's quarantine files."""
    for stored in objects.list(layout.quarantine_prefix(task)):
        if layout.raw_partition(layout.raw_key(stored.key)):
            yield stored.key


def unreadable_objects(objects: Objects, task: Partition) -> Iterator[tuple[str, str]]:
    """Yield the keys of a partition's raw objects that could not be read whole, each with the reason."""
    for key in quarantine_keys(objects, task):
        try:
            entry = json.loads(objects.get(key).split(b"\n", 1)[0])
            if entry["line"] == WHOLE_OBJECT:
                yield entry["source"], entry["reason"]
        except (KeyError, TypeError, ValueError):
            yield key, "no part of curation wrote this file"


def _ndjson(entries: list[Entry]) -> bytes:
    """Return entries as the bytes of a quarantine file."""
    return b"".join(json.dumps(entry, ensure_ascii=False).encode() + b"\n" for entry in entries)


def _raw(line: bytes) -> dict[str, str]:
    """Return the field of an entry that has a refused line, without the line's end."""
    line = row_text(line).rstrip(b"\r\n")
    try:
        return {"raw": line.decode()}
    except UnicodeDecodeError:
        return {"raw_base64": base64.b64encode(line).decode()}


def line_of(entry: Entry) -> bytes | None:
    """Return the refused line of an entry as it came; None if the whole object was refused."""
    if "raw_base64" in entry:
        return base64.b64decode(entry["raw_base64"])
    return entry["raw"].encode() if "raw" in entry else None
