"""The lake's tables are those that rules.lake.entities declares, also after it has grown."""

from pathlib import Path

import pytest

from analytics.warehouse import ddl
from analytics.warehouse.ddl import Column, Table, prepare, tables
from analytics.warehouse.merge_sql import LOAD_NUMBER
from rules.lake.entities import ENTITIES, EXTRA, Entity, Type
from tests.sql.conftest import Lake

FAMILIES = {
    Type.TEXT: "varchar",
    Type.INTEGER: "bigint",
    Type.BOOLEAN: "boolean",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}


@pytest.mark.parametrize("entity", ENTITIES.values(), ids=lambda each: each.name)
def test_columns_are_the_declared_fields(entity: Entity) -> None:
    declared = [(each.name, FAMILIES[each.type]) for each in entity.fields]
    extra = [(EXTRA, "varchar"), (LOAD_NUMBER, "bigint")]
    assert [(each.name, each.family) for each in tables()[entity.name].columns] == declared + extra


@pytest.mark.parametrize("entity", ENTITIES.values(), ids=lambda each: each.name)
def test_required_fields_are_never_null_and_keys_are_declared(entity: Entity) -> None:
    sql = tables()[entity.name].sql
    for each in entity.fields:
        (line,) = [
            line for line in sql.splitlines() if line.strip().replace('"', "").startswith(f"{each.name} ")
        ]
        assert ("NOT NULL" in line) == each.required
    assert f"PRIMARY KEY ({', '.join(entity.key)})" in sql


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
    monkeypatch.setattr(ddl, "tables", lambda: {"t": grown})
    for warehouse in lake.warehouses:
        warehouse.run(["CREATE SCHEMA lake", small, "INSERT INTO lake.t VALUES (1, 2, 'é')"])
        changes = prepare(warehouse)
        assert 'ALTER TABLE lake.t ADD COLUMN "d" DATE' in changes
        assert warehouse.rows("SELECT a, b, c, d FROM lake.t") == [{"a": 1, "b": "2", "c": "é", "d": None}]
        assert prepare(warehouse) == []


def test_every_table_has_its_file() -> None:
    names = {path.stem for path in (Path(ddl.SQL) / "ddl").glob("*.sql")}
    assert names == {*ENTITIES, "curation", "builds"}
