"""Analysts' queries on the warehouse: the same rows, whichever engine answers."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from local.analyst import aws_engines
from local.analyst import sql as on_laptop
from local.analyst.output import QueryFailed
from local.analyst.sql import ask, warehouse_of
from local.stack import Stack
from tests.sql.test_questions import QUESTIONS
from tests.support.analyst_engines import TYPED, WANTED, Engines, plain


@pytest.mark.parametrize("sql", [sql for _, sql in QUESTIONS], ids=[number for number, _ in QUESTIONS])
def test_the_ten_questions_have_one_answer_on_every_engine(engines: Engines, sql: str) -> None:
    answers = {name: plain(way(sql)) for name, way in engines.ways().items()}
    assert answers["DuckDB"]
    assert answers["DuckDB"] == answers["Data API"] == answers["driver"]


def test_values_keep_their_types(engines: Engines) -> None:
    for name, way in engines.ways().items():
        found = way(TYPED)
        assert found.to_pylist() == [WANTED], name
        assert found.schema.field("money").type == pa.decimal128(12, 2), name
        assert found.schema.field("big").type == pa.int64(), name
        assert found.schema.field("at").type == pa.timestamp("us"), name


def test_no_rows_have_types_too(engines: Engines) -> None:
    for name, way in engines.ways().items():
        found = way(f"SELECT * FROM ({TYPED}) AS typed WHERE small = 2")
        assert found.num_rows == 0, name
        assert found.schema.field("money").type == pa.decimal128(12, 2), name
        assert found.schema.field("day").type == pa.date32(), name


def test_a_frame_keeps_whole_numbers_beside_nulls(engines: Engines) -> None:
    with engines.duckdb("SELECT 9007199254740993 AS n UNION ALL SELECT NULL ORDER BY n") as answer:
        import pandas as pd  # type: ignore[import-untyped]

        frame = answer.table().to_pandas(types_mapper=pd.ArrowDtype)
    assert frame["n"].iloc[0] == 9007199254740993
    assert frame["n"].isna().tolist() == [False, True]


def test_pages_of_the_data_api_make_one_answer(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines.lake.api, "page_rows", 3)
    sql = "SELECT event_id, points_awarded, occurred_at FROM lake.events ORDER BY event_id, user_id"
    before = len(engines.lake.api.calls)
    ways = engines.ways()
    assert ways["Data API"](sql).to_pylist() == ways["DuckDB"](sql).to_pylist()
    asked = [action for action, _ in engines.lake.api.calls[before:]]
    assert asked.count("GetStatementResult") > 10


def test_nested_values_are_json_text(engines: Engines) -> None:
    with on_laptop.laptop_answer(engines.file, "SELECT ARRAY(1, 2) AS j, ARRAY('é') AS k") as answer:
        assert answer.table().to_pylist() == [{"j": "[1, 2]", "k": '["é"]'}]


def test_an_engine_s_refusal_is_one_sentence(engines: Engines) -> None:
    for name, way in engines.ways().items():
        with pytest.raises(QueryFailed, match=r"refused the query: .*no_such_table") as refused:
            way("SELECT * FROM marts.no_such_table")
        assert "\n" not in str(refused.value), name


def test_a_query_that_fails_after_its_first_rows_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with DuckWarehouse(tmp_path / "w.duckdb").reading() as connection:
        connection.execute("CREATE TABLE many AS SELECT i FROM range(300000) AS r (i)")
    asked = on_laptop.laptop_answer(tmp_path / "w.duckdb", "SELECT 9 / (i - 290000) AS q FROM many")
    with asked as answer, pytest.raises(QueryFailed, match=r"^DuckDB refused the query: .*zero"):
        answer.table()


def test_values_take_the_places_of_names(engines: Engines) -> None:
    sql = "SELECT :text AS t, ':text' AS literal, CAST(:day AS DATE) AS d, :n::BIGINT AS n, :none AS nothing"
    given: dict[str, Any] = {"text": "o'b\\c; DROP TABLE x", "day": date(2026, 1, 31), "n": 3, "none": None}
    stack = Stack("", "http://nobody", "", {}, {}, "")
    with ask(stack, sql, parameters=given, file=engines.file) as answer:
        assert answer.table().to_pylist() == [
            {"t": given["text"], "literal": ":text", "d": date(2026, 1, 31), "n": 3, "nothing": None}
        ]
    for parameters, said in (({}, "no value"), ({**given, "more": 1}, "no parameter :more")):
        with (
            pytest.raises(QueryFailed, match=said),
            ask(stack, sql, parameters=parameters, file=engines.file),
        ):
            pass


def test_a_question_that_is_given_up_is_cancelled(engines: Engines) -> None:
    def give_up(_: str) -> None:
        raise KeyboardInterrupt

    api = engines.lake.redshift.data_api
    with (
        pytest.raises(KeyboardInterrupt),
        aws_engines.by_data_api(api, "workgroup", "dev", "SELECT 1 AS a", give_up),
    ):
        pass
    assert engines.lake.api.calls[-1][0] == "CancelStatement"


def test_where_a_stack_s_warehouse_is() -> None:
    ours = {"WarehouseWorkgroup": "w", "WarehouseDatabase": "d"}
    assert warehouse_of(Stack("", "", "", ours, {}, "")) == ("w", "d")
    url = "redshift://theirs/base?secret_arn=arn"
    assert warehouse_of(Stack("", "", "", {}, {}, "", parameters={"OwnWarehouse": url})) == ("theirs", "base")
    with pytest.raises(QueryFailed, match="has no warehouse"):
        warehouse_of(Stack("", "", "", {}, {}, "", parameters={"OwnWarehouse": "none"}))


def test_a_driver_is_used_only_where_there_is_a_way(engines: Engines) -> None:
    assert aws_engines.is_reachable("127.0.0.1", engines.port)
    assert not aws_engines.is_reachable("127.0.0.1", 1)


def test_a_laptop_without_a_warehouse(tmp_path: Path) -> None:
    with (
        pytest.raises(QueryFailed, match="streakline night run"),
        on_laptop.laptop_answer(tmp_path / "a.duckdb", "SELECT 1"),
    ):
        pass


def test_instants_with_a_zone_are_utc(engines: Engines) -> None:
    sql = "SELECT CAST('2026-01-31 12:00:00.5+02' AS TIMESTAMPTZ) AS at"
    for name, way in engines.ways().items():
        assert way(sql).to_pylist() == [{"at": datetime(2026, 1, 31, 10, 0, 0, 500000, UTC)}], name
