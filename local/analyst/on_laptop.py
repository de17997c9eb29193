"""Asks the laptop's warehouse: a DuckDB file, opened for reading alone."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from analytics.warehouse.dialect.refusal import NotAsRedshift
from analytics.warehouse.duckdb_warehouse import DuckWarehouse, sql_for
from local.analyst.answer import Answer, QueryFailed, sentence

ENGINE = "DuckDB"
BATCH_ROWS = 10_000


@contextmanager
def answer(path: Path, query: str) -> Iterator[Answer]:
    """Ask the file at path; until the block ends, nobody can write to it. Raises QueryFailed."""
    if not path.exists():
        raise QueryFailed(f"there is no warehouse at {path}: `streakline recompute` makes it")
    try:
        with DuckWarehouse(path, read_only=True).reading() as connection:
            reader = connection.sql(sql_for(connection, query)).to_arrow_reader(BATCH_ROWS)
            with closing(reader):  # whoever comes next would wait for its other rows, for ever
                yield Answer.of(ENGINE, reader.schema, reader)
    except (duckdb.Error, NotAsRedshift, pa.ArrowException) as error:
        raise QueryFailed(sentence(ENGINE, error)) from error
