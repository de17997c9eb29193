"""What `streakline smoke` asks of a workgroup: our engines agree, and a wrong answer is named."""

from dataclasses import replace

import pytest

from local.smoke.redshift_assumptions import ASSUMPTIONS, GUIDE, check_assumptions
from tests.sql.conftest import Lake
from tests.support.redshift_rules import problems


@pytest.mark.parametrize("assumption", ASSUMPTIONS, ids=lambda assumption: assumption.name)
def test_it_is_redshift_s_sql_and_says_where_it_is_written(assumption: object) -> None:
    assert list(problems(assumption.sql)) == []  # type: ignore[attr-defined]
    assert f"{GUIDE}{assumption.page}".endswith(".html")  # type: ignore[attr-defined]


def test_they_hold_through_the_data_api(told: Lake) -> None:
    held, others = check_assumptions(told.redshift)
    assert others == {}
    assert held == [assumption.name for assumption in ASSUMPTIONS]


def test_on_a_laptop_those_hold_that_duckdb_can_settle(told: Lake) -> None:
    held, others = check_assumptions(told.duck)
    assert others == {}
    assert held == [assumption.name for assumption in ASSUMPTIONS if assumption.not_on_duckdb is None]


def test_an_answer_that_is_not_as_documented_is_named(told: Lake) -> None:
    wrong = replace(ASSUMPTIONS[0], answer="nothing of the kind")
    unknown = replace(ASSUMPTIONS[1], sql="SELECT NO_SUCH_FUNCTION(1) AS v")
    held, others = check_assumptions(told.redshift, [wrong, unknown, ASSUMPTIONS[4]])
    assert held == [ASSUMPTIONS[4].name]
    assert others[wrong.name] == f"{ASSUMPTIONS[0].answer}, not nothing of the kind"
    assert "no_such_function" in others[unknown.name].lower()
