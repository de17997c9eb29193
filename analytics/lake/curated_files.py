"""Reads curated files: some columns of an entity, file by file as Arrow tables, or all rows by DuckDB.

DuckDB works in memory. It writes to the temporary folder what does not fit.
"""

import hashlib
import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects, StoredObject
from analytics.lake.arrow import arrow_schema
from analytics.lake.layout import curated_files, curated_partition
from rules.lake.entities import ENTITIES

# ruff: noqa: S608 (names of tables are our own)

MEMORY = "1500MB"
THREADS = 2
STAMP = "'%Y-%m-%dT%H:%M:%S.%fZ'"  # how strftime writes an instant as rules.days.stamp does


def quoted(path: Path | str) -> str:
    """Return a path as a text of DuckDB's SQL. A home folder may have an apostrophe in its name."""
    return "'" + str(path).replace("'", "''") + "'"


def connect() -> duckdb.DuckDBPyConnection:
    """Return an empty database whose time zone is UTC."""
    db = duckdb.connect(":memory:", config={"threads": THREADS, "memory_limit": MEMORY})
    db.execute("SET TimeZone = 'UTC'")
    db.execute(f"SET temp_directory = {quoted(gettempdir())}")
    db.execute("SET enable_progress_bar = false")
    return db


def cursor() -> duckdb.DuckDBPyConnection:
    """Return a connection to a database that this process keeps, because to make one takes 20 ms of CPU.

    No other connection sees what this one registers, or its temporary tables.
    """
    db = _kept().cursor()
    db.execute("SET TimeZone = 'UTC'")
    return db


_kept = cache(connect)


def query(db: duckdb.DuckDBPyConnection, sql: str, values: Any = None) -> pa.Table:
    """Return a query's rows as an Arrow table."""
    rows: pa.Table = db.sql(sql, params=values).to_arrow_table()
    return rows


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as a Parquet file."""
    data = io.BytesIO()
    pq.write_table(table, data, compression="zstd")
    return data.getvalue()


@contextmanager
def arrow_table(db: duckdb.DuckDBPyConnection, name: str, rows: Any) -> Iterator[None]:
    """Let queries read Arrow rows as a table of this name, for the length of a `with` block."""
    db.register(name, rows)
    try:
        yield
    finally:
        db.unregister(name)


def date_of(stored: StoredObject) -> str:
    """Return the partition's date (YYYY-MM-DD) of a curated file, of a month's file the last one.

    Raises ValueError for any other object.
    """
    partition = curated_partition(stored.key)
    if partition is None:
        raise ValueError(f"{stored.key} is no curated file")
    return partition.last_dt


def files_between(
    files: Iterable[StoredObject], after: date | None, until: date | None
) -> list[StoredObject]:
    """Return the files of partitions after a date and up to another; None: open on that side."""
    first, last = after.isoformat() if after else "", until.isoformat() if until else "9999-12-31"
    return [file for file in files if first < date_of(file) <= last]


def etags_digest(files: Mapping[str, list[StoredObject]], until: date) -> str:
    """Return a digest of the keys and ETags of all entities' files up to a date: other files give another."""
    lines = sorted(
        f"{file.key} {file.etag}"
        for files_of_entity in files.values()
        for file in files_between(files_of_entity, None, until)
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def read_file(objects: Objects, entity: str, stored: StoredObject, names: Sequence[str]) -> pa.Table:
    """Return some columns of one file. A column that was declared after the file was written is null."""
    file = pq.ParquetFile(pa.BufferReader(objects.get(stored.key)))
    columns = set(file.schema_arrow.names)
    return as_declared(
        file.read([name for name in names if name in columns], use_threads=False), entity, names
    )


def as_declared(rows: pa.Table, entity: str, names: Sequence[str]) -> pa.Table:
    """Return rows of a file with the columns and types that its entity declares now."""
    schema = arrow_schema(ENTITIES[entity])
    kinds = [schema.field(name).type for name in names]
    if rows.schema.names == list(names) and rows.schema.types == kinds:
        return rows  # almost every file has just these columns and types
    columns = [
        rows[name].cast(kind) if name in rows.schema.names else pa.nulls(rows.num_rows, kind)
        for name, kind in zip(names, kinds, strict=True)
    ]
    return pa.table(dict(zip(names, columns, strict=True)))


class ColumnBounds(NamedTuple):
    """The least and the greatest value of a column in a group of rows."""

    least: Any
    greatest: Any


def column_bounds(group: pq.RowGroupMetaData, column: str) -> ColumnBounds | None:
    """Return the bounds of a column by the file's footer alone.

    None: the footer does not have them, because the group lacks the column, or has only nulls in it.
    """
    for number in range(group.num_columns):
        chunk = group.column(number)
        if chunk.path_in_schema == column and chunk.statistics is not None and chunk.statistics.has_min_max:
            return ColumnBounds(chunk.statistics.min, chunk.statistics.max)
    return None


def tables(
    objects: Objects, entity: str, files: Iterable[StoredObject], names: Sequence[str], threads: int = 1
) -> Iterator[tuple[date, pa.Table]]:
    """Yield these columns of each of an entity's files, with its date, in the order given.

    threads: how many files are read at once.
    """
    waiting: deque[tuple[date, Future[pa.Table]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for stored in files:
            day = date.fromisoformat(date_of(stored))
            waiting.append((day, pool.submit(read_file, objects, entity, stored, names)))
            if len(waiting) > threads:
                day, table = waiting.popleft()
                yield day, table.result()
        while waiting:  # each table's memory is given back before the next one is taken
            day, table = waiting.popleft()
            yield day, table.result()


def reader(
    objects: Objects,
    entity: str,
    names: Sequence[str],
    files: Iterable[StoredObject] | None = None,
    keep: Callable[[pa.Table], pa.Table] = lambda rows: rows,
) -> pa.RecordBatchReader:
    """Return the same columns of some files, or all, as one stream of Arrow batches. It can be read once.

    keep: takes the rows of a file, and returns those that are wanted.
    """
    declared = arrow_schema(ENTITIES[entity])
    schema = pa.schema([declared.field(name) for name in names])
    if files is None:
        files = curated_files(objects, entity)
    dated_tables = tables(objects, entity, files, names)
    batches = (batch for _, table in dated_tables for batch in keep(table).to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


@contextmanager
def table_of(
    db: duckdb.DuckDBPyConnection, name: str, objects: Objects, entity: str, threads: int = 1
) -> Iterator[None]:
    """Let queries read all rows of an entity as a table of this name, for the length of a `with` block.

    DuckDB reads the files itself, and only the columns that a query names. This takes half the time of
    reading them one by one. The files of a lake on S3 are copied to the temporary folder. threads: how many
    files are fetched at once.
    """
    declared = arrow_schema(ENTITIES[entity])
    with TemporaryDirectory() as folder, arrow_table(db, f"{name}_declared", declared.empty_table()):
        keys = [stored.key for stored in curated_files(objects, entity)]
        paths = [Path(folder, f"{number}.parquet") for number in range(len(keys))]
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(objects.link, keys, paths))
        # Without the cache each statement would read the footers of all files again.
        db.execute("SET parquet_metadata_cache = true")
        db.execute(f"CREATE TEMP VIEW {name} AS {_rows(db, f'{name}_declared', folder if paths else None)}")
        yield
        db.execute(f"DROP VIEW {name}")


def _rows(db: duckdb.DuckDBPyConnection, declared: str, folder: str | None) -> str:
    """Return the query for the rows of the files in a folder, with the columns of a declared table.

    A column that was declared after a file was written is null in it; types are widened. The query names what
    the files lack: a union with the empty table does the same, and costs each scan as much as the files do.
    """
    if folder is None:
        return f"SELECT * FROM {declared}"
    files = f"read_parquet({quoted(f'{folder}/*.parquet')}, union_by_name = true, hive_partitioning = false)"
    kinds = dict(_columns(db, files))
    columns = []
    for column, kind in _columns(db, declared):
        if kinds.get(column) == kind:
            columns.append(f'"{column}"')
        else:
            value = f'"{column}"' if column in kinds else "NULL"
            columns.append(f'CAST({value} AS {kind}) AS "{column}"')
    return f"SELECT {', '.join(columns)} FROM {files}"


def _columns(db: duckdb.DuckDBPyConnection, source: str) -> list[tuple[str, str]]:
    """Return the names of a table's columns, with DuckDB's names of their types."""
    return [(name, kind) for name, kind, *_ in db.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]


class RangedFile:
    """A stored object as a file for pyarrow. Each read requests only that part of the object."""

    closed = False

    def __init__(self, objects: Objects, stored: StoredObject) -> None:
        self._objects, self._stored, self._at = objects, stored, 0

    def close(self) -> None:
        """Do nothing."""

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position, and return it."""
        self._at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._stored.size}[whence] + offset
        return self._at

    def read(self, size: int) -> bytes:
        """Return the next bytes; raises NoObject."""
        count = min(size, max(0, self._stored.size - self._at))
        data = self._objects.part(self._stored.key, self._at, count) if count else b""
        self._at += len(data)
        return data
