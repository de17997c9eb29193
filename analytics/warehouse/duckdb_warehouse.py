"""A DuckDB file, which is the warehouse of a laptop."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from adapters.platform.aws import pauses
from adapters.platform.objects import Objects
from analytics.lake.curated_files import quoted
from analytics.warehouse.dialect.parser import NotAsRedshift
from analytics.warehouse.statements import Copy, StatementFailed, manifest_tables, refuse_oversized
from analytics.warehouse.translate import Columns, for_duckdb, tables_of

# While one process writes to the file, no other may write or read it, so the second process waits. These are
# words of DuckDB's errors if another process, or another thread of this one, has the file open.
IN_USE = ("lock", "already attached")
OPEN_ATTEMPTS_MAX = 120
PAUSE_SECONDS_MAX = 0.5


def sql_for(connection: Any, statement: str) -> str | None:
    """Return a statement of Redshift as DuckDB's SQL; None if DuckDB has nothing to do for it.

    connection: to the database, which knows the columns' types. Raises NotAsRedshift if DuckDB would answer
    otherwise than Redshift, and sqlglot's ParseError.
    """
    return for_duckdb(statement, _columns(connection, tables_of(statement)))


def _columns(connection: Any, tables: Sequence[str]) -> Columns:
    """Return the names and types of the columns of each table. Raises duckdb.Error if a table is missing.

    A relation knows them in a third of the time that DESCRIBE takes.
    """
    names = {table: ".".join(f'"{name}"' for name in table.split(".")) for table in tables}
    relations = {table: connection.table(name) for table, name in names.items()}
    return tuple(
        (table, tuple(zip(each.columns, map(str, each.types), strict=True)))
        for table, each in relations.items()
    )


@dataclass(frozen=True, slots=True)
class DuckWarehouse:
    """Opens the file for each use."""

    path: Path
    lake: str = ""  # the URL that COPY statements name
    objects: Objects | None = None  # those of the lake
    read_only: bool = False  # then many processes may read the file at once

    def run(self, statements: Sequence[str]) -> None:
        """Execute statements in one transaction. Raises StatementFailed, also beyond Redshift's limits."""
        refuse_oversized(statements)
        with self.reading() as connection:
            connection.begin()
            for statement in statements:
                self._execute(connection, statement)
            connection.commit()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Return a query's rows. Raises StatementFailed."""
        refuse_oversized([sql])
        with self.reading() as connection:
            cursor = self._execute(connection, sql)
            names = [name for name, *_ in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def kept_open(self) -> AbstractContextManager[Any]:
        """Keep the file open for a `with` block, because opening it takes longer than most queries."""
        return self.reading()

    def compact(self) -> None:
        """Write the file again without the bytes of deleted rows. No other process can open it meanwhile."""
        if not self.path.exists():
            return
        fresh = self.path.with_name(f"{self.path.name}.fresh")
        with self.reading() as connection:
            fresh.unlink(missing_ok=True)  # no sooner: another process may be writing it
            connection.execute("CHECKPOINT")  # removes what a killed process has left beside the old file
            (name,) = connection.execute("SELECT current_database()").fetchone()
            connection.execute(f"ATTACH {quoted(fresh)} AS fresh")
            connection.execute(f'COPY FROM DATABASE "{name}" TO fresh')
            connection.execute("DETACH fresh")
            fresh.replace(self.path)  # while the old file is open, because that holds the lock

    def _execute(self, connection: Any, statement: str) -> Any:
        if copy := Copy.parse(statement):
            return self._copy(connection, copy)
        try:
            sql = sql_for(connection, statement)
            return connection.execute(sql) if sql else connection
        except (duckdb.Error, NotAsRedshift) as error:
            raise StatementFailed(statement, str(error)) from error

    def _copy(self, connection: Any, copy: Copy) -> Any:
        if self.objects is None:
            raise StatementFailed(copy.sql(), "this warehouse was not told where the lake is")
        for table in manifest_tables(self.objects, self.lake, copy.manifest):
            connection.register("copied", table)
            connection.execute(f"INSERT INTO {copy.table} SELECT * FROM copied")  # noqa: S608 (our own name)
            connection.unregister("copied")
        return connection

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Open a connection for a `with` block, at whose end all that is not committed is rolled back."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = self._connect()
        try:
            yield connection
        finally:
            connection.close()

    def _connect(self) -> Any:
        for attempt in pauses(OPEN_ATTEMPTS_MAX, base_seconds=0.01, longest_seconds=PAUSE_SECONDS_MAX):
            try:
                connection = duckdb.connect(str(self.path), read_only=self.read_only)
            except (duckdb.IOException, duckdb.ResourceInUseException) as error:
                if not any(word in str(error) for word in IN_USE) or attempt == OPEN_ATTEMPTS_MAX - 1:
                    raise
                continue
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("SET enable_progress_bar = false")
            connection.execute("SET ieee_floating_point_ops = false")  # LN(0) is an error, and no infinity
            if self.read_only:
                connection.execute("SET enable_external_access = false")  # a query reads tables, and no files
            return connection
        raise AssertionError("unreachable")
