"""Collects the rows of a task until they are written as one file.

They stay in memory. If they become too many, they are written to disk, where DuckDB sorts them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.curation import kept_rows, row_groups
from analytics.curation.column_reader import read_columns
from analytics.curation.raw_lines import Batch
from analytics.lake.arrow import Indices, array_of, arrow_schema, as_array, flag_array
from analytics.lake.bookkeeping import FOOTER_KEY, Bookkeeping
from analytics.lake.curated_files import connect
from analytics.lake.layout import Place
from rules.lake.entities import EXTRA, Entity
from rules.lake.schema import Field
from rules.lake.valid_row import read_extra

MEMORY_BYTES_MAX = 96 * 2**20  # of rows; they take as much again while their parts become one table
SORTED_BYTES = "300MB"  # of memory, in which DuckDB sorts the rows on disk
FEW_LINES = 40  # fewer lines are read faster one by one than by columns
# The number (`n`) of the first row of an earlier file: such rows come before all new ones.
FIRST_EARLIER = -(2**62)


@dataclass(slots=True)
class Staging:
    """The rows of one task: the entity's columns, and `n`, a number by which rows have an order."""

    entity: Entity
    folder: Path  # for the rows that memory cannot hold
    _parts: list[pa.Table] = field(default_factory=list)  # rows in memory
    _bytes: int = 0  # of the rows in memory
    _rows: int = 0  # the number of staged rows
    _files: int = 0  # the number of files on disk

    def rows(self) -> int:
        """Return how many rows are staged."""
        return self._rows

    def add_curated(self, path: Path) -> None:
        """Stage the rows of a curated file. It may be of an older schema (see with_todays_columns)."""
        file = pq.ParquetFile(path)
        stored = set(file.schema_arrow.names)
        names = [name for name in self._schema.names if name in stored]
        for batch in file.iter_batches(row_groups.ROW_GROUP_ROWS, columns=names):
            self.add_earlier_table(with_todays_columns(batch, self.entity))

    def add_earlier(self, rows: Sequence[dict[str, Any]]) -> None:
        """Stage rows that came before all new ones."""
        if rows:
            schema = arrow_schema(self.entity)
            columns = [array_of([row[column.name] for row in rows], column.type) for column in schema]
            self.add_earlier_table(pa.Table.from_arrays(columns, schema=schema))

    def add_earlier_table(self, rows: pa.Table) -> None:
        """Stage rows of the entity's columns that came before all new ones."""
        self.add_rows(rows, np.arange(rows.num_rows, dtype=np.int64) + (FIRST_EARLIER + self._rows))

    def add_lines(self, batch: Batch, place: Place, first: int) -> list[int]:
        """Stage those lines of a batch that can be read by columns.

        first: the number of the batch's first line. Returns the indices of the lines that have to be read one
        by one, ascending. Lines that only frame a record are not among them.
        """
        is_unread = ~batch.frame
        if len(is_unread) >= FEW_LINES:
            for rows, lines in read_columns(batch, place):
                self.add_rows(rows, lines.astype(np.int64) + first)
                is_unread[lines] = False
        indices: list[int] = np.flatnonzero(is_unread).tolist()
        return indices

    def add_rows(self, rows: pa.Table, numbers: Indices) -> None:
        """Stage rows of the entity's columns. numbers: `n` of each row."""
        if not rows.num_rows:
            return
        rows = rows.append_column("n", as_array(numbers))
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        self._parts.append(rows)
        if self._bytes > MEMORY_BYTES_MAX:
            self._spill()

    def write(self, path: Path, book: Callable[[int], Bookkeeping]) -> Bookkeeping:
        """Write the newest row of each key as a Parquet file, sorted by key; returns its bookkeeping.

        Of equally new rows, the one that came first is written. book: makes the bookkeeping of a file with a
        number of rows.
        """
        count = 0

        def counted_groups() -> Iterator[pa.Table]:
            nonlocal count
            for rows in self._newest_on_disk() if self._files else self._newest_in_memory():
                count += rows.num_rows
                yield rows

        row_groups.write_groups(path, counted_groups(), lambda: {FOOTER_KEY: book(count).text()})
        return book(count)

    def _newest_in_memory(self) -> Iterator[pa.Table]:
        """Yield the newest rows, sorted, as row groups."""
        rows = kept_rows.concat_tables(self._parts, self._schema)
        order = kept_rows.newest_versions(self.entity, rows)
        yield from row_groups.groups(rows.drop_columns(["n"]), order)

    def _newest_on_disk(self) -> Iterator[pa.Table]:
        """Yield the newest rows of those on disk, batch by batch, as DuckDB has sorted them."""
        self._spill()
        by = [f'"{name}"' for name in self.entity.key]
        by += [f'"{self.entity.version}" DESC'] if self.entity.version else []
        sql = f"FROM read_parquet('{self.folder}/*.parquet') ORDER BY {', '.join([*by, 'n'])}"
        db = connect()
        db.execute(f"SET memory_limit = '{SORTED_BYTES}'")
        db.execute("SET threads = 1")
        db.execute(f"SET temp_directory = '{self.folder / 'sorted'}'")
        last = self._schema.empty_table()  # the last row of the previous batch: the next row may have its key
        for batch in db.sql(sql).to_arrow_reader(row_groups.ROW_GROUP_ROWS):
            rows = pa.concat_tables([last, pa.Table.from_batches([batch]).cast(self._schema)])
            is_first = kept_rows.begins_key(self.entity, rows)
            is_first[: last.num_rows] = False
            last = rows.slice(rows.num_rows - 1)
            if is_first.any():
                yield rows.filter(flag_array(is_first)).drop_columns(["n"])

    def _spill(self) -> None:
        """Write the rows in memory to disk."""
        if self._parts:
            self.folder.mkdir(exist_ok=True)
            rows = kept_rows.concat_tables(self._parts, self._schema)
            pq.write_table(rows, self.folder / f"{self._files}.parquet", compression="lz4")
            self._files += 1
        self._bytes = 0

    @property
    def _schema(self) -> pa.Schema:
        return arrow_schema(self.entity).append(pa.field("n", pa.int64()))


def with_todays_columns(batch: pa.RecordBatch, entity: Entity) -> pa.Table:
    """Return rows of a file with the columns and types that the entity declares now.

    Types are widened. The values of a field that was declared after the file was written are taken from
    `extra`; without such a value the field is null.
    """
    schema = arrow_schema(entity)
    stored = set(batch.schema.names)
    columns = {
        column.name: batch[column.name].cast(column.type) for column in schema if column.name in stored
    }
    later = [field for field in entity.fields if field.name not in stored]
    columns |= {field.name: pa.nulls(batch.num_rows, schema.field(field.name).type) for field in later}
    if later and EXTRA in stored:
        columns |= _columns_from_extra(columns[EXTRA], later, schema)
    return pa.table([columns[column.name] for column in schema], schema=schema)


def _columns_from_extra(extra: pa.Array, fields: Sequence[Field], schema: pa.Schema) -> dict[str, pa.Array]:
    """Return the columns of fields that have values in `extra`, and `extra` without these; {} if none has."""
    any_name = "|".join(f'"{field.name}"' for field in fields)
    has_any = pc.fill_null(pc.match_substring_regex(extra, any_name), False)
    if not pc.any(has_any).as_py():
        return {}
    columns: dict[str, list[Any]] = {name: [] for name in (*(field.name for field in fields), EXTRA)}
    for text, may_have_fields in zip(extra.to_pylist(), has_any.to_pylist(), strict=True):
        values, rest = read_extra(text, fields) if may_have_fields else ({}, text)
        for name, column in columns.items():
            column.append(rest if name == EXTRA else values.get(name))
    return {name: array_of(column, schema.field(name).type) for name, column in columns.items()}
