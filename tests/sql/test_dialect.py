"""What is known to fail on Redshift alone is refused here: no engine of the tests would."""

import re

import pytest
import sqlglot
from sqlglot import exp

from analytics.warehouse.models import models
from tests.sql.conftest import Lake
from tests.support.books import TYPES
from tests.support.redshift_rules import RULES, problems
from tests.support.shipped_sql import shipped

PLANTED = [(rule.name, sql) for rule in RULES for sql in rule.planted]


def test_redshift_can_run_what_is_shipped() -> None:
    assert {name: found for name, sql in shipped() if (found := list(problems(sql)))} == {}


@pytest.mark.parametrize(("name", "sql"), PLANTED, ids=[f"{name} {n}" for n, (name, _) in enumerate(PLANTED)])
def test_each_entry_of_the_list_finds_what_breaks_it(name: str, sql: str) -> None:
    assert [each for each in problems(sql) if each.startswith(f"{name}: ")]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_entry_names_its_page_and_a_statement(rule: object) -> None:
    assert re.match(r"https://docs\.aws\.amazon\.com/redshift\S+\.html$|\S+/sql/README\.md$", rule.page)  # type: ignore[attr-defined]
    assert rule.planted  # type: ignore[attr-defined]


def test_the_stand_in_refuses_what_redshift_refuses(lake: Lake) -> None:
    with pytest.raises(Exception, match="runs on the leader alone: substr"):
        lake.redshift.rows("SELECT SUBSTR('abc', 1, 2) AS a")


def test_event_types_are_the_rule_table() -> None:
    tree = sqlglot.parse_one(models()["staging.rule_book"].sql, read="redshift")
    shipped = next(each for each in tree.find_all(exp.CTE) if each.alias == "shipped")
    rows = {
        tuple(each.unalias().name for each in select.expressions[2:5])
        for select in shipped.find_all(exp.Select)
        if select.expressions[1].unalias().name == "event_type"
    }
    assert rows == {(name, str(rule.points), str(rule.cap_points)) for name, rule in TYPES.items()}


def test_all_columns_are_documented() -> None:
    for model in models().values():
        tree = sqlglot.parse_one(model.sql, read="redshift")
        assert getattr(tree, "named_selects", None) == list(model.columns), model.name
        assert all(model.columns.values()), model.name
        assert model.grain.startswith("one row per ")
