"""The lake's tables are those that rules.lake.entities declares, also after it has grown."""

import pytest

from analytics.warehouse import ddl
from analytics.warehouse.ddl import Column, Table, prepare
from tests.sql.conftest import Lake


def test_prepared_twice_changes_nothing(lake: Lake) -> None:
    for warehouse in lake.warehouses:
        prepare(warehouse)
        assert prepare(warehouse) == []


def test_missing_columns_are_added_and_narrow_ones_widened(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = "CREATE TABLE IF NOT EXISTS lake.t (a BIGINT NOT NULL ENCODE AZ64, b BIGINT, c VARCHAR(4))"
    grown = Table(
        "t",
        (Column("a", "BIGINT"), Column("b", "VARCHAR(64)"), Column("c", "VARCHAR(64)"), Column("d", "DATE")),
        "CREATE TABLE IF NOT EXISTS lake.t (a BIGINT, b VARCHAR(64), c VARCHAR(64), d DATE)",
    )
    monkeypatch.setattr(ddl, "declared_tables", lambda: {"t": grown})
    for warehouse in lake.warehouses:
        warehouse.run(["CREATE SCHEMA lake", small, "INSERT INTO lake.t VALUES (1, 2, 'é')"])
        changes = prepare(warehouse)
        assert 'ALTER TABLE lake.t ADD COLUMN "d" DATE' in changes
        assert warehouse.rows("SELECT a, b, c, d FROM lake.t") == [{"a": 1, "b": "2", "c": "é", "d": None}]
        assert prepare(warehouse) == []
