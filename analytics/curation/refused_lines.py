"""Stores refused lines in the quarantine, each unchanged and with the reason, in a file for each raw object.

A rebuild for which raw objects are gone reads these lines again, with today's declarations.
"""

import base64
import json
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

from adapters.platform.objects import Objects
from analytics.curation.row_staging import Staging, table_of_rows
from analytics.lake import layout
from analytics.lake.bookkeeping import Bookkeeping, Counts
from analytics.lake.layout import Place
from rules.lake.valid_row import RowRefused, read_row

WHOLE_OBJECT = 0  # the line number of an entry about the object as a whole; it is the first of its file
Entry = dict[str, Any]  # of a quarantine file: source, line, reason, and raw or raw_base64


@dataclass(slots=True)
class RefusedLines:
    """Lines that were refused by an earlier run, and are read again."""

    # The entries of lines that are refused again, by the key of their quarantine file
    refused_again: dict[str, list[Entry]] = field(default_factory=dict)

    def take(
        self, objects: Objects, task: Place, before: Bookkeeping, fresh: Container[str], staging: Staging
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
            name = layout.source_name(raw)
            if name in before.sources and name not in fresh:
                entries = [json.loads(line) for line in objects.get(key).splitlines()]
                count += len(entries)
                self.refused_again[key] = self._take(entries, layout.raw_place(raw), staging)
        forgotten = max(0, before.counts.quarantined - count)
        return Counts(before.counts.in_ - forgotten, quarantined=sum(map(len, self.refused_again.values())))

    def _take(self, entries: list[Entry], place: Place | None, staging: Staging) -> list[Entry]:
        """Stage the lines of a quarantine file that are rows today; returns the entries of the others."""
        rows, refused_again = [], []
        for entry in entries:
            line = line_of(entry)
            if place is None or line is None:
                refused_again.append(entry)
                continue
            try:
                rows.append(read_row(line, staging.entity, place.dt, str(place.hour)))
            except RowRefused as error:
                refused_again.append(entry | {"reason": str(error)})
        staging.add_earlier(table_of_rows(staging.entity, rows))
        return refused_again

    def store(self, objects: Objects) -> None:
        """Update the quarantine. This comes after the partition's file is written."""
        objects.delete([key for key, entries in self.refused_again.items() if not entries])
        for key, entries in self.refused_again.items():
            if entries:
                objects.put(key, ndjson(entries))


def quarantine_keys(objects: Objects, task: Place) -> Iterator[str]:
    """Yield the keys of a partition's quarantine files."""
    is_nowhere = task.dt == layout.NOWHERE
    for stored in objects.list(layout.quarantine_prefix(task)):
        if (layout.raw_place(layout.raw_key(stored.key)) is None) == is_nowhere:
            yield stored.key


def unreadable_objects(objects: Objects, task: Place) -> Iterator[tuple[str, str]]:
    """Yield the keys of a partition's raw objects that could not be read whole, each with the reason."""
    for key in quarantine_keys(objects, task):
        entry = json.loads(objects.get(key).split(b"\n", 1)[0])
        if entry["line"] == WHOLE_OBJECT:
            yield entry["source"], entry["reason"]


def ndjson(entries: list[Entry]) -> bytes:
    """Return entries as the bytes of a quarantine file."""
    return b"".join(json.dumps(entry, ensure_ascii=False).encode() + b"\n" for entry in entries)


def raw_of(line: bytes) -> dict[str, str]:
    """Return the field of an entry that has the refused line itself."""
    try:
        return {"raw": line.decode()}
    except UnicodeDecodeError:
        return {"raw_base64": base64.b64encode(line).decode()}


def line_of(entry: Entry) -> bytes | None:
    """Return the refused line of an entry as it came; None if the whole object was refused."""
    if "raw_base64" in entry:
        return base64.b64decode(entry["raw_base64"])
    return entry["raw"].encode() if "raw" in entry else None
