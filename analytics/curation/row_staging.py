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

from analytics.curation import sealed_file
from analytics.curation.column_reader import read_columns
from analytics.curation.raw_lines import LineBatch
from analytics.lake.arrow import (
    Flags,
    Indices,
    array_of,
    arrow_schema,
    as_array,
    as_flags,
    flag_array,
    raw_values,
)
from analytics.lake.bookkeeping import FOOTER_KEY, Bookkeeping
from analytics.lake.curated_files import connect, quoted
from analytics.lake.layout import Partition
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

    def add_curated(self, path: Path) -> None:
        """Stage the rows of a curated file. It may be of an older schema (see curated_rows)."""
        for rows in curated_rows(path, self.entity):
            self.add_earlier(rows)

    def add_earlier(self, rows: pa.Table) -> None:
        """Stage rows of the entity's columns that came before all new ones."""
        self.add_rows(rows, np.arange(rows.num_rows, dtype=np.int64) + (FIRST_EARLIER + self._rows))

    def add_lines(self, batch: LineBatch, partition: Partition, first: int) -> list[int]:
        """Stage those lines of a batch that can be read by columns.

        first: the number of the batch's first line. Returns the indices of the lines that have to be read one
        by one, ascending. Lines that only frame a record are not among them.
        """
        is_unread = ~batch.frame
        if len(is_unread) >= FEW_LINES:
            for rows, lines in read_columns(batch, partition):
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

    def write(
        self, path: Path, bookkeeping_with: Callable[[int], Bookkeeping], *, is_sealed: bool = True
    ) -> Bookkeeping:
        """Write the newest row of each key as a Parquet file, sorted by key; returns its bookkeeping.

        Of equally new rows, the one that came first is written. bookkeeping_with: makes the bookkeeping of a
        file with a number of rows. is_sealed: as for sealed_file.write_groups.
        """
        count = 0

        def counted_groups() -> Iterator[pa.Table]:
            nonlocal count
            for rows in self._newest_on_disk() if self._files else self._newest_in_memory():
                count += rows.num_rows
                yield rows

        sealed_file.write_groups(
            path, counted_groups(), lambda: {FOOTER_KEY: bookkeeping_with(count).text()}, is_sealed=is_sealed
        )
        return bookkeeping_with(count)

    def _newest_in_memory(self) -> Iterator[pa.Table]:
        """Yield the newest rows, sorted, as row groups of nearly one size, at least one."""
        rows = _one_chunk_a_column(self._parts, self._schema)
        order = newest_versions(self.entity, rows)
        groups_count = max(1, -(-len(order) // sealed_file.ROW_GROUP_ROWS))  # rounded up
        for indices in np.array_split(order, groups_count):
            yield rows.drop_columns(["n"]).take(as_array(indices))

    def _newest_on_disk(self) -> Iterator[pa.Table]:
        """Yield the newest rows of those on disk, batch by batch, as DuckDB has sorted them."""
        self._spill()
        by = ", ".join(f'"{name}" {order}' for name, order in _sort_keys(self.entity))
        db = connect()
        db.execute(f"SET memory_limit = '{SORTED_BYTES}'")
        db.execute("SET threads = 1")
        db.execute(f"SET temp_directory = {quoted(self.folder / 'sorted')}")
        last = self._schema.empty_table()  # the last row of the previous batch: the next row may have its key
        sorted_rows = db.sql(f"FROM read_parquet({quoted(self.folder / '*.parquet')}) ORDER BY {by}")
        for batch in sorted_rows.to_arrow_reader(sealed_file.ROW_GROUP_ROWS):
            rows = pa.concat_tables([last, pa.Table.from_batches([batch]).cast(self._schema)])
            is_first = _begins_key(self.entity, rows)
            is_first[: last.num_rows] = False
            last = rows.slice(rows.num_rows - 1)
            if is_first.any():
                yield rows.filter(flag_array(is_first)).drop_columns(["n"])

    def _spill(self) -> None:
        """Write the rows in memory to disk."""
        if self._parts:
            self.folder.mkdir(exist_ok=True)
            rows = _one_chunk_a_column(self._parts, self._schema)
            pq.write_table(rows, self.folder / f"{self._files}.parquet", compression="lz4")
            self._files += 1
        self._bytes = 0

    @property
    def _schema(self) -> pa.Schema:
        return arrow_schema(self.entity).append(pa.field("n", pa.int64()))


def newest_versions(entity: Entity, rows: pa.Table) -> Indices:
    """Return the indices of rows to keep, sorted: each key's newest version, among equals the first.

    rows: the entity's columns and `n`, a number that says in which order they came.
    """
    keys = _sort_keys(entity)
    order = pc.sort_indices(rows.select([name for name, _ in keys]), keys)
    is_first = _begins_key(entity, rows.select(list(entity.key)).take(order))
    return raw_values(order, np.uint64).astype(np.int64)[is_first]


def _sort_keys(entity: Entity) -> list[tuple[str, str]]:
    """Return the columns by which rows are sorted, with their order: key, newest version, first come."""
    by_version = (
        [(entity.version, "descending")] if entity.version and entity.version not in entity.key else []
    )
    return [*((name, "ascending") for name in entity.key), *by_version, ("n", "ascending")]


def _begins_key(entity: Entity, rows: pa.Table) -> Flags:
    """Return for each row whether its key differs from that of the row before. rows: sorted by their keys."""
    begins = np.ones(rows.num_rows, np.bool_)
    begins[1:] = False
    for name in entity.key:
        column = rows[name].combine_chunks()
        begins[1:] |= ~as_flags(pc.equal(column[1:], column[:-1]))
    return begins


def _one_chunk_a_column(parts: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """Return tables as one, with one chunk a column.

    Empties the list, and frees each column as soon as it is copied, so that few rows are in memory twice.
    """
    columns_by_name = {name: [part[name] for part in parts] for name in schema.names}
    parts.clear()
    columns = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        chunks = [chunk for column in columns_by_name.pop(name) for chunk in column.chunks]
        columns.append(pa.concat_arrays(chunks) if chunks else pa.nulls(0, kind))
    return pa.Table.from_arrays(columns, schema=schema)


def table_of_rows(entity: Entity, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Return rows, by their columns, as a table of the entity's columns."""
    schema = arrow_schema(entity)
    columns = [array_of([row[column.name] for row in rows], column.type) for column in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def curated_rows(path: Path, entity: Entity) -> Iterator[pa.Table]:
    """Yield the rows of a curated file with the columns and types that the entity declares now.

    Types are widened. The values of a field that was declared after the file was written are taken from
    `extra`; without such a value the field is null.
    """
    file = pq.ParquetFile(path)
    stored = set(file.schema_arrow.names)
    names = [name for name in arrow_schema(entity).names if name in stored]
    for batch in file.iter_batches(sealed_file.ROW_GROUP_ROWS, columns=names):
        yield _with_todays_columns(batch, entity)


def _with_todays_columns(batch: pa.RecordBatch, entity: Entity) -> pa.Table:
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
