"""Curated rows in a DuckDB database, for tasks that memory cannot hold: as kept_rows.py does it."""

# ruff: noqa: S608 (what the statements are made of is quoted, and comes from rules.lake.entities)

from pathlib import Path

import duckdb
import pyarrow as pa

from analytics.curation.kept_rows import ROW_GROUP_ROWS, ZSTD_LEVEL
from analytics.lake.arrow_schema import columns
from analytics.lake.bookkeeping import FOOTER_KEY, Bookkeeping
from rules.lake.entities import Entity

MEMORY_MB_MAX = 160


def connect(spill: Path) -> duckdb.DuckDBPyConnection:
    """Return a database in memory that keeps to one core: tasks run side by side, not queries.

    spill: the folder that takes what an hour has beyond MEMORY_MB_MAX.
    """
    db = duckdb.connect(":memory:", config={"threads": 1, "preserve_insertion_order": False})
    db.execute(f"SET memory_limit = '{MEMORY_MB_MAX}MB'; SET temp_directory = {text(spill)}")
    db.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    return db


def store(db: duckdb.DuckDBPyConnection, entity: Entity, rows: pa.Table) -> None:
    """Add rows (the entity's columns and `n`) to the table `staged`, made by the first call."""
    listed = ", ".join(f"{name(column)} {kind}" for column, kind in columns(entity))
    db.execute(f"CREATE TABLE IF NOT EXISTS staged ({listed}, n BIGINT)")
    # A column that never held a null would be written as one that cannot: files of one schema differ.
    db.execute("INSERT INTO staged DEFAULT VALUES")
    db.execute("DELETE FROM staged WHERE n IS NULL")
    db.register("rows", rows)
    db.execute("INSERT INTO staged SELECT * FROM rows")
    db.unregister("rows")


def drop_duplicates(db: duckdb.DuckDBPyConnection, entity: Entity) -> int:
    """Keep each key's newest version, among equals the one that came first; returns how many go."""
    keys = ", ".join(map(name, entity.key))
    newest = f"{name(entity.version)} DESC NULLS LAST, " if entity.version else ""
    db.execute(
        "CREATE TABLE lost AS SELECT n FROM staged"
        f" WHERE hash({keys}) IN (SELECT hash({keys}) AS h FROM staged GROUP BY h HAVING count(*) > 1)"
        f" QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {newest}n) > 1"
    )
    [(lost,)] = db.execute("SELECT count(*) FROM lost").fetchall()
    return int(lost)


def write(db: duckdb.DuckDBPyConnection, entity: Entity, path: Path, book: Bookkeeping) -> None:
    """Write what is kept as a Parquet file: sorted, zstd, with its bookkeeping."""
    listed = ", ".join(name(column) for column, _ in columns(entity))
    order = ", ".join(map(name, entity.order))
    db.execute(
        f"COPY (SELECT {listed} FROM staged ANTI JOIN lost USING (n) ORDER BY {order}) TO {text(path)}"
        f" (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {ZSTD_LEVEL},"
        f" ROW_GROUP_SIZE {ROW_GROUP_ROWS}, KV_METADATA {{{FOOTER_KEY}: {text(book.text())}}})"
    )


def name(identifier: str) -> str:
    """Return a column's name as SQL writes it."""
    return '"' + identifier.replace('"', '""') + '"'


def text(value: object) -> str:
    """Return a text as SQL writes it."""
    return "'" + str(value).replace("'", "''") + "'"
