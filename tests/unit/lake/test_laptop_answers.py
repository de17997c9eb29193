"""Answers of the laptop's warehouse: several at once, and in files that others read."""

import csv
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow.parquet
import pytest

from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from local.analyst import sql
from local.analyst.output import QueryFailed, write
from local.analyst.sql import ask
from local.stack import Stack

ROWS = 300_000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answers") / "w.duckdb"
    with DuckWarehouse(path).reading() as connection:
        connection.execute("CREATE SCHEMA marts")
        connection.execute(f"CREATE TABLE marts.many AS SELECT range AS n FROM range({ROWS})")
    return path


def _while_open(file: Path) -> int:
    with sql.laptop_answer(file, "SELECT n FROM marts.many") as first:
        begun = next(first.batches).num_rows
        with sql.laptop_answer(file, "SELECT COUNT(*) AS n FROM marts.many") as second:
            assert second.table().to_pylist() == [{"n": ROWS}]
        return int(begun + sum(each.num_rows for each in first.batches))


def _after_a_part(file: Path) -> int:
    with sql.laptop_answer(file, "SELECT n FROM marts.many") as first:
        next(first.batches)
    with sql.laptop_answer(file, "SELECT n FROM marts.many") as second:
        return int(second.table().num_rows)


def _after_an_error(file: Path) -> int:
    with pytest.raises(ZeroDivisionError), sql.laptop_answer(file, "SELECT n FROM marts.many") as first:
        next(first.batches)
        raise ZeroDivisionError
    return _after_a_part(file)


@pytest.mark.parametrize("ask", [_while_open, _after_a_part, _after_an_error])
def test_a_second_query_does_not_wait_for_the_first(file: Path, ask: Callable[[Path], int]) -> None:
    assert ask(file) == ROWS


def test_an_answer_ends_with_its_block(file: Path) -> None:
    with sql.laptop_answer(file, "SELECT n FROM marts.many") as first:
        next(first.batches)
    with pytest.raises(Exception, match="closed"):
        next(first.batches)


# An expression of Redshift, its cell in a CSV file, its value in Parquet.
CELLS: list[tuple[str, str, Any]] = [
    ("TIMESTAMP '2026-02-01 10:00:00' - TIMESTAMP '2026-01-31 00:00:00'", "1 day 10:00:00", None),
    ("TIMESTAMP '2026-01-31 00:00:00' - TIMESTAMP '2026-01-31 10:00:00.5'", "-10:00:00.5", None),
    ("INTERVAL '1 year 2 months 3 days'", "1 year 2 mons 3 days", None),
    ("INTERVAL '0 days'", "00:00:00", None),
    ("ARRAY(1, 2)", "[1, 2]", None),
    ("JSON_PARSE('{\"a\": [1, null]}')", '{"a": [1, null]}', None),
    (
        "CAST('12345678901234567890.12' AS DECIMAL(38, 2))",
        "12345678901234567890.12",
        Decimal("12345678901234567890.12"),
    ),
    ("CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0))", "9" * 38, Decimal("9" * 38)),
    ("9007199254740993", "9007199254740993", 9007199254740993),
    ("TRUE", "true", True),
]


@pytest.mark.parametrize(("expression", "cell", "value"), CELLS, ids=[each for each, _, _ in CELLS])
def test_a_value_in_a_file_is_right_or_text(
    file: Path, tmp_path: Path, expression: str, cell: str, value: Any
) -> None:
    query = f"SELECT {expression} AS x UNION ALL SELECT NULL"
    for name in ("x.csv", "x.parquet"):
        with sql.laptop_answer(file, query) as answer:
            assert write(answer, tmp_path / name) == 2
    with (tmp_path / "x.csv").open(newline="") as lines:
        told = [row[0] for row in csv.reader(lines) if row]
    assert told[1].removeprefix("'") == cell
    found = pyarrow.parquet.read_table(tmp_path / "x.parquet").column("x").to_pylist()
    assert found == [cell if value is None else value, None]


def test_equal_names_of_a_join_differ_in_a_file(file: Path, tmp_path: Path) -> None:
    query = """SELECT * FROM (SELECT 1 AS id, 'a' AS name) AS a INNER JOIN (SELECT 1 AS id, 'b' AS id_2) AS b ON a.id = b.id
    INNER JOIN (SELECT 1 AS "ID") AS c ON c."ID" = a.id"""
    for name in ("x.csv", "x.parquet"):
        with sql.laptop_answer(file, query) as answer:
            write(answer, tmp_path / name)
    wanted = [{"id": 1, "name": "a", "id_3": 1, "id_2": "b", "id_4": 1}]
    assert pyarrow.parquet.read_table(tmp_path / "x.parquet").to_pylist() == wanted
    assert pd.read_parquet(tmp_path / "x.parquet").to_dict("records") == wanted
    with (tmp_path / "x.csv").open(newline="") as lines:
        assert next(csv.reader(lines)) == list(wanted[0])


@pytest.mark.parametrize(("asked", "answer"), [("5 # 3", 6), ("'a_b' LIKE 'a\\\\_b'", True), ("7 / 2", 3)])
def test_a_question_is_read_as_redshift_reads_it(file: Path, asked: str, answer: Any) -> None:
    with ask(Stack("", "http://nobody", "", {}, {}, ""), f"SELECT {asked} AS x", file=file) as found:
        assert found.table().to_pylist() == [{"x": answer}]


def test_what_is_refused_is_told_with_the_reason(file: Path) -> None:
    with (
        pytest.raises(QueryFailed, match=r"LEVENSHTEIN: it is not known to answer here as Redshift does"),
        sql.laptop_answer(file, "SELECT LEVENSHTEIN('a', 'b')"),
    ):
        pass
