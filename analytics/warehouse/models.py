"""The warehouse's models: sql/models/{folder}/NAME.sql has one SELECT in Redshift's SQL.

The model of an entity of the lake has no such file: NAME.yml names the entity, and SELECT, key and columns
follow from its declaration (sql/lake.md lists them).

NAME.yml beside it has: grain (a sentence), key (columns), materialized (view, table or incremental), dist and
sort (columns by which Redshift spreads and sorts the rows), columns (name: what it says), left_out (of facts:
which columns of staging are not here, and why), tests.
An incremental model takes over what is new in one of two ways:
- It has a column load_number: the newest load that brought any of the rows that a row is made of. Rows of
  later loads replace those with the same key. newest_by names a column if rows are the newest of many
  versions: a row never replaces one in which that column is greater. placed_by names the column whose date
  places a row in the lake: only touched dates are then searched for the rows that are replaced.
- by_date names its column with a date. All rows of the dates that later loads have touched are made anew.
  periods: [day], or more of day, week and month, if rows are of a week (and have its Monday) or of a month
  (and have its first date). Its rows of a date (or week, or month) must follow from the lake's rows of that
  date alone, by the time that places them in the lake; with `window: 30` also of the 30 dates before it.
  also_touched is a query for further dates (`dt`): `{events}` in it is the newest load of lake.events that
  the model has.
reads_by names the column by which the rows of a table that a model reads are placed: `{table: column}`. Only
the touched dates of that table are then read. With `around: 2` a row also follows from the 2 dates before and
after its own.
A table is made anew whenever anything that it reads has changed. `whole` says why it cannot be incremental.

`{campaign_grace_days}` in a SELECT is the setting: a model that has it is built anew when it changes.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import sqlglot
import yaml
from sqlglot import exp

from analytics.warehouse.ddl import LOAD_NUMBER, SQL
from analytics.warehouse.statements import literal
from analytics.warehouse.translate import REDSHIFT
from analytics.warehouse.warehouse import Warehouse
from rules.lake.entities import LOADED
from rules.lake.schema import Entity, Field, StagedColumn
from rules.leads.features import CAMPAIGN_GRACE_DAYS

LOAD_NUMBER_DOC = "the newest load that brought this row, or a row that it is made of"
FOLDERS = ("staging", "facts", "dimensions", "marts")
MATERIALIZED = ("view", "table", "incremental")
GRACE_DAYS = "{campaign_grace_days}"
_PLACEHOLDER = re.compile(r"\{\w+\}")


def staged_columns(field: Field) -> Iterator[StagedColumn]:
    """Yield the columns that a staging model has of a field: mostly one, the field as it is."""
    as_it_is = f"COALESCE({field.name}, {field.default})" if field.default else field.name
    for each in field.staged or (StagedColumn(field.name),):
        yield StagedColumn(each.name, each.sql or as_it_is, each.doc or field.doc)


def columns_of(entity: Entity) -> list[StagedColumn]:
    """Return a staging model's columns, in order: those of the fields, and load_number."""
    found = [column for field in entity.fields for column in staged_columns(field)]
    return [*found, StagedColumn(LOAD_NUMBER, LOAD_NUMBER, LOAD_NUMBER_DOC)]


def staging_sql(entity: Entity) -> str:
    """Return the model's SELECT. Of rows that are versions of one thing, it has the newest."""
    listed = ",\n".join(
        f"    {each.sql}" if each.sql == each.name else f"    {each.sql} AS {each.name}"
        for each in columns_of(entity)
    )
    if not entity.newest_of:
        return f"SELECT\n{listed}\nFROM lake.{entity.name}"
    thing = ", ".join(f"v.{each}" for each in entity.newest_of)
    return f"""SELECT
{listed}
FROM (
    SELECT
        v.*,
        ROW_NUMBER() OVER (PARTITION BY {thing} ORDER BY v.version DESC) AS place
    FROM lake.{entity.name} AS v
) AS versions
WHERE place = 1"""  # noqa: S608


def staging_about(entity: Entity) -> dict[str, Any]:
    """Return what NAME.yml of another model says, as far as it follows from the declaration."""
    key = [next(staged_columns(entity.field(name))).name for name in entity.newest_of or entity.key]
    columns = {each.name: each.doc for each in columns_of(entity)}
    return {"key": key, "materialized": "view", "columns": columns}


class ModelError(ValueError):
    """A model's files are wrong. The message has the model's name and the fault."""


@dataclass(frozen=True, slots=True)
class Model:
    """One table or view. Fields from `grain` on are those of NAME.yml (see this module's docstring)."""

    name: str
    sql: str
    reads: frozenset[str]  # the tables and models that it selects from, as schema.name
    grain: str
    key: tuple[str, ...]
    materialized: str
    columns: Mapping[str, str]
    tests: Mapping[str, Any] = field(default_factory=dict)
    dist: str | None = None
    sort: tuple[str, ...] = ()
    by_date: str | None = None
    periods: tuple[str, ...] = ("day",)
    window: int = 0
    also_touched: str = ""
    reads_by: Mapping[str, str] = field(default_factory=dict)
    around: int = 0
    placed_by: str | None = None
    newest_by: str | None = None
    tested_in: str | None = None
    whole: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)


_DECLARED = {each.name for each in fields(Model)} - {"name", "sql", "reads"}


def models(grace_days: int = CAMPAIGN_GRACE_DAYS) -> dict[str, Model]:
    """Return all models by name, each after those that it reads, as of a setting. Raises ModelError."""
    return _models(grace_days)


@cache
def _models(grace_days: int) -> dict[str, Model]:
    found = {}
    for schema in FOLDERS:
        for path in sorted((SQL / "models" / schema).glob("*.yml")):
            model = _read_model(f"{schema}.{path.stem}", path, grace_days)
            found[model.name] = model
    order = TopologicalSorter({model.name: model.reads & found.keys() for model in found.values()})
    ordered = {name: found[name] for name in order.static_order()}
    for model in ordered.values():
        _check_sources(model, ordered)
    return ordered


def _read_model(name: str, path: Path, grace_days: int) -> Model:
    about = yaml.safe_load(path.read_text(encoding="utf-8"))
    if entity := LOADED.get(about.pop("entity", "")):
        sql, about = staging_sql(entity), staging_about(entity) | about
    else:
        text = path.with_suffix(".sql").read_text(encoding="utf-8").replace(GRACE_DAYS, str(grace_days))
        sql = text.strip().rstrip(";")
    if unknown := about.keys() - _DECLARED:
        raise ModelError(f"{name}: unknown {sorted(unknown)}")
    if about["materialized"] not in MATERIALIZED:
        raise ModelError(f"{name}: materialized is one of {MATERIALIZED}")
    if (about["materialized"] == "table") != bool(about.get("whole")):
        raise ModelError(f"{name}: a table says below `whole` why it is not incremental")
    reads = _tables(sql) | _tables(_PLACEHOLDER.sub("0", about.get("also_touched", "")))
    declared: dict[str, Any] = {
        each: tuple(value) if isinstance(value, list) else value for each, value in about.items()
    }
    return Model(name=name, sql=sql, reads=reads, **declared)


def _tables(sql: str) -> frozenset[str]:
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


def ancestors(model: Model, models: Mapping[str, Model]) -> list[Model]:
    """Return the models that a model is made from, directly or not, sorted by name."""
    found: dict[str, Model] = {}
    left = [models[name] for name in model.reads if name in models]
    while left:
        each = left.pop()
        if each.name not in found:
            found[each.name] = each
            left += [models[name] for name in each.reads if name in models]
    return [found[name] for name in sorted(found)]


def entities_of(model: Model, models: Mapping[str, Model]) -> set[str]:
    """Return the lake tables that a model reads, directly or through other models, without `lake.`."""
    family: Sequence[Model] = [model, *ancestors(model, models)]
    reads = {name for each in family for name in each.reads}
    return {name.removeprefix("lake.") for name in reads if name.startswith("lake.")}


def fingerprint(model: Model, models: Mapping[str, Model]) -> str:
    """Return a digest of the SQL of a model and of all models that it reads, directly or not."""
    family = [model, *ancestors(model, models)]
    text = "\n".join(
        f"{each.name} {each.dist} {each.sort} {each.by_date} {each.periods} {each.window} {each.around} "
        f"{each.sql}"
        for each in family
    )
    return hashlib.sha256(text.encode()).hexdigest()


# The tests that models declare. Each becomes a query for the rows that break it.
#
# The columns of a model's key are never NULL, and unique together. More tests stand in NAME.yml, below
# `tests`: not_null: [columns]; unique: [columns]; accepted_values: {column: [values]}; relationships:
# {column: schema.table.column}; expression: [conditions that hold for each row]; sql: {name: a query that
# must find nothing}. A night tests the rows that came since the tests held last, and once a week all of them,
# and the `sql` ones. Of a view that says `tested_in: MODEL`, that model has the same rows: a night tests them
# there.


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that failed."""

    model: str
    test: str
    rows: int  # how many rows break it


@dataclass(frozen=True, slots=True)
class Scope:
    """Which rows are tested."""

    rows: str = ""  # a condition; "" for all
    # A condition of all rows that have a key of one of them, as far as dates can tell; "": they may be
    # anywhere
    near: str = ""


ALL = Scope()


def check(warehouse: Warehouse) -> list[Failure]:
    """Run the tests of all models; returns those that failed. Raises ModelError, StatementFailed."""
    with warehouse.kept_open():
        return [failure for model in models().values() for failure in check_model(warehouse, model)]


def check_model(warehouse: Warehouse, model: Model, scope: Scope = ALL) -> list[Failure]:
    """Run a model's tests in one query; returns those that failed."""
    tests = dict(_tests(model, scope))
    counts = " UNION ALL ".join(
        f"SELECT {literal(name)} AS test, COUNT(*) AS broken FROM ({query}) AS found"  # noqa: S608 (our own SQL)
        for name, query in tests.items()
    )
    found = warehouse.rows(f"SELECT test, broken FROM ({counts}) AS tests WHERE broken > 0 ORDER BY test")  # noqa: S608
    return [Failure(model.name, row["test"], int(row["broken"])) for row in found]


def _tests(model: Model, scope: Scope = ALL) -> Iterator[tuple[str, str]]:
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
    """Return the test of a key: of the rows that have a key of one in the scope."""
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
    other, _, other_column = target.rpartition(".")
    return (
        f'SELECT 1 AS broken FROM (SELECT "{column}" FROM {table}{f" WHERE {scope}" if scope else ""}) '  # noqa: S608
        f"AS child LEFT JOIN {other} AS parent "
        f'ON child."{column}" = parent."{other_column}" '
        f'WHERE child."{column}" IS NOT NULL AND parent."{other_column}" IS NULL'
    )
