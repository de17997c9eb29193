"""The rows of one task are held in memory while they fit, and in a database on disk beyond that."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.curation import kept_rows
from analytics.curation.column_reader import ColumnReader
from analytics.curation.raw_lines import Batch
from analytics.curation.spilled_rows import SpilledRows
from analytics.lake.arrow_buffers import Indices, as_array
from analytics.lake.arrow_schema import arrow_schema
from analytics.lake.bookkeeping import FOOTER_KEY, Bookkeeping
from analytics.lake.layout import Place
from rules.lake.entities import Entity

HELD_BYTES_MAX = 96 * 2**20  # of rows in memory; as much again while they are brought together
FEW_LINES = 40  # fewer lines are read sooner one by one than by columns
# Places of rows that were curated before: ahead of all new ones.
EARLIER = -(2**62)


@dataclass(slots=True)
class Staging:
    """The rows of one task: the entity's columns, and n, the place in which each came.

    folder: takes what memory cannot hold. Close it when the rows are written.
    """

    entity: Entity
    folder: Path
    _parts: list[pa.Table] = field(default_factory=list)
    _bytes: int = 0
    _rows: int = 0
    _spilled: SpilledRows | None = None
    _kept: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    _columns: ColumnReader = field(default_factory=ColumnReader)

    def rows(self) -> int:
        """Return how many rows are staged."""
        return self._rows

    def add_curated(self, data: bytes) -> None:
        """Take in a curated file, of whatever older schema: what it lacks is null, types are widened."""
        file, schema = pq.ParquetFile(pa.BufferReader(data)), arrow_schema(self.entity)
        there = set(file.schema_arrow.names)
        names = [name for name in schema.names if name in there]
        for batch in file.iter_batches(kept_rows.ROW_GROUP_ROWS, columns=names):
            columns = [
                batch[each.name].cast(each.type)
                if each.name in there
                else pa.nulls(batch.num_rows, each.type)
                for each in schema
            ]
            places = np.arange(batch.num_rows, dtype=np.int64) + (EARLIER + self._rows)
            self.add_rows(pa.Table.from_arrays(columns, schema=schema), places)

    def add_lines(self, batch: Batch, place: Place, first: int) -> list[int]:
        """Take in lines that are surely rows; first: the place of the batch's first line.

        Returns the indices of the others without the frame's, in their order: each is to be read by itself.
        """
        rest = ~batch.frame
        if len(rest) >= FEW_LINES:
            for rows, lines in self._columns.read(batch, place):
                self.add_rows(rows, lines + np.int64(first))
                rest[lines] = False
        indices: list[int] = np.flatnonzero(rest).tolist()
        return indices

    def add_rows(self, rows: pa.Table, places: Indices) -> None:
        """Take in rows of the entity's columns, and the place in which each came."""
        rows = rows.append_column("n", as_array(places))
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        self._parts.append(rows)
        if self._bytes > HELD_BYTES_MAX:
            self._spill()

    def drop_duplicates(self) -> int:
        """Keep each key's newest version, among equals the one that came first; returns how many go."""
        if self._spilled:
            self._spill()
            return self._spilled.drop_duplicates()
        schema = arrow_schema(self.entity).append(pa.field("n", pa.int64()))
        self._parts = [kept_rows.together(self._parts, schema)]
        self._kept = kept_rows.kept(self.entity, self._parts[0])
        return self._rows - len(self._kept)

    def write(self, path: Path, book: Bookkeeping) -> None:
        """Write what drop_duplicates kept as a Parquet file: sorted, zstd, with its bookkeeping."""
        if self._spilled:
            self._spilled.write(path, book)
            return
        rows = self._parts[0].drop_columns(["n"])
        kept_rows.write_rows(path, rows, self._kept, {FOOTER_KEY: book.text()})

    def close(self) -> None:
        """Give back what the database holds, if there is one."""
        if self._spilled:
            self._spilled.close()

    def _spill(self) -> None:
        self._spilled = self._spilled or SpilledRows(self.entity, self.folder)
        if self._parts:
            self._spilled.add(pa.concat_tables(self._parts))
        self._parts, self._bytes = [], 0
