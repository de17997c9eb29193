"""Each model gives the same rows on DuckDB and PostgreSQL, however often and in whatever parts it is built."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analytics.warehouse.build import Builder, ModelBuild, build
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.models import ALL, Scope, check, check_model, models
from analytics.warehouse.warehouse import Warehouse
from rules.lake.entities import LOADED
from tests.sql.conftest import Lake
from tests.support.effort import only_soak


def rows(warehouse: Warehouse, name: str) -> list[dict[str, Any]]:
    key = ", ".join(f'"{column}"' for column in models()[name].key)
    return warehouse.rows(f"SELECT * FROM {name} ORDER BY {key}")


@pytest.mark.parametrize("name", models())
def test_same_rows_on_both_engines(told: Lake, name: str) -> None:
    duck, redshift = (rows(warehouse, name) for warehouse in told.warehouses)
    assert duck
    assert duck == redshift
    assert list(duck[0]) == list(models()[name].columns)


def test_tests_hold(told: Lake) -> None:
    for warehouse in told.warehouses:
        assert check(warehouse) == []


def scopes_of(warehouse: Warehouse) -> dict[str, Scope | None]:
    """Of each model what the second load has brought."""
    builder = Builder.read(warehouse)
    builder.last_builds = replace_all(builder.last_builds, tested=dict.fromkeys(LOADED, 1))
    return {name: builder.scope(model) for name, model in models().items()}


def test_tests_look_at_what_came(told: Lake) -> None:
    """By load number, or by date."""
    scopes = scopes_of(told.redshift)
    assert scopes["facts.profiles"] == Scope("load_number > 1")
    assert str(scopes["facts.events"]).startswith('Scope(rows=\'load_number > 1 AND (("occurred_at" >= ')
    totals = scopes["facts.activity_totals"]
    assert totals
    assert totals.rows.startswith('("activity_date" >= DATE ')
    assert totals.near == totals.rows
    assert scopes["marts.retention_cohorts"] == ALL
    untested = sorted(name for name, scope in scopes.items() if scope is None)
    of_the_book = ["dimensions.event_type_versions", "staging.rule_book", "staging.rules"]  # came once
    assert untested == sorted([*of_the_book, "staging.profiles"])


@only_soak(
    "tests/sql/test_models.py test_tests_look_at_what_came and test_tests_hold; "
    "the nights of tests/sql/test_forgetting.py test what came on DuckDB"
)
def test_tests_of_what_came_hold_too(told: Lake) -> None:
    warehouse = told.redshift
    for name, scope in scopes_of(warehouse).items():
        assert check_model(warehouse, models()[name], scope or ALL) == []


def replace_all(built: Mapping[str, ModelBuild], **more: Any) -> dict[str, ModelBuild]:
    return {name: replace(each, **more) for name, each in built.items()}


def test_built_in_parts_is_built_at_once(told: Lake, tmp_path: Path) -> None:
    """And built again, without anything new, it stays as it is."""
    shutil.copy(told.duck.path, tmp_path / "copy.duckdb")
    copy = DuckWarehouse(tmp_path / "copy.duckdb")
    made = [name for name, model in models().items() if model.materialized != "view"]
    with copy.kept_open():
        in_parts = {name: rows(copy, name) for name in made}
        for full in (False, True):
            build(copy, full=full)
            assert in_parts == {name: rows(copy, name) for name in made}


def test_only_what_changed_is_taken(told: Lake, tmp_path: Path) -> None:
    """An incremental model is not made anew: rows that nothing was loaded for are left alone."""
    shutil.copy(told.duck.path, tmp_path / "copy.duckdb")
    copy = DuckWarehouse(tmp_path / "copy.duckdb")
    copy.run(["UPDATE facts.events SET points_awarded = 12345 WHERE load_number = 1"])
    build(copy, only=["facts.events"])
    marked = "SELECT COUNT(*) AS n FROM facts.events WHERE points_awarded = 12345"
    assert copy.rows(marked)[0]["n"] > 0
    copy.run(["DELETE FROM lake.builds"])  # as if its SQL had changed
    build(copy, only=["facts.events"])
    assert copy.rows(marked) == [{"n": 0}]
