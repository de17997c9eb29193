"""Each model gives the same rows on DuckDB and PostgreSQL, however often and in whatever parts it is built."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from analytics.warehouse.build import build
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.models import check, models
from analytics.warehouse.warehouse import Warehouse
from tests.sql.conftest import Lake


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
