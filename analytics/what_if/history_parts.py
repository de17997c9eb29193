"""Writes the lake's rows to disk in parts, for the replay of whole histories (what_if.py).

A part has all rows of its users, and fits into memory.
"""

from pathlib import Path

import duckdb

from adapters.platform.objects import Objects
from analytics.lake.curated_files import THREADS, connect, quoted
from analytics.lake.layout import curated_files

# ruff: noqa: S608 (names of columns and folders are our own)
MEMORY = "300MB"
# All parts are written at once, before anybody folds. 50 million entries do not fit into MEMORY.
# With this limit the process takes 1.3 GB for them.
WRITER_MEMORY = "1GB"
# A part is sorted in memory. So many bytes of curated files are some 250,000 entries of a ledger.
PART_BYTES, PARTS_MAX = 10_000_000, 250
# All parts are written at once, and each has a row group in memory.
OPEN_ROWS = 500_000  # in the row groups of all parts
ROW_GROUP_MIN = 2_048  # rows in the row group of one part, at least


def small_database() -> duckdb.DuckDBPyConnection:
    """Return an empty database that takes little memory, so that the caller's fold has the rest."""
    db = connect()
    db.execute(f"SET memory_limit = '{MEMORY}'")
    db.execute(f"SET threads = {THREADS}")
    db.execute("SET preserve_insertion_order = false")
    return db


def parts_of(objects: Objects, entity: str) -> int:
    """Return the number of parts of an entity's rows, so that one part fits into memory."""
    return min(PARTS_MAX, sum(file.size for file in curated_files(objects, entity)) // PART_BYTES + 1)


def write_parts(db: duckdb.DuckDBPyConnection, sql: str, folder: Path, parts: int) -> None:
    """Write a query's rows in parts of whole users, to a folder that must not exist.

    sql: a query with the column `user_id`.
    """
    db.execute(f"SET memory_limit = '{WRITER_MEMORY}'")
    db.execute(f"SET partitioned_write_max_open_files = {PARTS_MAX + 50}")
    rows = max(ROW_GROUP_MIN, OPEN_ROWS // parts)
    db.execute(
        f"COPY (SELECT *, hash(user_id) % {parts} AS part FROM ({sql})) TO {quoted(folder)}"
        f" (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (part), ROW_GROUP_SIZE {rows})"
    )


def part_source(folder: Path, part: int) -> str | None:
    """Return the text that names a part in a query's FROM; None if the part has no users."""
    part_folder = folder / f"part={part}"
    if not part_folder.exists():
        return None
    return f"read_parquet({quoted(part_folder / '*.parquet')}, hive_partitioning = false)"
