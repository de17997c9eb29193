"""Translates Redshift's SQL with sqlglot: for DuckDB (a laptop), Athena (the lake) and PostgreSQL (tests).

It leaves out the features that the other engine lacks: how Redshift spreads, sorts and compresses a table,
late binding of views, and on DuckDB also locks, because its file has one writer.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

from analytics.warehouse.dialect.kinds import of_type
from analytics.warehouse.dialect.on_duckdb import on_duckdb
from analytics.warehouse.dialect.parser import parse_statement

REDSHIFT, DUCKDB, POSTGRES, ATHENA = "redshift", "duckdb", "postgres", "athena"
Columns = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # (table, ((column, DuckDB's type), ...))
_LAYOUT = (exp.DistKeyProperty, exp.DistStyleProperty, exp.SortKeyProperty)
_LATE_BINDING, _LOCK = "WITH NO SCHEMA BINDING", "LOCK "


# A translation takes 20 to 40 ms of CPU, and a night has up to a thousand statements, in the same order each
# night. If the cache had room for fewer, it would drop each statement before its next use.
@lru_cache(maxsize=4096)
def translate(statement: str, dialect: str) -> str:
    """Return one Redshift statement in the dialect of Athena or PostgreSQL.

    Raises sqlglot's ParseError if the statement is not Redshift's SQL.
    """
    text = statement.strip().rstrip(";")
    if text.upper().startswith(_LOCK):
        return text.replace(_LOCK, "LOCK TABLE ", 1)
    tree = sqlglot.parse_one(text.removesuffix(_LATE_BINDING), read=REDSHIFT)
    return str(_adapt(tree, dialect).sql(dialect=dialect, copy=False))


@lru_cache(maxsize=4096)
def tables_of(statement: str) -> Sequence[str]:
    """Return the names of the tables whose columns DuckDB's SQL depends on: schema.name, in small letters.

    All of them exist if the statement is right: a table that it creates, renames or drops is not among them.
    """
    if _is_lock(statement):
        return ()
    tree: Any = parse_statement(_without_binding(statement))
    if isinstance(tree, exp.Create):
        tree = tree.expression
    if tree is None or isinstance(tree, exp.Drop | exp.Alter):
        return ()
    queries = {query.alias.lower() for query in tree.find_all(exp.CTE)}
    tables = [table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    return sorted({f"{table.db}.{table.name}".lower().lstrip(".") for table in tables} - queries)


@lru_cache(maxsize=4096)
def for_duckdb(statement: str, columns: Columns = ()) -> str | None:
    """Return one Redshift statement as DuckDB's SQL; None for a lock, which DuckDB does not need.

    columns: the columns of each of `tables_of`. Raises NotAsRedshift if DuckDB would give another answer than
    Redshift, and sqlglot's ParseError.
    """
    if _is_lock(statement):
        return None
    kinds = {
        table: {name.lower(): of_type(exp.DataType.build(type_, dialect=DUCKDB)) for name, type_ in fields}
        for table, fields in columns
    }
    tree = on_duckdb(parse_statement(_without_binding(statement)), lambda name: kinds.get(name, {}))
    _strip_layout(tree)
    # Redshift does not enforce primary keys. DuckDB would, after each statement, and slowly.
    for key in list(tree.find_all(exp.PrimaryKey)):
        key.pop()
    return str(tree.sql(dialect=DUCKDB, comments=False, copy=False))


def _without_binding(statement: str) -> str:
    return statement.strip().rstrip(";").removesuffix(_LATE_BINDING)


def _is_lock(statement: str) -> bool:
    return statement.strip().upper().startswith(_LOCK)


def _adapt(tree: Any, dialect: str) -> Any:
    """Adapt a statement to Athena or PostgreSQL where sqlglot does not."""
    _strip_layout(tree)
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.upper() == "IS_VALID_JSON":
            call.replace(_is_json(call.expressions[0], dialect))
    for call in list(tree.find_all(exp.FromBase)):
        call.replace(_hexadecimal(call.this, dialect))
    if dialect == POSTGRES:
        _for_postgres(tree)
    if dialect == ATHENA:
        _for_athena(tree)
    return tree


def _strip_layout(tree: Any) -> None:
    """Take out how Redshift spreads, sorts and compresses a table."""
    for properties in tree.find_all(exp.Properties):
        others = [expression for expression in properties.expressions if not isinstance(expression, _LAYOUT)]
        properties.set("expressions", others)
    for column in tree.find_all(exp.ColumnDef):
        constraints = [
            constraint
            for constraint in column.constraints
            if not isinstance(constraint.kind, exp.EncodeColumnConstraint)
        ]
        column.set("constraints", constraints)


def _is_json(text: Any, dialect: str) -> Any:
    """Return the condition that a text is JSON, which Redshift's IS_VALID_JSON is."""
    if dialect == ATHENA:
        parsed = exp.Anonymous(
            this="TRY", expressions=[exp.Anonymous(this="JSON_PARSE", expressions=[text.copy()])]
        )
        return exp.Paren(this=exp.Not(this=exp.Is(this=parsed, expression=exp.Null())))
    return exp.Paren(this=exp.Is(this=text.copy(), expression=exp.Var(this="JSON")))


def _hexadecimal(digits: Any, dialect: str) -> Any:
    """Return the counterpart of STRTOL(digits, 16). Our statements have no other base."""
    if dialect == POSTGRES:
        padded = exp.func("LPAD", digits.copy(), exp.Literal.number(16), exp.Literal.string("0"))
        bits = exp.cast(exp.DPipe(this=exp.Literal.string("x"), expression=padded), "bit(64)")
        return exp.cast(bits, "bigint")
    return exp.FromBase(this=digits.copy(), expression=exp.Literal.number(16))


def _for_athena(tree: Any) -> None:
    """Adapt a statement: to Athena a Sunday is day 7, to Redshift day 0."""
    for part in list(tree.find_all(exp.Extract)):
        if part.name.upper() == "DOW":
            part.replace(exp.Paren(this=exp.Mod(this=part.copy(), expression=exp.Literal.number(7))))


def _for_postgres(tree: Any) -> None:
    """Adapt a statement: PostgreSQL wants JSON text cast, and a list's order inside of STRING_AGG."""
    for path in list(tree.find_all(exp.JSONExtractScalar)):
        path.set("this", exp.cast(path.this, "json"))
    for group in list(tree.find_all(exp.WithinGroup)):
        listed, order = group.this, group.expression
        if isinstance(listed, exp.GroupConcat):
            listed.set("this", exp.Order(this=listed.this, expressions=order.expressions))
            group.replace(listed)
