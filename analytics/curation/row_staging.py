"""The rows of one task are held in memory while they fit, and in pieces on disk beyond that."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.curation import kept_rows
from analytics.curation.columns.column_reader import read_columns
from analytics.curation.older_rows import of_today
from analytics.curation.raw_lines import Batch
from analytics.curation.spilled_rows import SpilledRows
from analytics.lake.arrow_buffers import Indices, array_of, as_array
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

    def rows(self) -> int:
        """Return how many rows are staged."""
        return self._rows

    def add_curated(self, path: Path) -> None:
        """Take in a curated file, of whatever older schema.

        A column that it lacks is taken out of `extra`, where the fields of later declarations have waited.
        Types are widened.
        """
        file = pq.ParquetFile(path)
        there = set(file.schema_arrow.names)
        names = [name for name in self._schema.names if name in there]
        for batch in file.iter_batches(kept_rows.ROW_GROUP_ROWS, columns=names):
            self.add_earlier_table(of_today(batch, self.entity))

    def add_earlier(self, rows: Sequence[dict[str, Any]]) -> None:
        """Take in rows that came before all new ones."""
        if rows:
            schema = arrow_schema(self.entity)
            columns = [array_of([row[each.name] for row in rows], each.type) for each in schema]
            self.add_earlier_table(pa.Table.from_arrays(columns, schema=schema))

    def add_earlier_table(self, rows: pa.Table) -> None:
        """Take in rows of the entity's columns that came before all new ones."""
        self.add_rows(rows, np.arange(rows.num_rows, dtype=np.int64) + (EARLIER + self._rows))

    def add_lines(self, batch: Batch, place: Place, first: int) -> list[int]:
        """Take in lines that are surely rows; first: the place of the batch's first line.

        Returns the indices of the others without the frame's, in their order: each is to be read by itself.
        """
        rest = ~batch.frame
        if len(rest) >= FEW_LINES:
            for rows, lines in read_columns(batch, place):
                self.add_rows(rows, lines.astype(np.int64) + first)
                rest[lines] = False
        indices: list[int] = np.flatnonzero(rest).tolist()
        return indices

    def add_rows(self, rows: pa.Table, places: Indices) -> None:
        """Take in rows of the entity's columns, and the place in which each came."""
        if not rows.num_rows:
            return
        rows = rows.append_column("n", as_array(places))
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        self._parts.append(rows)
        if self._bytes > HELD_BYTES_MAX:
            self._spill()

    def write(self, path: Path, book: Callable[[int], Bookkeeping]) -> Bookkeeping:
        """Write each key's newest row, among equals the one that came first, as a Parquet file.

        book: gives the file's bookkeeping, when it is told how many rows are kept. Returns this. Rows in
        memory are sorted; of those on disk each piece is.
        """
        kept = 0

        def groups() -> Iterator[pa.Table]:
            nonlocal kept
            for rows in self._pieces():
                order = kept_rows.kept(self.entity, rows)
                kept += len(order)
                yield from kept_rows.groups(rows.drop_columns(["n"]), order)

        kept_rows.write_groups(path, groups(), lambda: {FOOTER_KEY: book(kept).text()})
        return book(kept)

    def _pieces(self) -> Iterator[pa.Table]:
        if self._spilled:
            self._spill()
            yield from self._spilled.pieces()
        else:
            yield kept_rows.together(self._parts, self._schema)

    def close(self) -> None:
        """Close what is open on disk."""
        if self._spilled:
            self._spilled.close()

    def _spill(self) -> None:
        self._spilled = self._spilled or SpilledRows(self.entity, self._schema, self.folder)
        if self._parts:
            self._spilled.add(kept_rows.together(self._parts, self._schema))
        self._bytes = 0

    @property
    def _schema(self) -> pa.Schema:
        return arrow_schema(self.entity).append(pa.field("n", pa.int64()))
