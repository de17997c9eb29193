"""A field of the lake reaches the warehouse: table, staging, facts. Whoever forgets one is told which file."""

from pathlib import Path

import pytest
import sqlglot
import yaml

from analytics.generated_models import generated_files
from analytics.warehouse.ddl import LOAD_NUMBER, SQL, declared_tables
from analytics.warehouse.models import models
from rules.lake.entities import EXTRA, LOADED, Entity
from tests.support.redshift_rules import layout_keys

GENERATED = dict(generated_files())
STAGED = {
    path.stem: about["entity"]
    for path in sorted((SQL / "models").rglob("staging/*.yml"))
    if "entity" in (about := yaml.safe_load(path.read_text(encoding="utf-8")))
}


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_follows_from_a_declaration_is_up_to_date(path: Path) -> None:
    stale = path.read_text(encoding="utf-8") != GENERATED[path]
    assert not stale, f"sql/{path.relative_to(SQL)} is stale: run `make models`"


@pytest.mark.parametrize(
    "path", [path for path in GENERATED if path.parent.name == "marts"], ids=lambda path: path.stem
)
def test_a_generated_mart_s_yml_names_its_columns(path: Path) -> None:
    made = sqlglot.parse_one(GENERATED[path], read="redshift", into=sqlglot.exp.Select).named_selects
    named = [*models()[f"marts.{path.stem}"].columns]
    assert made == named, f"sql/{path.relative_to(SQL).with_suffix('.yml')} names other columns"


@pytest.mark.parametrize("entity", LOADED.values(), ids=lambda entity: entity.name)
def test_a_table_is_what_its_entity_declares(entity: Entity) -> None:
    table = declared_tables()[entity.name]
    tree = sqlglot.parse_one(table.sql, read="redshift")
    found = {each.name: each.sql(dialect="redshift") for each in tree.find_all(sqlglot.exp.ColumnDef)}
    assert [*found] == [*(each.name for each in entity.fields), EXTRA, LOAD_NUMBER]
    for each in entity.fields:
        assert ("NOT NULL" in found[each.name]) == each.required
    assert layout_keys(table.sql) == {entity.occurred, *([entity.spread] if entity.spread else [])}


def test_a_table_s_statement() -> None:
    """By an example: its types, its sizes, and how Redshift compresses, spreads and sorts it."""
    assert declared_tables()["user_goals"].sql == (
        'CREATE TABLE IF NOT EXISTS lake.user_goals ("user_id" VARCHAR(256) NOT NULL ENCODE ZSTD, '
        '"version" BIGINT NOT NULL ENCODE AZ64, "folded_at" TIMESTAMP NOT NULL ENCODE RAW, '
        '"streaks" VARCHAR(65535) ENCODE ZSTD, "achievements" VARCHAR(65535) ENCODE ZSTD, '
        '"extra" VARCHAR(65535) ENCODE ZSTD, "load_number" BIGINT NOT NULL ENCODE AZ64, '
        "PRIMARY KEY (user_id, version)) DISTSTYLE KEY DISTKEY (user_id) COMPOUND SORTKEY (folded_at)"
    )


def test_every_entity_is_staged() -> None:
    assert sorted(STAGED.values()) == sorted(LOADED), "sql/models/staging: one .yml an entity"


def test_every_select_has_its_yml() -> None:
    lacking = [path.name for path in (SQL / "models").rglob("*.sql") if not path.with_suffix(".yml").exists()]
    assert not lacking, "a model without a .yml is not built"


@pytest.mark.parametrize("name", [name for name in STAGED if f"facts.{name}" in models()])
def test_facts_have_every_staged_column_or_say_why_not(name: str) -> None:
    facts = models()[f"facts.{name}"]
    staged = set(models()[f"staging.{name}"].columns)
    missing = staged - set(facts.columns) - set(facts.left_out)
    assert not missing, (
        f"sql/models/facts/{name}.sql and .yml lack {sorted(missing)}: add them, or name them under left_out"
    )
    assert set(facts.left_out) <= staged - set(facts.columns), (
        f"sql/models/facts/{name}.yml: left_out is stale"
    )
