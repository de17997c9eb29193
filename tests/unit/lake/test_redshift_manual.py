"""The laptop's warehouse against Redshift's manual, row by row: the documented answer, or a refusal with its reason."""

from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from analytics.warehouse.dialect.refusal import NotAsRedshift
from analytics.warehouse.duckdb_warehouse import DuckWarehouse, translated

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


@pytest.mark.parametrize(
    ("page", "asked", "answer"), ROWS, ids=[f"{page} {asked}" for page, asked, _ in ROWS]
)
def test_it_answers_as_the_manual_says(connection: Any, page: str, asked: str, answer: str) -> None:
    query = asked if asked.startswith(("SELECT", "WITH")) else f"SELECT {asked} AS answer"
    try:
        found = written(connection.execute(translated(connection, query)).fetchall()[0][-1])
    except (duckdb.Error, NotAsRedshift) as error:
        assert answer.startswith(REFUSED), f"{page}: {error}"
        assert answer.removeprefix(REFUSED).strip() in str(error)
    else:
        assert found == answer, page


def test_the_table_has_what_analysts_use() -> None:
    assert len({asked for _, asked, _ in ROWS}) >= 300
    assert sum(not answer.startswith(REFUSED) for _, _, answer in ROWS) >= 250
