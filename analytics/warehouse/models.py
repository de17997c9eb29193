"""Reads the warehouse's models, which are declared in sql/models, and runs their tests. build.py builds them.

A model has two files. sql/models/{folder}/NAME.sql has one SELECT in Redshift's SQL; the folders of a part's
models are in the part's folder of sql/models. NAME.yml beside it has the fields of `Model` from `grain` on,
which are explained there. The model of an entity of the lake has no NAME.sql. Its NAME.yml names the entity,
and SELECT, key and columns follow from the entity's declaration (sql/lake.md lists them).
A name in braces, such as `{campaign_grace_days}`, stands for a setting. When it changes, the model is built
anew.

A view is not stored. A table is built anew whenever a table that it reads has changed. An incremental model
takes new rows in one of two ways:

- By load number: it has a column load_number. Each row depends on rows of the lake, and load_number is the
  newest load that brought any of these. Rows of later loads replace those with the same key.
- By date: it has by_date. All rows of the dates that later loads have touched are built anew. A row may also
  be for a week or a month (`periods`). The rows of a period must depend only on the lake's rows of its dates,
  by the time that places them in the lake; `window` and `around` add further dates.

Each test becomes a query for the rows that break it. A night tests the rows that have come since the tests
last succeeded (`Scope`). Once a week it tests all rows, and runs the `sql` tests.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import sqlglot
import yaml
from sqlglot import exp

from adapters.settings.choices import MODEL_SETTINGS, ModelSettings
from analytics.warehouse.ddl import LOAD_NUMBER, SQL
from analytics.warehouse.statements import literal
from analytics.warehouse.translate import REDSHIFT
from analytics.warehouse.warehouse import Warehouse
from rules.lake.entities import LOADED, loaded_entities
from rules.lake.schema import Entity, Field, StagedColumn
from rules.parts import ALL_PARTS, Part

LOAD_NUMBER_DOC = "the newest load that brought this row, or a row that it is made of"
FOLDERS = ("staging", "facts", "dimensions", "marts")
MATERIALIZED = ("view", "table", "incremental")
BY_OCCURRED = "occurred"  # reads_by: each table of the lake by the column that places its rows
_PLACEHOLDER = re.compile(r"\{\w+\}")


class ModelError(ValueError):
    """A model's files are wrong. The message has the model's name and the fault."""


@dataclass(frozen=True, slots=True)
class Model:
    """One table or view. Fields from `grain` on are those of NAME.yml."""

    name: str
    sql: str
    reads: frozenset[str]  # the tables and models that it selects from, as schema.name
    grain: str  # what a row is, as a sentence
    key: tuple[str, ...]  # the columns that identify a row: never NULL, and unique together
    materialized: str  # one of MATERIALIZED
    columns: Mapping[str, str]  # name: description
    # Further tests: not_null: [columns]; unique: [columns]; accepted_values: {column: [values]};
    # relationships: {column: schema.table.column}; expression: [conditions that hold for each row];
    # sql: {name: a query that must find no row}
    tests: Mapping[str, Any] = field(default_factory=dict)
    tested_in: str | None = None  # of a view: the model that has the same rows; a night tests them there
    whole: str = ""  # why a table is not incremental
    left_out: Mapping[str, str] = field(default_factory=dict)  # of facts: column of staging: why it is absent
    dist: str | None = None  # the column by which Redshift spreads the rows over its nodes
    sort: tuple[str, ...] = ()  # the columns by which Redshift sorts the rows
    # table: the column whose date places the table's rows; then only touched dates of the table are read
    reads_by: Mapping[str, str] = field(default_factory=dict)
    # By load number. newest_by: the column with a row's version, if rows are the newest of many versions: a
    # row never replaces one with a greater version. placed_by: the column whose date places a row in the
    # lake; then the rows to replace are searched only in touched dates.
    newest_by: str | None = None
    placed_by: str | None = None
    # By date. by_date: the column with a row's date, for a week its Monday, for a month its first date.
    by_date: str | None = None
    periods: tuple[str, ...] = ("day",)  # the periods that rows are for: day, week, month
    window: int = 0  # a period also depends on so many dates before it
    around: int = 0  # a period also depends on so many dates before and after it
    # A query for further dates (`dt`). `{events}` in it is the newest load of lake.events that the model has.
    also_touched: str = ""


_DECLARED = {model_field.name for model_field in fields(Model)} - {"name", "sql", "reads"}


def models(
    settings: ModelSettings = MODEL_SETTINGS, deployed: Collection[Part] = ALL_PARTS
) -> dict[str, Model]:
    """Return all models by name, each after those that it reads. Raises ModelError.

    settings: the deployment's. deployed: the parts that a deployment has; there is no
    model that needs rows of another one.
    """
    if not ALL_PARTS - {*deployed}:
        return _models(settings)
    lacking = {f"lake.{name}" for name in LOADED.keys() - loaded_entities(deployed).keys()}
    kept: dict[str, Model] = {}
    for model in _models(settings).values():
        smaller = _without_tables(model, lacking) if model.reads & lacking else model
        if smaller:
            kept[model.name] = smaller
        else:
            lacking.add(model.name)
    return kept


def _without_tables(model: Model, lacking: Collection[str]) -> Model | None:
    """Return a model without those of its united SELECTs that read some tables; None if none is left."""
    branches = [branch.sql(REDSHIFT) for branch in _branches(sqlglot.parse_one(model.sql, read=REDSHIFT))]
    kept = [branch for branch in branches if not _tables(branch) & {*lacking}]
    if not kept:
        return None
    sql = " UNION ALL ".join(kept)
    reads_by = {table: column for table, column in model.reads_by.items() if table not in lacking}
    return replace(model, sql=sql, reads=_tables(sql), reads_by=reads_by)


def _branches(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the SELECTs that a query unites."""
    if isinstance(tree, exp.Union):
        yield from _branches(tree.left)
        yield from _branches(tree.right)
    else:
        yield tree


@cache  # the default and the same settings are one entry here
def _models(settings: ModelSettings) -> dict[str, Model]:
    by_name = {}
    for schema in FOLDERS:
        for path in sorted((SQL / "models").rglob(f"{schema}/*.yml"), key=lambda path: path.name):
            model = _read_model(f"{schema}.{path.stem}", path, settings)
            by_name[model.name] = model
    order = TopologicalSorter({model.name: model.reads & by_name.keys() for model in by_name.values()})
    ordered = {name: by_name[name] for name in order.static_order()}
    for model in ordered.values():
        _check_sources(model, ordered)
    return ordered


def _read_model(name: str, path: Path, settings: ModelSettings) -> Model:
    about = yaml.safe_load(path.read_text(encoding="utf-8"))  # the fields of NAME.yml
    if entity := LOADED.get(about.pop("entity", "")):
        sql, about = staging_sql(entity), staging_about(entity) | about
    else:
        text = path.with_suffix(".sql").read_text(encoding="utf-8")
        for setting, value in settings:
            text = text.replace(f"{{{setting}}}", str(value))
        sql = text.strip().rstrip(";")
    if unknown := about.keys() - _DECLARED:
        raise ModelError(f"{name}: unknown {sorted(unknown)}")
    if about["materialized"] not in MATERIALIZED:
        raise ModelError(f"{name}: materialized is one of {MATERIALIZED}")
    if (about["materialized"] == "table") != bool(about.get("whole")):
        raise ModelError(f"{name}: a table says below `whole` why it is not incremental")
    reads = _tables(sql) | _tables(_PLACEHOLDER.sub("0", about.get("also_touched", "")))
    if about.get("reads_by") == BY_OCCURRED:
        about["reads_by"] = {
            f"lake.{name}": entity.occurred for name, entity in LOADED.items() if f"lake.{name}" in reads
        }
    declared: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in about.items()
    }
    return Model(name=name, sql=sql, reads=reads, **declared)


def _tables(sql: str) -> frozenset[str]:
    """Return the tables and models that a query selects from, as schema.name."""
    if not sql:
        return frozenset()
    tree = sqlglot.parse_one(sql, read=REDSHIFT)
    return frozenset(f"{table.db}.{table.name}" for table in tree.find_all(exp.Table) if table.db)


def _check_sources(model: Model, models: Mapping[str, Model]) -> None:
    for source in model.reads:
        if source.partition(".")[0] in FOLDERS and source not in models:
            raise ModelError(f"{model.name} reads {source}, which is no model")
    if unread := model.reads_by.keys() - model.reads:
        raise ModelError(f"{model.name}: reads_by names {sorted(unread)}, which it does not read")
    if unknown := {model.by_date, model.placed_by, model.newest_by} - {None, *model.columns}:
        raise ModelError(f"{model.name} has no column {sorted(map(str, unknown))}")
    if model.materialized == "incremental" and not model.by_date and len(entities_of(model, models)) != 1:
        # Each lake table counts its own load numbers, so those of two tables cannot be compared.
        raise ModelError(f"{model.name} goes by load numbers, so it must follow from one lake table")


def staged_columns(field: Field) -> Iterator[StagedColumn]:
    """Yield the columns that a staging model has in a field's place. Mostly this is the field unchanged."""
    unchanged = f"COALESCE({field.name}, {field.default})" if field.default else field.name
    for column in field.staged or (StagedColumn(field.name),):
        yield StagedColumn(column.name, column.sql or unchanged, column.doc or field.doc)


def columns_of(entity: Entity) -> list[StagedColumn]:
    """Return a staging model's columns, in order: those of the fields, and load_number."""
    columns = [column for field in entity.fields for column in staged_columns(field)]
    return [*columns, StagedColumn(LOAD_NUMBER, LOAD_NUMBER, LOAD_NUMBER_DOC)]


def staging_sql(entity: Entity) -> str:
    """Return a staging model's SELECT. Of rows that are versions of one thing, it has the newest."""
    select_list = ",\n".join(
        f"    {column.sql}" if column.sql == column.name else f"    {column.sql} AS {column.name}"
        for column in columns_of(entity)
    )
    if not entity.newest_of:
        return f"SELECT\n{select_list}\nFROM lake.{entity.name}"
    thing = ", ".join(f"v.{name}" for name in entity.newest_of)
    return f"""SELECT
{select_list}
FROM (
    SELECT
        v.*,
        ROW_NUMBER() OVER (PARTITION BY {thing} ORDER BY v.version DESC) AS place
    FROM lake.{entity.name} AS v
) AS versions
WHERE place = 1"""  # noqa: S608


def staging_about(entity: Entity) -> dict[str, Any]:
    """Return those fields of a staging model's NAME.yml that follow from the entity's declaration."""
    key = [next(staged_columns(entity.field(name))).name for name in entity.newest_of or entity.key]
    columns = {column.name: column.doc for column in columns_of(entity)}
    return {"key": key, "materialized": "view", "columns": columns}


def ancestors(model: Model, models: Mapping[str, Model]) -> list[Model]:
    """Return the models that a model is made from, directly or not, sorted by name."""
    by_name: dict[str, Model] = {}
    waiting = [models[name] for name in model.reads if name in models]
    while waiting:
        ancestor = waiting.pop()
        if ancestor.name not in by_name:
            by_name[ancestor.name] = ancestor
            waiting += [models[name] for name in ancestor.reads if name in models]
    return [by_name[name] for name in sorted(by_name)]


def entities_of(model: Model, models: Mapping[str, Model]) -> set[str]:
    """Return the lake tables that a model reads, directly or through other models, without `lake.`."""
    family: Sequence[Model] = [model, *ancestors(model, models)]
    reads = {name for member in family for name in member.reads}
    return {name.removeprefix("lake.") for name in reads if name.startswith("lake.")}


def fingerprint(model: Model, models: Mapping[str, Model]) -> str:
    """Return a digest of the SQL of a model and of all models that it reads, directly or not."""
    family = [model, *ancestors(model, models)]
    text = "\n".join(
        f"{member.name} {member.dist} {member.sort} {member.by_date} {member.periods} {member.window} "
        f"{member.around} {member.sql}"
        for member in family
    )
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that failed."""

    model: str
    test: str
    rows: int  # the number of rows that break it


@dataclass(frozen=True, slots=True)
class Scope:
    """The rows that are tested."""

    rows: str = ""  # a condition of the tested rows; "": all rows are tested
    # A condition that holds for every row with the same key as a tested one; "": such a row may be anywhere.
    near: str = ""


ALL = Scope()


def check(warehouse: Warehouse) -> list[Failure]:
    """Run the tests of all models. Returns those that failed. Raises ModelError, StatementFailed."""
    with warehouse.kept_open():
        return [failure for model in models().values() for failure in check_model(warehouse, model)]


def check_model(warehouse: Warehouse, model: Model, scope: Scope = ALL) -> list[Failure]:
    """Run a model's tests in one query. Returns those that failed. Raises ModelError, StatementFailed."""
    tests = dict(queries_of_tests(model, scope))
    counts = " UNION ALL ".join(
        f"SELECT {literal(name)} AS test, COUNT(*) AS broken FROM ({query}) AS found"  # noqa: S608 (our own SQL)
        for name, query in tests.items()
    )
    failed = warehouse.rows(f"SELECT test, broken FROM ({counts}) AS tests WHERE broken > 0 ORDER BY test")  # noqa: S608
    return [Failure(model.name, row["test"], int(row["broken"])) for row in failed]


def queries_of_tests(model: Model, scope: Scope = ALL) -> Iterator[tuple[str, str]]:
    """Yield the name and the query of each test."""
    declared: dict[str, Any] = dict(model.tests)
    rows = f"(SELECT * FROM {model.name} WHERE {scope.rows}) AS rows_of_it" if scope.rows else model.name  # noqa: S608
    yield _unique(model.name, list(model.key), scope)
    for column in dict.fromkeys([*model.key, *declared.pop("not_null", [])]):
        yield f"not_null {column}", _where(rows, f'"{column}" IS NULL')
    if columns := declared.pop("unique", []):
        yield _unique(model.name, columns, scope)
    for column, values in declared.pop("accepted_values", {}).items():
        listed = ", ".join(literal(value) for value in values)
        yield f"accepted_values {column}", _where(rows, f'"{column}" NOT IN ({listed})')
    for column, target in declared.pop("relationships", {}).items():
        yield f"relationships {column}", _orphans(model.name, column, target, scope.rows)
    for condition in declared.pop("expression", []):
        # A row for which the condition is NULL breaks the test.
        yield f"expression {condition}", _where(rows, f"CASE WHEN {condition} THEN 0 ELSE 1 END = 1")
    for name, query in declared.pop("sql", {}).items():
        if not scope.rows:
            yield f"sql {name}", query
    if declared:
        raise ModelError(f"{model.name}: unknown tests {sorted(declared)}")


def _where(table: str, condition: str) -> str:
    return f"SELECT 1 AS broken FROM {table} WHERE {condition}"  # noqa: S608


def _unique(table: str, columns: list[str], scope: Scope) -> tuple[str, str]:
    """Return the test that no two rows have one key. It tests the rows with the key of a row in the scope."""
    names = ", ".join(f'"{column}"' for column in columns)
    rows = table
    if scope.rows:
        same = " AND ".join(f'every."{column}" = touched."{column}"' for column in columns)
        every = ", ".join(f'every."{column}"' for column in columns)
        near = f"(SELECT {names} FROM {table} WHERE {scope.near})" if scope.near else table  # noqa: S608
        rows = (
            f"(SELECT {every} FROM {near} AS every INNER JOIN "  # noqa: S608
            f"(SELECT DISTINCT {names} FROM {table} WHERE {scope.rows}) AS touched ON {same}) AS rows_of_it"
        )
    query = f"SELECT {names} FROM {rows} GROUP BY {names} HAVING COUNT(*) > 1"  # noqa: S608
    return f"unique {', '.join(columns)}", query


def _orphans(table: str, column: str, target: str, scope: str) -> str:
    """Return the query for the rows in a scope whose value is not in the target's column."""
    other, _, other_column = target.rpartition(".")
    return (
        f'SELECT 1 AS broken FROM (SELECT "{column}" FROM {table}{f" WHERE {scope}" if scope else ""}) '  # noqa: S608
        f"AS child LEFT JOIN {other} AS parent "
        f'ON child."{column}" = parent."{other_column}" '
        f'WHERE child."{column}" IS NOT NULL AND parent."{other_column}" IS NULL'
    )
