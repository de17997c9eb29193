"""The rows of one task: staged in memory while they fit, in a database that spills to disk beyond that."""

# ruff: noqa: S608 (what the statements are made of is quoted, and comes from rules.lake.entities)

import json
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from analytics.curation import kept_rows, spilled_rows
from analytics.curation.line_shapes import Shapes
from analytics.curation.raw_lines import Batch
from analytics.curation.spilled_rows import connect, name, text
from analytics.curation.value_columns import matched
from analytics.lake.arrow_buffers import Indices, as_array, raw_values
from analytics.lake.arrow_schema import DUCKDB, arrow_schema, columns
from analytics.lake.bookkeeping import FOOTER_KEY, Bookkeeping
from analytics.lake.layout import Place
from rules.lake.entities import EXTRA, Entity, Type

__all__ = ["Staging", "connect"]

HELD_BYTES_MAX = 96 * 2**20  # of rows in memory; as much again while they are brought together
# One of so many lines that are of no shape are read one by one: that is faster than a query.
FEW_OF = 100
# Places of rows that were curated before: ahead of all new ones.
EARLIER = -(2**62)


@dataclass(slots=True)
class Staging:
    """The rows of one task: the entity's columns, and n, the place in which each came."""

    entity: Entity
    db: duckdb.DuckDBPyConnection
    _parts: list[pa.Table] = field(default_factory=list)
    _bytes: int = 0
    _rows: int = 0
    _is_spilled: bool = False
    _kept: Indices | None = None
    _shapes: Shapes = field(default_factory=Shapes)

    def rows(self) -> int:
        """Return how many rows are staged."""
        return self._rows

    def add_curated(self, path: Path) -> None:
        """Take in a curated file, of whatever older schema: what it lacks is null, types are widened."""
        there = {row[0] for row in self.db.execute(f"DESCRIBE FROM {text(path)}").fetchall()}
        listed = ", ".join(
            f"{name(column) if column in there else 'NULL'}::{kind} AS {name(column)}"
            for column, kind in columns(self.entity)
        )
        place = f"{EARLIER + self._rows} + row_number() OVER () AS n"
        with self.db.cursor() as reader:  # rows may be spilled while others are read
            reader.execute("SET TimeZone = 'UTC'")
            query = reader.sql(f"SELECT {listed}, {place} FROM {text(path)}")
            for batch in query.to_arrow_reader(kept_rows.ROW_GROUP_ROWS):
                self.add_rows(pa.Table.from_batches([batch]))

    def add_lines(self, batch: Batch, place: Place, first: int) -> list[int]:
        """Take in the lines that are surely rows; first: the place of the first line.

        Returns the places of the others, for each to be read by itself: they are left out.
        """
        rest = np.ones(len(batch.lines), np.bool_)
        for rows, lines in self._shapes.read(batch, place):
            self.add_rows(rows.append_column("n", as_array(lines + np.int64(first))))
            rest[lines] = False
        left = np.flatnonzero(rest)
        if len(left) * FEW_OF > len(rest):
            left = self._match(batch, place, first, left)
        places: list[int] = (left + first).tolist()
        return places

    def add_rows(self, rows: pa.Table) -> None:
        """Take in rows: the entity's columns and `n`."""
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        self._parts.append(rows)
        if self._bytes > HELD_BYTES_MAX:
            self._is_spilled = True
            self._spill()

    def drop_duplicates(self) -> int:
        """Keep each key's newest version, among equals the one that came first; returns how many go."""
        if self._is_spilled:
            self._spill()
            return spilled_rows.drop_duplicates(self.db, self.entity)
        schema = arrow_schema(self.entity).append(pa.field("n", pa.int64()))
        self._parts = [kept_rows.together(self._parts, schema)]
        self._kept = kept_rows.kept(self.entity, self._parts[0])
        return self._rows - len(self._kept)

    def write(self, path: Path, book: Bookkeeping) -> None:
        """Write what is kept as a Parquet file: sorted, zstd, with its bookkeeping."""
        if self._kept is None:
            spilled_rows.write(self.db, self.entity, path, book)
        else:
            rows = self._parts[0].drop_columns(["n"])
            kept_rows.write_rows(path, rows, self._kept, {FOOTER_KEY: book.text()})

    def _spill(self) -> None:
        if self._parts:
            spilled_rows.store(self.db, self.entity, pa.concat_tables(self._parts))
        self._parts, self._bytes = [], 0

    def _match(self, batch: Batch, place: Place, first: int, indices: Indices) -> Indices:
        """Take in the lines that match the entity's pattern and are complete; returns the others."""
        kinds = {each.name: DUCKDB[each.type] for each in self.entity.fields}
        wanted = json.dumps(kinds | dict.fromkeys(("dt", "hour"), DUCKDB[Type.TEXT]))
        listed = ", ".join(f"s.{name(column)} AS {name(column)}" for column in kinds)
        required = [f"s.{name(each.name)}" for each in self.entity.fields if each.required]
        complete = " AND ".join(f"{each} IS NOT NULL" for each in (*required, "s.dt", "s.hour"))
        lines = batch.lines.take(as_array(indices))
        sure = pa.Table.from_arrays([lines, as_array(indices)], ["line", "i"]).filter(matched(lines, place))
        sure = sure.set_column(0, "line", sure["line"].cast(pa.string()))
        self.db.register("lines", sure)
        rows = self.db.sql(
            f"SELECT {listed}, NULL::VARCHAR AS {name(EXTRA)}, i + {first} AS n"
            f" FROM (SELECT from_json(line, {text(wanted)}) AS s, i FROM lines) WHERE {complete}"
        ).to_arrow_table()
        self.db.unregister("lines")
        self.add_rows(rows)
        return np.setdiff1d(
            indices, raw_values(rows["n"].combine_chunks(), np.int64) - first, assume_unique=True
        )
