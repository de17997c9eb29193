"""redshift_connector and awswrangler, as an analyst uses them, against PostgreSQL."""

from collections.abc import Iterator
from datetime import date
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pytest
import redshift_connector.error

from analytics.warehouse import analyst_clients
from analytics.warehouse.ddl import prepare
from tests.sql.conftest import Databases, Lake
from tests.support.redshift_wire import filtering, startup


@pytest.fixture
def session(lake: Lake) -> Iterator[Any]:
    prepare(lake.redshift)
    host, name = lake.dsn.partition("host=")[2], lake.dsn.rpartition("/")[2]
    name = lake.dsn.partition("@/")[2].partition("?")[0]
    with (
        filtering(f"{host}/.s.PGSQL.5432") as port,
        analyst_clients.connect(
            "127.0.0.1", name, port=port, ssl=False, user="postgres", password="x"
        ) as connection,
    ):
        yield connection


def test_a_session_reads_and_writes(session: Any) -> None:
    cursor = session.cursor()
    cursor.execute(
        "INSERT INTO lake.curation VALUES (%s, %s, 'day', 5, 4, 1, 0)", ("events", date(2026, 1, 31))
    )
    session.commit()
    cursor.execute("SELECT entity, dt, rows_in FROM lake.curation")
    assert cursor.fetchall() == (["events", date(2026, 1, 31), 5],)


def test_upsert_replaces_by_key_and_can_be_repeated(session: Any) -> None:
    first = pd.DataFrame({"user_id": ["a", "o'b"], "segment": ["new", "old"], "score": [0.5, 1.5]})
    second = pd.DataFrame({"user_id": ["o'b", "c"], "segment": ["gold", "new"], "score": [2.5, 3.5]})
    for frame in (first, second, second):
        analyst_clients.upsert(session, frame, "marts.segments", ["user_id"])
    cursor = session.cursor()
    cursor.execute("SELECT user_id, segment, score FROM marts.segments ORDER BY user_id")
    assert list(cursor.fetchall()) == [["a", "new", 0.5], ["c", "new", 3.5], ["o'b", "gold", 2.5]]


def test_a_key_that_stands_twice_is_refused(session: Any) -> None:
    frame = pd.DataFrame({"user_id": ["a", "a"], "score": [1, 2]})
    with pytest.raises(ValueError, match="user_id stand twice"):
        analyst_clients.upsert(session, frame, "marts.segments", ["user_id"])


def test_what_is_not_committed_is_gone(lake: Lake, session: Any) -> None:
    session.cursor().execute("INSERT INTO lake.curation VALUES ('events', '2026-01-31', 'day', 5, 4, 1, 0)")
    session.rollback()
    assert lake.redshift.rows("SELECT 1 AS a FROM lake.curation") == []


def test_identity_comes_from_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def refuse(**options: Any) -> Any:
        asked.update(options)
        raise redshift_connector.error.InterfaceError("no network here")

    monkeypatch.setattr(redshift_connector, "connect", refuse)
    host = "wg.123456789012.eu-west-1.redshift-serverless.amazonaws.com"
    with (
        pytest.raises(redshift_connector.error.InterfaceError),
        analyst_clients.connect(host, "dev", workgroup="wg", region="eu-west-1"),
    ):
        pass
    assert asked["iam"] is asked["is_serverless"] is asked["ssl"] is True
    assert (asked["serverless_work_group"], asked["port"]) == ("wg", 5439)


def test_the_filter_keeps_user_and_database() -> None:
    body = b"\0\3\0\0user\0u\0driver_version\0x\0database\0d\0\0"
    assert startup(body) == b"\0\3\0\0user\0u\0database\0d\0\0"


def test_the_engine_is_postgresql(databases: Databases) -> None:
    assert "postgresql://" in databases.server.get_uri()
