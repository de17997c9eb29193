"""What stops an analyst's DELETE: our own reading, the file or transaction, and the rights."""

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from analytics.warehouse.warehouse import READABLE
from local.analyst.output import QueryFailed
from local.analyst.sql import ask
from local.stack import Stack
from tests.sql.conftest import Lake
from tests.support.analyst_engines import WRITES, Engines


@pytest.mark.parametrize("sql", WRITES)
def test_what_is_no_query_is_refused_before_anybody_is_asked(lake: Lake, tmp_path: Path, sql: str) -> None:
    stack = Stack("", "http://nobody", "", {}, {}, "")
    with pytest.raises(QueryFailed), ask(stack, sql, file=tmp_path / "none.duckdb"):
        pass
    assert lake.api.calls == []


@pytest.mark.parametrize(
    "sql", [each for each in WRITES if each.startswith(("DELETE", "INSERT", "DROP", "CREATE"))]
)
def test_the_engine_holds_against_writes_too(engines: Engines, sql: str) -> None:
    """Also if our own reading of the statement were wrong: file and transaction are for reading."""
    before = engines.lake.redshift.rows("SELECT COUNT(*) AS n FROM lake.builds")
    ways = engines.ways()
    for name in ("DuckDB", "driver"):
        with pytest.raises(QueryFailed, match="read-only"):
            ways[name](sql)
    assert engines.lake.redshift.rows("SELECT COUNT(*) AS n FROM lake.builds") == before
    assert engines.ways()["DuckDB"]("SELECT COUNT(*) AS n FROM lake.builds").to_pylist()[0]["n"] > 0


def test_the_role_of_analysts_reads_models_and_writes_nothing(engines: Engines) -> None:
    """What holds through the Data API: the rights. These are the nightly run's own grants."""
    with psycopg.connect(engines.lake.dsn, autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS analyst")
        admin.execute("CREATE ROLE analyst LOGIN")
        admin.execute(f"GRANT USAGE ON SCHEMA {READABLE} TO analyst")
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {READABLE} TO analyst")
    dsn = engines.lake.dsn.replace("postgres:", "analyst:", 1)
    assert dsn != engines.lake.dsn
    with closing(psycopg.connect(dsn, autocommit=True)) as analyst:
        assert analyst.execute("SELECT COUNT(*) FROM marts.daily_actives").fetchone() != (0,)
        for write in (
            "DELETE FROM marts.daily_actives",
            "CREATE TABLE marts.mine (a INT)",
            "DROP TABLE marts.daily_actives",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                analyst.execute(write)
    with psycopg.connect(engines.lake.dsn, autocommit=True) as admin:
        admin.execute("DROP OWNED BY analyst")
        admin.execute("DROP ROLE analyst")
