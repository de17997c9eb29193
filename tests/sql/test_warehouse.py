"""Redshift's Data API by a real client, and the DuckDB file: failures, pages, tokens, waiting."""

import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import psycopg
import pytest

from analytics.lake.layout import Partition
from analytics.warehouse.build import build
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.load import LOCK, Loader
from analytics.warehouse.models import models
from analytics.warehouse.redshift_warehouse import RedshiftWarehouse
from analytics.warehouse.statements import StatementFailed, literal
from analytics.warehouse.warehouse import warehouse_at
from local.paths import ROOT
from rules.lake.entities import LOADED
from tests.sql.conftest import ROLE, Lake, family
from tests.support.lake_sample import event, write
from tests.support.lake_story import Story

VALUES = """SELECT 1 AS a, CAST(2 AS BIGINT) AS b, CAST('3.10' AS DECIMAL(10, 2)) AS c, CAST(0.1 AS DOUBLE PRECISION) AS d,
TRUE AS e, DATE '2026-02-28' AS f, TIMESTAMP '2026-02-28 23:59:59.999999' AS g, 'it''s' AS h, CAST(NULL AS DATE) AS i"""


def test_the_same_python_values(lake: Lake) -> None:
    expected = {"a": 1, "b": 2, "c": Decimal("3.10"), "d": 0.1, "e": True, "f": date(2026, 2, 28)}
    expected |= {"g": datetime.fromisoformat("2026-02-28 23:59:59.999999"), "h": "it's", "i": None}
    for warehouse in lake.warehouses:
        (row,) = warehouse.rows(VALUES)
        assert row == expected
        assert [type(value) for value in row.values()] == [type(value) for value in expected.values()]


def test_literals_are_read_back(lake: Lake) -> None:
    values = [
        None,
        7,
        "o'brien",
        "back\\slash'",
        date(2026, 1, 1),
        datetime.fromisoformat("2026-01-01 02:03:04.000005"),
    ]
    listed = ", ".join(f"{literal(value)} AS c{number}" for number, value in enumerate(values))
    for warehouse in lake.warehouses:
        assert list(warehouse.rows(f"SELECT {listed}")[0].values()) == values


def test_a_result_of_many_pages(lake: Lake) -> None:
    lake.api.page_rows = 50
    sql = "WITH d AS (SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4)"
    sql += " SELECT a.n + 5 * b.n + 25 * c.n AS n FROM d AS a CROSS JOIN d AS b CROSS JOIN d AS c ORDER BY n"
    for warehouse in lake.warehouses:
        assert [row["n"] for row in warehouse.rows(sql)] == list(range(125))
    assert [action for action, _ in lake.api.calls].count("GetStatementResult") == 3


def test_all_or_nothing_and_the_reason(lake: Lake) -> None:
    for warehouse in lake.warehouses:
        warehouse.run(["CREATE SCHEMA lake", "CREATE TABLE lake.t (a INT)"])
        with pytest.raises(StatementFailed, match="nowhere") as caught:
            warehouse.run(["INSERT INTO lake.t VALUES (1)", "SELECT 1 FROM lake.nowhere"])
        assert caught.value.statement == "SELECT 1 FROM lake.nowhere"
        assert "nowhere" in caught.value.reason
        assert warehouse.rows("SELECT a FROM lake.t") == []


def test_a_lost_conflict_is_tried_again_and_other_failures_are_not(lake: Lake) -> None:
    lake.api.failures = ["ERROR: 1023\nDETAIL: Serializable isolation violation on table - 1"]
    lake.redshift.run(["CREATE SCHEMA lake"])
    with pytest.raises(StatementFailed, match="disk full"):
        lake.api.failures = ["ERROR: disk full"]
        lake.redshift.run(["CREATE SCHEMA other"])
    submitted = [request for action, request in lake.api.calls if action == "BatchExecuteStatement"]
    assert len(submitted) == 3
    assert len({request["ClientToken"] for request in submitted}) == 3


def test_a_lock_is_waited_for_a_while_and_then_told(lake: Lake) -> None:
    """An open transaction holds a lock. Nothing of ours remains, and the next try succeeds."""
    lake.redshift.run(["CREATE SCHEMA lake", "CREATE TABLE lake.t (a INT)", "CREATE TABLE lake.u (a INT)"])
    impatient = replace(lake.redshift, seconds_max=0.5)
    statements = ["INSERT INTO lake.u VALUES (1)", "INSERT INTO lake.t VALUES (1)"]
    with psycopg.connect(lake.dsn) as analyst:
        analyst.execute("LOCK TABLE lake.t")
        with pytest.raises(StatementFailed, match="another transaction holds a lock") as caught:
            impatient.run(statements)
        assert caught.value.statement == statements[1]
    impatient.run(statements)
    assert lake.redshift.rows("SELECT COUNT(*) AS n FROM lake.u") == [{"n": 1}]


def test_readers_and_loads_do_not_wait_for_each_other(lake: Lake) -> None:
    """An analyst has read tables, and leaves the transaction open. Loads go on, and builds of models of each kind."""
    story = Story(days=2)
    lake.load("one", story.first_part().write(lake.objects), lake.redshift)
    built = family("marts.monthly_actives")
    assert {models()[name].materialized for name in built} == {"view", "table", "incremental"}
    build(lake.redshift, only=built)
    read = [*(f"lake.{entity}" for entity in LOADED), *built]
    impatient = replace(lake.redshift, seconds_max=20)
    late = story.late_part().write(lake.objects)
    with psycopg.connect(lake.dsn) as analyst:
        for name in read:
            analyst.execute(f"SELECT COUNT(*) FROM {name}")
        Loader(impatient, lake.objects, str(lake.root), ROLE).load("two", late)
        build(impatient, only=built)
    assert impatient.rows("SELECT 1 AS n FROM lake.events WHERE version = '1'") == [{"n": 1}]


def test_a_load_keeps_no_reader_waiting(lake: Lake) -> None:
    """Another load holds its lock, its work not committed: tables of the lake are read as they were."""
    place, when = Partition("events", "2026-01-31", "23"), datetime(2026, 1, 31, 23, tzinfo=UTC)
    write(lake.objects, place, [event("u", when, "CHECK_IN", 1)])
    lake.load("one", [place], lake.redshift)
    impatient = replace(lake.redshift, seconds_max=5)
    with psycopg.connect(lake.dsn) as other:
        other.execute(LOCK.replace("LOCK ", "LOCK TABLE "))
        other.execute("DELETE FROM lake.events")
        assert impatient.rows("SELECT COUNT(*) AS n FROM lake.events")[0]["n"] > 0


def test_who_is_asked_for(lake: Lake) -> None:
    RedshiftWarehouse(lake.redshift.data_api, "other", "dev", "arn:secret").run(["CREATE SCHEMA lake"])
    request = lake.api.calls[0][1]
    assert (request["WorkgroupName"], request["Database"], request["SecretArn"]) == (
        "other",
        "dev",
        "arn:secret",
    )


def test_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    there = warehouse_at(f"duckdb:{tmp_path}/w.duckdb", str(tmp_path))
    assert there.rows("SELECT 1 AS a") == [{"a": 1}]
    redshift = warehouse_at("redshift://wg/dev?secret_arn=arn:aws:secretsmanager:eu-west-1:1:secret:x!y")
    assert isinstance(redshift, RedshiftWarehouse)
    assert redshift.secret_arn == "arn:aws:secretsmanager:eu-west-1:1:secret:x!y"
    assert warehouse_at("").rows("SELECT 1") == []
    warehouse_at("").run(["DROP TABLE lake.events"])
    for wrong in ("duckdb", "redshift://wg", "postgres://x/y"):
        with pytest.raises(ValueError, match="no warehouse"):
            warehouse_at(wrong)


def test_a_second_writer_waits(tmp_path: Path) -> None:
    """DuckDB locks its file against other processes; here its refusal is played back."""
    warehouse = warehouse_at(f"duckdb:{tmp_path}/w.duckdb")
    refusals = iter(
        [duckdb.IOException("Could not set lock on file"), duckdb.IOException("Conflicting lock is held")]
    )
    connect = duckdb.connect

    def once_busy(path: str, read_only: bool) -> duckdb.DuckDBPyConnection:
        if error := next(refusals, None):
            raise error
        return connect(path, read_only=read_only)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", once_busy)
        assert warehouse.rows("SELECT 1 AS a") == [{"a": 1}]


def begin(code: str, *arguments: object) -> "subprocess.Popen[bytes]":
    """Begin another process, which has the arguments in sys.argv and a DuckWarehouse at the first of them."""
    made = "import os, sys; from pathlib import Path; from analytics.warehouse.duckdb_warehouse import DuckWarehouse"
    text = f"{made}; warehouse = DuckWarehouse(Path(sys.argv[1]))\n{code}"
    return subprocess.Popen([sys.executable, "-c", text, *map(str, arguments)], cwd=ROOT)


def test_who_waits_to_compact_a_file_leaves_another_s_work_alone(tmp_path: Path) -> None:
    """Two nights may end at the same time: whoever started the first is gone, and it goes on."""
    warehouse = DuckWarehouse(tmp_path / "w.duckdb")
    warehouse.run(["CREATE SCHEMA lake", "CREATE TABLE lake.t (a INT)", "INSERT INTO lake.t VALUES (1)"])
    others = (tmp_path / "w.duckdb.fresh", tmp_path / "waits")
    with warehouse.reading():
        others[0].write_text("what the first one writes")
        waiting = begin("Path(sys.argv[2]).touch(); warehouse.compact()", warehouse.path, others[1])
        while not others[1].exists():
            time.sleep(0.01)
        time.sleep(0.3)
        assert (waiting.poll(), others[0].read_text()) == (None, "what the first one writes")
    assert waiting.wait() == 0
    assert warehouse.rows("SELECT a FROM lake.t") == [{"a": 1}]


def test_a_file_is_whole_wherever_its_writer_is_killed(tmp_path: Path) -> None:
    """DuckDB keeps what a killed process had written beside the file; it belongs to the file that compact() replaces."""
    warehouse = DuckWarehouse(tmp_path / "w.duckdb")
    warehouse.run(["CREATE SCHEMA lake", "CREATE TABLE lake.t (a INT)"])
    insert = "connection.execute('INSERT INTO lake.t VALUES (1)'); os.kill(os.getpid(), 9)"
    at_once = f"with warehouse.reading() as connection: {insert}"
    replaced = (
        "replace = Path.replace\n"
        "def dying(self, target): replace(self, target); os.kill(os.getpid(), 9)\n"
        "Path.replace = dying; warehouse.compact()"
    )
    for code in (at_once, replaced, at_once):
        assert begin(code, warehouse.path).wait() == -signal.SIGKILL
    assert warehouse.rows("SELECT a FROM lake.t") == [{"a": 1}, {"a": 1}]
    warehouse.compact()
    assert [file.name for file in tmp_path.iterdir()] == ["w.duckdb"]


def test_threads_take_turns(tmp_path: Path) -> None:
    warehouse = warehouse_at(f"duckdb:{tmp_path}/w.duckdb")
    warehouse.run(["CREATE SCHEMA lake", "CREATE TABLE lake.t (a INT)"])
    threads = [
        threading.Thread(target=warehouse.run, args=(["INSERT INTO lake.t VALUES (1)"],)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warehouse.rows("SELECT COUNT(*) AS n FROM lake.t") == [{"n": 8}]
