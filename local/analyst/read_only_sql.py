"""An analyst's query: one statement in Redshift's SQL that only reads, and the same over the lake's files.

`read_only` checks the statement. `over_files` makes of a query on the warehouse's names one that Athena can
answer from the curated files alone:

- `lake.events` becomes the newest version of each event in the files, as the warehouse's load would keep it.
- A model becomes its own SELECT, which may read other models.
- Any other name is a table of the Glue catalog, which has the rows as they are in the files, and the column
  `dt`: `SELECT COUNT(*) FROM events WHERE dt = '2026-01-31'` reads one day. A month of the past that a
  history filled has one file, and its `dt` is the month: `dt >= '2015-03' AND dt < '2015-04'` reads either.

The first two become parts of a WITH clause, each before those that read it.
"""

from collections.abc import Collection, Mapping
from datetime import date
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from adapters.settings.choices import MODEL_SETTINGS, ModelSettings
from analytics.lake.arrow import HIVE
from analytics.warehouse.dialect.kinds import TEXT, Kind, of_type
from analytics.warehouse.dialect.on_athena import on_athena
from analytics.warehouse.dialect.on_duckdb import on_duckdb
from analytics.warehouse.dialect.parser import NotAsRedshift, parse_statement, parse_statements
from analytics.warehouse.models import FOLDERS, Model, models
from analytics.warehouse.statements import literal
from analytics.warehouse.translate import DUCKDB, REDSHIFT
from local.analyst.output import QueryFailed
from rules.lake.entities import EXTRA, LOADED, Entity, Type
from rules.parts import ALL_PARTS, Part

Value = str | int | date | None
Models = Mapping[str, Model]
# Expressions that write. They can hide within a query: SELECT ... INTO makes a table.
_WRITES = (exp.DML, exp.DDL, exp.Into, exp.Command, exp.Lock)
BYTE_ORDER_MARK = "\ufeff"  # with which some editors begin a file
LAKE = "lake"
SCHEMAS = frozenset({LAKE, *FOLDERS})
# The warehouse's bookkeeping is not in the lake. Of it the calendar takes the days that have files, which the
# files themselves say too.
CURATION, CALENDAR = "staging.curation", "dimensions.dates"


def read_only(sql: str, parameters: Mapping[str, Value] | None = None) -> str:
    """Return the query's text with its parameters filled in, without a semicolon at its end.

    Raises QueryFailed for anything but one query that only reads. This spares an analyst a mistake. Somebody
    who wants to write is stopped by the database's rights (sql/README.md).
    """
    text = _with_literals(sql.removeprefix(BYTE_ORDER_MARK), parameters or {})
    try:
        trees = parse_statements(text)
    except SqlglotError as error:
        raise QueryFailed(f"this is no SQL of Redshift: {_first_line(error)}") from error
    if len(trees) != 1:
        raise QueryFailed(f"this is {len(trees)} statements: one query is asked at a time")
    (tree,) = trees
    write = next((node for node in tree.walk() if isinstance(node, _WRITES)), None)
    if not isinstance(tree, exp.Query) or write is not None:
        kind = (tree if write is None else write).key.upper()
        raise QueryFailed(f"only a query that reads is run here, SELECT or WITH ... SELECT: this is {kind}")
    *_, last = [token for token in _tokens(text) if token.token_type is not sqlglot.TokenType.SEMICOLON]
    return text[: last.end + 1].lstrip("; \t\r\n")


def split_queries(text: str) -> list[str]:
    """Return the queries of a text that a semicolon ends, and what is left behind the last one, or "".

    A semicolon within a text, a name or a comment ends nothing.
    """
    try:
        tokens = _tokens(text)
    except QueryFailed:  # a text or a comment is not closed yet
        return [text]
    queries, begin, is_begun = [], 0, False
    for token in tokens:
        if token.token_type is not sqlglot.TokenType.SEMICOLON:
            is_begun = True
            continue
        if is_begun:
            queries.append(text[begin : token.end + 1].strip())
        begin, is_begun = token.end + 1, False
    return [*queries, text[begin:] if is_begun else ""]


def _tokens(text: str) -> list[Any]:
    """Return the words of a text. Raises QueryFailed for a text or a comment that has no end."""
    try:
        return sqlglot.tokenize(text, read=REDSHIFT)
    except SqlglotError as error:
        raise QueryFailed(f"this is no SQL of Redshift: {_first_line(error)}") from error


def _with_literals(sql: str, parameters: Mapping[str, Value]) -> str:
    """Return a query with literals in the places of `:name`. A colon within a text or in `::` is no such."""
    parts, end, used = [], 0, set()  # pieces of the text, where they end in it, names of parameters
    for colon, name in pairwise(_tokens(sql)):
        if colon.token_type is not sqlglot.TokenType.COLON or name.start != colon.end + 1:
            continue
        if name.text not in parameters:
            raise QueryFailed(f"the query has a parameter :{name.text}, and no value was given for it")
        parts += [sql[end : colon.start], literal(parameters[name.text])]
        end = name.end + 1
        used.add(name.text)
    if unused := sorted(parameters.keys() - used):
        raise QueryFailed(f"the query has no parameter :{unused[0]}")
    return "".join([*parts, sql[end:]])


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def over_files(
    query: str,
    dialect: str,
    settings: ModelSettings = MODEL_SETTINGS,
    deployed: Collection[Part] = ALL_PARTS,
) -> str:
    """Return a query in Redshift's SQL as one over the Glue catalog's tables, in a dialect of sqlglot.

    settings, deployed: the deployment's settings and parts. Raises QueryFailed for a table
    that the lake does not have, and for an expression that DuckDB would answer otherwise.
    """
    try:
        tree = parse_statement(query).copy()
        all_models = models(settings, deployed)
        reads = _names_read(tree, all_models)
        parts = [_with_part(name, all_models) for name in TopologicalSorter(reads).static_order()]
        tree = _with_part_names(tree)
        own_with = tree.args.get("with_")  # of the analyst's query
        if own_with is not None:
            own_with.set("expressions", [*parts, *own_with.expressions])
        elif parts:
            tree.set("with_", exp.With(expressions=parts))
        if dialect != DUCKDB:
            return on_athena(tree, _kinds_of_columns)
        translated = on_duckdb(tree, _kinds_of_columns)
    except (NotAsRedshift, SqlglotError) as error:
        raise QueryFailed(f"the lake refuses this: {_first_line(error)}") from error
    _read_in_utc(translated)
    return str(translated.sql(dialect=DUCKDB, comments=False))


def _names_read(tree: exp.Expr, models: Models) -> dict[str, set[str]]:
    """Return each name that a query reads, directly or not, with the names that its own query reads."""
    reads: dict[str, set[str]] = {}
    names_to_do = _warehouse_names(tree, models)
    while names_to_do:
        name = names_to_do.pop()
        if name not in reads:
            allowed = frozenset({CURATION}) if name == CALENDAR else frozenset()
            reads[name] = _warehouse_names(_definition(name, models), models, allowed)
            names_to_do |= reads[name]
    return reads


def _warehouse_names(tree: exp.Expr, models: Models, allowed: frozenset[str] = frozenset()) -> set[str]:
    """Return the names of the warehouse that a query reads itself, as schema.name.

    allowed: names that only a model may read. Raises QueryFailed for one that the lake does not have.
    """
    names = {f"{table.db}.{table.name}" for table in tree.find_all(exp.Table) if table.db in SCHEMAS}
    known = {f"{LAKE}.{entity}" for entity in _entities(models)} | (models.keys() - {CURATION})
    if unknown := sorted(names - known - allowed):
        raise QueryFailed(f"the lake has no {unknown[0]}: only the warehouse has it (--on warehouse)")
    return names


def _entities(models: Models) -> list[str]:
    """Return the tables of the lake that a deployment with these models has."""
    reads = {name for model in models.values() for name in model.reads}
    return [entity for entity in LOADED if f"{LAKE}.{entity}" in reads]


def _definition(name: str, models: Models) -> exp.Expr:
    """Return the query that a name of the warehouse stands for, over the files and other such names."""
    schema, _, table = name.partition(".")
    if name == CURATION:
        # A month's dt becomes its first date.
        day = "CAST(SUBSTRING(dt || '-01', 1, 10) AS DATE)"
        entities = _entities(models)
        days = [f"SELECT DISTINCT {day} AS dt, 1 AS curated FROM {entity}" for entity in entities]
        return parse_statement(" UNION ALL ".join(days)).copy()
    return parse_statement(_newest(LOADED[table]) if schema == LAKE else models[name].sql).copy()


def _newest(entity: Entity) -> str:
    """Return the query for those rows of all files that analytics/warehouse/load.py would keep."""
    columns = ", ".join(f'"{name}"' for name in [*(field.name for field in entity.fields), EXTRA])
    keys = ", ".join(f'"{name}"' for name in entity.key)
    newest = f'"{entity.version}" DESC' if entity.version else keys
    return (
        f"SELECT {columns}, CAST(1 AS BIGINT) AS load_number FROM (SELECT {columns}, "
        f"ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {newest}) AS place FROM {entity.name}) AS versions "
        "WHERE place = 1"
    )


def _with_part(name: str, models: Models) -> exp.CTE:
    """Return a name's query as a part of the WITH clause."""
    alias = exp.TableAlias(this=exp.to_identifier(_part_name(name)))
    return exp.CTE(this=_with_part_names(_definition(name, models)), alias=alias)


def _with_part_names(tree: exp.Expr) -> exp.Expr:
    """Replace each schema.name by the name of its WITH part. The table keeps its alias or its name."""
    for table in list(tree.find_all(exp.Table)):
        if table.db in SCHEMAS:
            part = exp.to_table(_part_name(f"{table.db}.{table.name}"))
            table.replace(exp.alias_(part, table.alias or table.name, table=True))
    for column in tree.find_all(exp.Column):
        if column.db in SCHEMAS:
            column.set("db", None)
    return tree


def _part_name(name: str) -> str:
    return name.replace(".", "__")


def _kinds_of_columns(table: str) -> dict[str, Kind]:
    """Return the types of a table of the catalog; {} for a WITH part, whose types follow from its query."""
    entity = LOADED.get(table)
    if entity is None:
        return {}
    kinds = {
        field.name: of_type(exp.DataType.build(HIVE[field.type], dialect="hive")) for field in entity.fields
    }
    return kinds | dict.fromkeys(("dt", "hour", EXTRA), TEXT)


def _read_in_utc(tree: exp.Expr) -> None:
    """Read the files' timestamps as Athena does, in UTC. DuckDB would read them in the machine's zone."""
    part_names = {part.alias for part in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        if table.db or table.name in part_names or table.name not in LOADED:
            continue
        times = [field.name for field in LOADED[table.name].fields if field.type is Type.TIMESTAMP]
        in_utc = ", ".join(f'"{name}" AT TIME ZONE \'UTC\' AS "{name}"' for name in times)
        statement = sqlglot.parse_one(f"SELECT * REPLACE ({in_utc}) FROM {table.name}", read=DUCKDB)
        alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
        table.replace(exp.Subquery(this=statement, alias=alias))
