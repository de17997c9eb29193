"""A table that a night makes of older partitions of the lake, and keeps: later nights read only later ones.

Nightly recomputes keep one each: recompute.py for users, that of a part for its people. Partitions up
to a date are *settled*: their rows are in the table. The table counts only while the files of these
partitions are unchanged, and while the code that made it is. Otherwise the night reads all partitions.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import NoObject, Objects, StoredObject
from analytics.lake.curated_files import etags_digest, parquet_bytes

Files = Mapping[str, list[StoredObject]]  # curated files by entity


@dataclass(frozen=True, slots=True)
class SettledTable:
    """The rows that all partitions up to a date have led to."""

    rows: pa.Table
    until: date | None = None  # the date of the last settled partition; None: none is settled


@dataclass(frozen=True, slots=True)
class SettledFile:
    """The file that keeps a settled table from night to night."""

    objects: Objects
    key: str
    columns: pa.Schema
    made_by: Mapping[str, str]  # a digest of the code that makes the rows, under its name in the file

    def load(self, files: Files) -> SettledTable:
        """Return the stored table; an empty one if none is stored, or if it no longer counts.

        files: all curated files of the entities that the table is made from.
        """
        try:
            table = pq.read_table(BytesIO(self.objects.get(self.key)))
        except NoObject:
            return self.empty()
        metadata = json.loads(table.schema.metadata[b"settled"])
        until = date.fromisoformat(metadata["until"])
        if metadata != self._metadata(files, until):
            return self.empty()
        return SettledTable(table.replace_schema_metadata(None), until)

    def save(self, rows: pa.Table, files: Files, until: date) -> None:
        """Store the rows that the files of partitions up to a date have led to."""
        metadata = json.dumps(self._metadata(files, until)).encode()
        self.objects.put(self.key, parquet_bytes(rows.replace_schema_metadata({b"settled": metadata})))

    def empty(self) -> SettledTable:
        """Return a table without rows, for which no partition is settled."""
        return SettledTable(self.columns.empty_table())

    def _metadata(self, files: Files, until: date) -> dict[str, str]:
        return {"until": until.isoformat(), "files": etags_digest(files, until), **self.made_by}
