"""Curated rows in a DuckDB database, for tasks that memory cannot hold: what kept_rows.py does in memory."""

# ruff: noqa: S608 (what the statements are made of is quoted, and comes from rules.lake.entities)

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from analytics.curation.kept_rows import ROW_GROUP_ROWS, ZSTD_LEVEL
from analytics.lake.arrow_schema import columns
from analytics.lake.bookkeeping import FOOTER_KEY, Bookkeeping
from rules.lake.entities import Entity

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY_MB_MAX = 160


class SpilledRows:
    """Rows of an entity, each with `n`, the place in which it came.

    folder: takes what the rows need beyond MEMORY_MB_MAX.
    """

    def __init__(self, entity: Entity, folder: Path) -> None:
        self._entity = entity
        self._db = _connect(folder)
        listed = ", ".join(f"{_name(column)} {kind}" for column, kind in columns(entity))
        self._db.execute(f"CREATE TABLE staged ({listed}, n BIGINT)")

    def add(self, rows: pa.Table) -> None:
        """Add rows: the entity's columns and `n`."""
        # A column that never held a null would be written as one that cannot: files of one schema differ.
        self._db.execute("INSERT INTO staged DEFAULT VALUES")
        self._db.execute("DELETE FROM staged WHERE n IS NULL")
        self._db.register("rows", rows)
        self._db.execute("INSERT INTO staged SELECT * FROM rows")
        self._db.unregister("rows")

    def drop_duplicates(self) -> int:
        """Keep each key's newest version, among equals the one that came first; returns how many go."""
        keys = ", ".join(map(_name, self._entity.key))
        version = self._entity.version
        newest = f"{_name(version)} DESC NULLS LAST, " if version else ""
        self._db.execute(
            "CREATE TABLE lost AS SELECT n FROM staged"
            f" WHERE hash({keys}) IN (SELECT hash({keys}) AS h FROM staged GROUP BY h HAVING count(*) > 1)"
            f" QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {newest}n) > 1"
        )
        [(lost,)] = self._db.execute("SELECT count(*) FROM lost").fetchall()
        return int(lost)

    def write(self, path: Path, book: Bookkeeping) -> None:
        """Write what is kept as a Parquet file: sorted, zstd, with its bookkeeping."""
        listed = ", ".join(_name(column) for column, _ in columns(self._entity))
        order = ", ".join(map(_name, self._entity.order))
        self._db.execute(
            f"COPY (SELECT {listed} FROM staged ANTI JOIN lost USING (n) ORDER BY {order}) TO {_text(path)}"
            f" (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {ZSTD_LEVEL},"
            f" ROW_GROUP_SIZE {ROW_GROUP_ROWS}, KV_METADATA {{{FOOTER_KEY}: {_text(book.text())}}})"
        )

    def close(self) -> None:
        """Give back the database's memory and files."""
        self._db.close()


def _connect(folder: Path) -> "DuckDBPyConnection":
    """Return a database in memory that keeps to one core: tasks run side by side, not queries."""
    import duckdb  # noqa: PLC0415 (few tasks spill; the import alone takes 24 MB)

    db = duckdb.connect(":memory:", config={"threads": 1, "preserve_insertion_order": False})
    db.execute(f"SET memory_limit = '{MEMORY_MB_MAX}MB'; SET temp_directory = {_text(folder)}")
    db.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    return db


def _name(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"
