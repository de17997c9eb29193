"""DuckDB in memory, fed with Arrow. What does not fit into memory goes to the temporary folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import gettempdir
from typing import Any

import duckdb
import pyarrow as pa

MEMORY = "1500MB"
THREADS = 2
STAMP = "'%Y-%m-%dT%H:%M:%S.%fZ'"  # how strftime writes an instant as rules.days.stamp does


def connect() -> duckdb.DuckDBPyConnection:
    """Return an empty database whose time zone is UTC."""
    db = duckdb.connect(":memory:", config={"threads": THREADS, "memory_limit": MEMORY})
    db.execute("SET TimeZone = 'UTC'")
    db.execute(f"SET temp_directory = '{gettempdir()}'")
    db.execute("SET enable_progress_bar = false")
    return db


def query(db: duckdb.DuckDBPyConnection, sql: str, values: Any = None) -> pa.Table:
    """Return a query's rows as an Arrow table."""
    found: pa.Table = db.sql(sql, params=values).to_arrow_table()
    return found


@contextmanager
def arrow_table(db: duckdb.DuckDBPyConnection, name: str, rows: Any) -> Iterator[None]:
    """Let queries read Arrow rows as a table of this name, for the length of a `with` block."""
    db.register(name, rows)
    try:
        yield
    finally:
        db.unregister(name)
