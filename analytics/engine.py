"""The DuckDB statements of curation: rows are staged, then one per key is written."""

# ruff: noqa: S608 (what the statements are made of is quoted, and comes from rules.lake)

import json
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from analytics.bookkeeping import FOOTER_KEY, Bookkeeping
from analytics.schema import DUCKDB, columns
from rules.lake import Entity, Type

ROW_GROUP_ROWS = 100_000
ZSTD_LEVEL = 1
MEMORY_MB_MAX = 160
# Places of rows that were curated before: ahead of all new ones.
EARLIER = -(2**62)


def connect(spill: Path) -> duckdb.DuckDBPyConnection:
    """Return a database in memory that keeps to one core: tasks run side by side, not queries.

    spill: the folder that takes what an hour has beyond MEMORY_MB_MAX.
    """
    db = duckdb.connect(":memory:", config={"threads": 1, "preserve_insertion_order": False})
    db.execute(f"SET memory_limit = '{MEMORY_MB_MAX}MB'; SET temp_directory = {_text(spill)}")
    db.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    return db


@dataclass(frozen=True, slots=True)
class Staging:
    """The rows of one task: the entity's columns, and _n, the place in which each came."""

    entity: Entity
    db: duckdb.DuckDBPyConnection

    def __post_init__(self) -> None:
        listed = ", ".join(f"{_name(name)} {kind}" for name, kind in columns(self.entity))
        self.db.execute(f"CREATE TABLE staged ({listed}, _n BIGINT, _complete BOOLEAN)")
        # A column that never held a null would be written as one that cannot: files of one schema differ.
        self.db.execute("INSERT INTO staged DEFAULT VALUES")
        self.db.execute("DELETE FROM staged")

    def rows(self) -> int:
        """Return how many rows are staged."""
        return self._number("SELECT count(*) FROM staged")

    def add_curated(self, path: Path) -> None:
        """Take in a curated file, of whatever older schema: what it lacks is null, types are widened."""
        held = {row[0] for row in self.db.execute(f"DESCRIBE FROM {_text(path)}").fetchall()}
        listed = ", ".join(
            f"{_name(name) if name in held else 'NULL'}::{kind}" for name, kind in columns(self.entity)
        )
        place = f"{EARLIER + self.rows()} + row_number() OVER ()"
        self.db.execute(f"INSERT INTO staged SELECT {listed}, {place}, true FROM {_text(path)}")

    def add_lines(self, lines: pa.Table) -> list[int]:
        """Take in the lines that match the entity's pattern; lines: `line`, `n` (place), `matched`.

        Returns the places of the others, and of lines that lack a required field: they are left out.
        """
        kinds = {field.name: DUCKDB[field.type] for field in self.entity.fields}
        wanted = json.dumps(kinds | dict.fromkeys(("dt", "hour"), DUCKDB[Type.TEXT]))
        listed = ", ".join(f"s.{_name(name)}" for name in kinds)
        required = [f"s.{_name(field.name)}" for field in self.entity.fields if field.required]
        complete = " AND ".join(f"{each} IS NOT NULL" for each in (*required, "s.dt", "s.hour"))
        self.db.register("lines", lines)
        self.db.execute(
            f"INSERT INTO staged SELECT {listed}, NULL, n, {complete}"
            f" FROM (SELECT from_json(CASE WHEN matched THEN line END, {_text(wanted)}) AS s, n FROM lines)"
        )
        self.db.unregister("lines")
        # Looked for in one narrow column: the rows are all but always complete.
        places = self.db.execute("SELECT _n FROM staged WHERE NOT _complete").fetchall()
        self.db.execute("DELETE FROM staged WHERE NOT _complete")
        return [place for (place,) in places]

    def add_rows(self, rows: pa.Table) -> None:
        """Take in rows that were read one by one: the entity's columns and `n`."""
        self.db.register("rows", rows)
        self.db.execute("INSERT INTO staged SELECT *, true FROM rows")
        self.db.unregister("rows")

    def drop_duplicates(self) -> int:
        """Keep each key's newest version, among equals the one that came first; returns how many go."""
        keys = ", ".join(map(_name, self.entity.key))
        newest = f"{_name(self.entity.version)} DESC NULLS LAST, " if self.entity.version else ""
        self.db.execute(
            "CREATE TABLE lost AS SELECT _n FROM staged"
            f" WHERE hash({keys}) IN (SELECT hash({keys}) AS h FROM staged GROUP BY h HAVING count(*) > 1)"
            f" QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {newest}_n) > 1"
        )
        return self._number("SELECT count(*) FROM lost")

    def write(self, path: Path, book: Bookkeeping) -> None:
        """Write what is kept as a Parquet file: sorted, zstd, with its bookkeeping."""
        listed = ", ".join(_name(name) for name, _ in columns(self.entity))
        order = ", ".join(map(_name, self.entity.order))
        self.db.execute(
            f"COPY (SELECT {listed} FROM staged ANTI JOIN lost USING (_n) ORDER BY {order}) TO {_text(path)}"
            f" (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {ZSTD_LEVEL},"
            f" ROW_GROUP_SIZE {ROW_GROUP_ROWS}, KV_METADATA {{{FOOTER_KEY}: {_text(book.text())}}})"
        )

    def _number(self, query: str) -> int:
        [(number,)] = self.db.execute(query).fetchall()
        return int(number)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"
