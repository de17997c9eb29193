"""A field of the lake reaches the warehouse: table, staging, facts. Whoever forgets one is told which file."""

from pathlib import Path

import pytest

from analytics.generated_models import generated
from analytics.warehouse.ddl import SQL, declared_tables
from analytics.warehouse.merge_sql import LOAD_NUMBER
from analytics.warehouse.models import models
from analytics.warehouse.staging_sql import STAGING, columns_of
from rules.lake.entities import EXTRA, LOADED, Entity, Type
from rules.lake.schema import BYTES_MAX

FAMILIES = {
    Type.TEXT: "varchar",
    Type.INTEGER: "bigint",
    Type.BOOLEAN: "boolean",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}
GENERATED = dict(generated())


def by_name(entity: Entity) -> str:
    return entity.name


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_follows_from_a_declaration_is_up_to_date(path: Path) -> None:
    stale = path.read_text(encoding="utf-8") != GENERATED[path]
    assert not stale, f"sql/{path.relative_to(SQL)} is stale: run `make models`"


@pytest.mark.parametrize("entity", LOADED.values(), ids=by_name)
def test_the_table_has_the_declared_fields(entity: Entity) -> None:
    declared = {each.name: FAMILIES[each.type] for each in entity.fields}
    expected = [*declared.items(), (EXTRA, "varchar"), (LOAD_NUMBER, "bigint")]
    found = [(each.name, each.family) for each in declared_tables()[entity.name].columns]
    assert found == expected, f"sql/ddl/{entity.name}.sql: its columns are not the fields of {entity.name}"


@pytest.mark.parametrize("entity", LOADED.values(), ids=by_name)
def test_a_text_has_the_size_of_its_column(entity: Entity) -> None:
    """Curation refuses what is longer, and COPY would fail."""
    sizes = {each.name: each.size_max for each in declared_tables()[entity.name].columns}
    declared = {each.name: each.bytes_max for each in entity.fields if each.type is Type.TEXT}
    assert declared == {name: sizes[name] for name in declared}, f"bytes_max of {entity.name}'s fields"
    assert sizes[EXTRA] == BYTES_MAX


@pytest.mark.parametrize("entity", LOADED.values(), ids=by_name)
def test_required_fields_are_never_null_and_keys_are_declared(entity: Entity) -> None:
    file, sql = f"sql/ddl/{entity.name}.sql", declared_tables()[entity.name].sql
    lines = {line.split()[0].strip('"'): line for line in sql.splitlines() if line.startswith("    ")}
    for each in entity.fields:
        assert each.name in lines, f"{file} has no column {each.name}"
        assert ("NOT NULL" in lines[each.name]) == each.required, f"{file}: NOT NULL of {each.name}"
    assert f"PRIMARY KEY ({', '.join(entity.key)})" in sql, f"{file}: the primary key"


def test_every_table_has_its_file() -> None:
    names = {path.stem for path in (SQL / "ddl").glob("*.sql")}
    assert names == {*LOADED, "curation", "builds", "loads"}, "sql/ddl: one file an entity"


def test_every_entity_is_staged() -> None:
    staged = {each.entity for each in STAGING.values()}
    assert staged == set(LOADED), "analytics/warehouse/staging_sql.py: one staging model an entity"


@pytest.mark.parametrize("name", [name for name in STAGING if f"facts.{name}" in models()])
def test_facts_have_every_staged_column_or_say_why_not(name: str) -> None:
    facts = models()[f"facts.{name}"]
    staged = {each.column for each in columns_of(STAGING[name])}
    missing = staged - set(facts.columns) - set(facts.left_out)
    assert not missing, (
        f"sql/models/facts/{name}.sql and .yml lack {sorted(missing)}: add them, or name them under left_out"
    )
    assert set(facts.left_out) <= staged - set(facts.columns), (
        f"sql/models/facts/{name}.yml: left_out is stale"
    )
