"""The rows of one task are held in memory while they fit, and in pieces on disk beyond that."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.curation import kept_rows
from analytics.curation.column_reader import read_columns
from analytics.curation.raw_lines import Batch
from analytics.lake.arrow import Indices, array_of, arrow_schema, as_array, raw_values
from analytics.lake.bookkeeping import FOOTER_KEY, Bookkeeping
from analytics.lake.layout import Place
from rules.lake.entities import EXTRA, Entity
from rules.lake.schema import Field
from rules.lake.valid_row import read_extra

WORD = 8  # bytes
# MurmurHash3's 64-bit finalizer mixes every bit of a word into all others.
FACTOR, SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(33)
# For a text's last 1 to 7 bytes: which bits of its last word are its own.
MASKS = np.array([2 ** (8 * size) - 1 for size in range(WORD + 1)], np.uint64)
PIECES = 32  # 20 million rows of 250 bytes are pieces of 160 MB
# Beyond this the rows of a piece are deduplicated while it is read: one key may have very many versions.
PIECE_BYTES_MAX = 256 * 2**20
HELD_BYTES_MAX = 96 * 2**20  # of rows in memory; as much again while they are brought together
FEW_LINES = 40  # fewer lines are read sooner one by one than by columns
# Places of rows that were curated before: ahead of all new ones.
EARLIER = -(2**62)


# Rows of a curated file that was written under an older declaration, as today's declares them.


def with_todays_columns(batch: pa.RecordBatch, entity: Entity) -> pa.Table:
    """Return rows in the entity's columns: types are widened, and fields come out of `extra`, or are null."""
    schema = arrow_schema(entity)
    there = set(batch.schema.names)
    columns = {each.name: batch[each.name].cast(each.type) for each in schema if each.name in there}
    lacking = [each for each in entity.fields if each.name not in there]
    columns |= {each.name: pa.nulls(batch.num_rows, schema.field(each.name).type) for each in lacking}
    if lacking and EXTRA in there:
        columns |= _columns_from_extra(columns[EXTRA], lacking, schema)
    return pa.table([columns[each.name] for each in schema], schema=schema)


def _columns_from_extra(extra: pa.Array, fields: Sequence[Field], schema: pa.Schema) -> dict[str, pa.Array]:
    """Return the columns of fields that wait in `extra`, and what is left of it."""
    has_any = pc.fill_null(
        pc.match_substring_regex(extra, "|".join(f'"{each.name}"' for each in fields)), False
    )
    if not pc.any(has_any).as_py():
        return {}
    values: dict[str, list[Any]] = {each.name: [] for each in fields}
    values[EXTRA] = []
    for text, is_asked in zip(extra.to_pylist(), has_any.to_pylist(), strict=True):
        found, rest = read_extra(text, fields) if is_asked else ({}, text)
        for name, column in values.items():
            column.append(rest if name == EXTRA else found.get(name))
    return {name: array_of(column, schema.field(name).type) for name, column in values.items()}


# A hash of the key of each row: equal keys have equal hashes, and others spread evenly.


Hashes = npt.NDArray[np.uint64]


def hashes(columns: Sequence[pa.Array]) -> Hashes:
    """Return a hash for each row of a key's columns, which have no nulls."""
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        if pa.types.is_string(column.type):
            _mix_texts(found, column)
        else:
            width: type[Any] = np.int32 if pa.types.is_date(column.type) else np.int64
            found = _mix(found, raw_values(column, width).astype(np.uint64))
    return found


def _mix(hashes: Hashes, words: Hashes) -> Hashes:
    hashes = (hashes ^ words) * FACTOR
    return hashes ^ (hashes >> SHIFT)


def _mix_texts(hashes: Hashes, column: pa.StringArray) -> None:
    """Mix texts in, word after word, each with its length."""
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    data = column.buffers()[2]
    padded = np.zeros((data.size if data else 0) + WORD, np.uint8)
    if data:
        padded[: data.size] = np.frombuffer(data, np.uint8)
    every = np.ndarray((len(padded) - WORD + 1,), "<u8", padded, strides=(1,))
    sizes = np.diff(offsets)
    hashes[:] = _mix(hashes, sizes.astype(np.uint64))
    rows = np.arange(len(column))
    for at in range(0, int(sizes.max(initial=0)), WORD):
        rows = rows[sizes[rows] > at]
        left = np.minimum(sizes[rows] - at, WORD)
        hashes[rows] = _mix(hashes[rows], every[offsets[rows] + at] & MASKS[left])


# Rows that memory cannot hold wait on disk in pieces, by a hash of the key: all rows of one key are in one.
#
# A piece is small enough for memory. So any number of rows is deduplicated and sorted, piece after piece.


class SpilledRows:
    """Rows of an entity, each with `n`, the place in which it came. folder: takes the pieces."""

    def __init__(self, entity: Entity, schema: pa.Schema, folder: Path) -> None:
        self._entity, self._schema = entity, schema
        folder.mkdir()
        self._paths = [folder / f"{number}.arrow" for number in range(PIECES)]
        how = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
        self._writers = [
            pa.ipc.new_stream(pa.OSFile(str(path), "wb"), schema, options=how) for path in self._paths
        ]

    def add(self, rows: pa.Table) -> None:
        """Add rows, one chunk a column: the entity's columns and `n`."""
        pieces = (hashes([rows[name].chunk(0) for name in self._entity.key]) % PIECES).astype(np.uint8)
        order = np.argsort(pieces, kind="stable")
        rows = rows.take(as_array(order))
        ends = np.searchsorted(pieces[order], np.arange(PIECES + 1))
        for writer, first, last in zip(self._writers, ends[:-1], ends[1:], strict=True):
            writer.write_table(rows.slice(first, last - first))

    def pieces(self) -> Iterator[pa.Table]:
        """Yield each piece that has rows, one chunk a column, and remove it. Nothing is added any more."""
        self.close()
        for path in self._paths:
            rows = self._read(path)
            path.unlink()
            if rows.num_rows:
                yield rows

    def _read(self, path: Path) -> pa.Table:
        parts: list[pa.Table] = []
        size, most = 0, PIECE_BYTES_MAX
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as batches:
            for batch in batches:
                parts.append(pa.Table.from_batches([batch]))
                size += batch.nbytes
                if size > most:
                    rows = kept_rows.concat_tables(parts, self._schema)
                    parts.append(rows.take(as_array(kept_rows.newest_versions(self._entity, rows))))
                    size = parts[0].nbytes
                    most = max(PIECE_BYTES_MAX, 2 * size)
        return kept_rows.concat_tables(parts, self._schema)

    def close(self) -> None:
        """Close the pieces' files. To close them again does nothing."""
        for writer in self._writers:
            writer.close()


@dataclass(slots=True)
class Staging:
    """The rows of one task: the entity's columns, and n, the place in which each came.

    Close it when the rows are written.
    """

    entity: Entity
    folder: Path  # takes what memory cannot hold
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
            self.add_earlier_table(with_todays_columns(batch, self.entity))

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

        book: returns the file's bookkeeping, given how many rows are kept. Returns this. Rows in
        memory are sorted; of those on disk each piece is.
        """
        kept = 0

        def groups() -> Iterator[pa.Table]:
            nonlocal kept
            for rows in self._pieces():
                order = kept_rows.newest_versions(self.entity, rows)
                kept += len(order)
                yield from kept_rows.groups(rows.drop_columns(["n"]), order)

        kept_rows.write_groups(path, groups(), lambda: {FOOTER_KEY: book(kept).text()})
        return book(kept)

    def _pieces(self) -> Iterator[pa.Table]:
        if self._spilled:
            self._spill()
            yield from self._spilled.pieces()
        else:
            yield kept_rows.concat_tables(self._parts, self._schema)

    def close(self) -> None:
        """Close what is open on disk."""
        if self._spilled:
            self._spilled.close()

    def _spill(self) -> None:
        self._spilled = self._spilled or SpilledRows(self.entity, self._schema, self.folder)
        if self._parts:
            self._spilled.add(kept_rows.concat_tables(self._parts, self._schema))
        self._bytes = 0

    @property
    def _schema(self) -> pa.Schema:
        return arrow_schema(self.entity).append(pa.field("n", pa.int64()))
