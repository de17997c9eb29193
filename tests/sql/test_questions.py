"""The questions of sql/README.md: each query runs on both engines, with the same answer."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from analytics.warehouse.ddl import SQL
from analytics.warehouse.models import models
from tests.sql.conftest import Lake
from tests.support.redshift_rules import problems

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


STREAKS_AT = "SELECT COUNT(*) AS n FROM dimensions.users WHERE current_streak > 0 AND lapses_at > {}"


def test_a_streak_that_has_lapsed_is_not_one_of_today(told: Lake) -> None:
    """Nothing is written when a streak lapses, so the query asks for the instant."""
    for warehouse in told.warehouses:
        (newest,) = warehouse.rows("SELECT MAX(lapses_at) AS at FROM dimensions.users")
        before, after = (
            warehouse.rows(STREAKS_AT.format(f"TIMESTAMP '{at}'"))[0]["n"]
            for at in (newest["at"] - timedelta(seconds=1), newest["at"])
        )
        kept = warehouse.rows("SELECT COUNT(*) AS n FROM dimensions.users WHERE current_streak > 0")[0]["n"]
        assert kept >= before > after == 0
        assert warehouse.rows(STREAKS_AT.format("GETDATE()"))[0]["n"] in (0, before)


def test_every_model_is_listed() -> None:
    for name in models():
        assert f"`{name}`" in README or name.startswith("staging."), name
