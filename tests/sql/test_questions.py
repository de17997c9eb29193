"""The questions of sql/README.md are SQL of Redshift. test_analyst.py asks them of each engine."""

import re
from datetime import timedelta

from analytics.warehouse.ddl import SQL
from analytics.warehouse.models import models
from tests.sql.conftest import Lake
from tests.support.redshift_rules import problems

README = (SQL / "README.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"\*\*(\d+)\. [^*]+\*\*\n\n```sql\n(.*?)```", README, re.DOTALL)


def test_there_are_ten() -> None:
    assert [number for number, _ in QUESTIONS] == [str(number) for number in range(1, 11)]
    assert [found for _, sql in QUESTIONS for found in problems(sql)] == []


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
