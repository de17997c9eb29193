"""The laptop's warehouse against Redshift's manual, row by row: the documented answer, or a refusal with its reason."""

from collections.abc import Iterator
from datetime import date, datetime, time
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlglot import exp
from sqlglot.errors import SqlglotError

from analytics.warehouse.dialect import kinds
from analytics.warehouse.dialect.parser import NotAsRedshift
from analytics.warehouse.duckdb_warehouse import DuckWarehouse, sql_for

REFUSED = "refused"


def rows() -> Iterator[tuple[str, str, str]]:
    page = ""
    for line in Path(__file__).with_name("redshift_manual.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            page = line.strip("[]")
        elif line and not line.startswith("#"):
            asked, _, answer = line.partition(" =>")
            yield page, asked, answer.removeprefix(" ")


ROWS = list(rows())


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with DuckWarehouse(tmp_path_factory.mktemp("manual") / "w.duckdb").reading() as opened:
        yield opened


def written(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


@pytest.mark.parametrize("page", dict.fromkeys(page for page, *_ in ROWS))
def test_it_answers_as_the_manual_says(connection: Any, page: str) -> None:
    for asked, answer in ((asked, answer) for each, asked, answer in ROWS if each == page):
        query = asked if asked.startswith(("SELECT", "WITH")) else f"SELECT {asked} AS answer"
        try:
            found = written(connection.execute(sql_for(connection, query)).fetchall()[0][-1])
        except (duckdb.Error, NotAsRedshift, SqlglotError) as error:
            assert answer.startswith(REFUSED), f"{asked}: {error}"
            assert answer.removeprefix(REFUSED).strip() in str(error), asked
        else:
            assert found == answer, asked


def test_the_table_has_what_analysts_use() -> None:
    assert len({asked for _, asked, _ in ROWS}) >= 300
    assert sum(not answer.startswith(REFUSED) for _, _, answer in ROWS) >= 250


# What follows from the types of columns, and not of literals.
COLUMNS: list[tuple[str, Any]] = [
    ("big / whole", [0, 0]),
    ("money / whole", ["0.7500000000000", "0.5625000000000"]),
    ("whole / money", ["1.33333333333333333", "1.77777777777777777"]),
    ("money / ratio", [3.0, 1.5]),
    ("CASE WHEN whole > 2 THEN whole ELSE 0 END / 3", [0, 1]),
    ("COALESCE(whole, 0) / 3", [0, 1]),
    ("(day - DATE '2026-01-01') / 7", [4, 8]),
    ("TO_CHAR(moment, 'YYYY-MM-DD')", ["2026-01-31", "2026-02-28"]),
    ("TO_CHAR(day, 'DD')", ["31", "28"]),
    ("TRUNC(moment)", ["2026-01-31", "2026-02-28"]),
    ("TRUNC(money)", ["1", "2"]),
    ("EXTRACT(epoch FROM moment - TIMESTAMP '2026-01-31 09:59:00')", [60, 2_419_260]),
    ("whole || note", ["2a", "4b"]),
    ("AVG(whole) OVER (PARTITION BY 1)", [3, 3]),
    ("AVG(money) OVER (PARTITION BY 1)", ["1.87", "1.87"]),
    ("(SELECT MAX(big) FROM marts.t) / 2", [1, 1]),
]


@pytest.fixture(scope="module")
def typed(connection: Any) -> Any:
    connection.execute("CREATE SCHEMA marts")
    connection.execute(
        """CREATE TABLE marts.t AS SELECT * FROM (VALUES
        (1::BIGINT, 2::INTEGER, 1.50::DECIMAL(18, 2), 0.5::DOUBLE, 'a', DATE '2026-01-31', TIMESTAMP '2026-01-31 10:00:00'),
        (3, 4, 2.25, 1.5, 'b', DATE '2026-02-28', TIMESTAMP '2026-02-28 10:00:00')
        ) AS rows (big, whole, money, ratio, note, day, moment)"""
    )
    return connection


@pytest.mark.parametrize(("asked", "answers"), COLUMNS, ids=[each for each, _ in COLUMNS])
def test_types_of_columns_decide(typed: Any, asked: str, answers: list[Any]) -> None:
    for where in ("marts.t", "(SELECT * FROM marts.t) AS t", "w"):
        query = f"WITH w AS (SELECT t.* FROM marts.t AS t) SELECT {asked} FROM {where} ORDER BY day"
        found = [written(row[0]) for row in typed.execute(sql_for(typed, query)).fetchall()]
        assert found == [str(each) for each in answers], where


@pytest.mark.parametrize("moments", list(product(("DATE '2026-01-01'", "day", "moment"), repeat=2)))
def test_moments_are_not_added(typed: Any, moments: tuple[str, str]) -> None:
    with pytest.raises(duckdb.BinderException, match="No function matches"):
        typed.execute(sql_for(typed, f"SELECT {' + '.join(moments)} FROM marts.t"))


@pytest.mark.parametrize("operator", [exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod])
def test_each_two_types_have_a_type_together(operator: type[exp.Expr]) -> None:
    every = {each for each in vars(kinds).values() if isinstance(each, kinds.Kind)}
    assert len(every) >= 14
    for one, other in product({*every, kinds.decimal(12, 2)}, repeat=2):
        assert isinstance(kinds.arithmetic(operator, one, other), kinds.Kind)


def test_a_type_that_is_not_known_is_asked_for(typed: Any) -> None:
    with pytest.raises(NotAsRedshift, match=r"the type of nope is not known here"):
        sql_for(typed, "SELECT whole / nope FROM marts.t")


def test_columns_are_called_as_redshift_calls_them(typed: Any) -> None:
    query = (
        "SELECT MAX(whole), COUNT(*), SUM(whole) + 1, MAX(day)::TIMESTAMP, SUM(whole) AS total FROM marts.t"
    )
    told = typed.execute(sql_for(typed, query)).description
    assert [name for name, *_ in told] == ["max", "count", "?column?", "max", "total"]
    assert typed.execute(
        sql_for(typed, "SELECT a.max FROM (SELECT MAX(whole) FROM marts.t) AS a")
    ).fetchall() == [(4,)]


def test_names_of_columns_have_small_letters_as_redshift_writes_them(typed: Any) -> None:
    query = 'SELECT COUNT(*) AS Total, MAX(T.Whole) AS "Most", 1 AS ÉTÉ FROM Marts.T AS T'
    told = typed.execute(sql_for(typed, query))
    assert [name for name, *_ in told.description] == ["total", "most", "ÉtÉ"]
    assert told.fetchall() == [(2, 4, 1)]
