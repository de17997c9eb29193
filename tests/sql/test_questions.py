"""The questions of sql/README.md: each query runs on both engines, with the same answer."""

import re
from decimal import Decimal
from typing import Any

import pytest

from analytics.warehouse.ddl import SQL
from analytics.warehouse.models import models
from tests.sql.conftest import Lake
from tests.sql.test_dialect import problems

README = (SQL / "README.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"\*\*(\d+)\. [^*]+\*\*\n\n```sql\n(.*?)```", README, re.DOTALL)


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """An average has as many decimals as its engine likes."""
    return {name: float(value) if isinstance(value, Decimal) else value for name, value in row.items()}


def test_there_are_ten() -> None:
    assert [number for number, _ in QUESTIONS] == [str(number) for number in range(1, 11)]


@pytest.mark.parametrize("sql", [sql for _, sql in QUESTIONS], ids=[number for number, _ in QUESTIONS])
def test_answers(told: Lake, sql: str) -> None:
    assert list(problems(sql)) == []
    duck, redshift = ([plain(row) for row in warehouse.rows(sql)] for warehouse in told.warehouses)
    assert duck
    assert duck == redshift


def test_every_model_is_listed() -> None:
    for name in models():
        assert f"`{name}`" in README or name.startswith("staging."), name
