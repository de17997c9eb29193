"""Translates statements of Redshift's SQL with sqlglot for DuckDB, a laptop's warehouse.

It leaves out the features that DuckDB lacks: how Redshift spreads, sorts and compresses a table, late binding
of views, and locks, because DuckDB's file has one writer.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from sqlglot import exp

from analytics.warehouse.dialect.clauses import check_clauses
from analytics.warehouse.dialect.kinds import Kind, of_type
from analytics.warehouse.dialect.on_duckdb import on_duckdb
from analytics.warehouse.dialect.parser import parse_statement

REDSHIFT, DUCKDB, ATHENA = "redshift", "duckdb", "athena"
Columns = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # (table, ((column, DuckDB's type), ...))
_LAYOUT = (exp.DistKeyProperty, exp.DistStyleProperty, exp.SortKeyProperty)
_LATE_BINDING, _LOCK = "WITH NO SCHEMA BINDING", "LOCK "


# A translation takes 20 to 40 ms of CPU, and a night has up to a thousand statements, in the same order each
# night. If the cache had room for fewer, it would drop each statement before its next use.
@lru_cache(maxsize=4096)
def tables_of(statement: str) -> Sequence[str]:
    """Return the names of the tables whose columns DuckDB's SQL depends on: schema.name, in small letters.

    All of them exist if the statement is right: a table that it creates, renames or drops is not among them.
    Raises NotAsRedshift and sqlglot's ParseError.
    """
    if _is_lock(statement):
        return ()
    tree: Any = parse_statement(_without_binding(statement))
    check_clauses(tree)  # before the engine is asked for a table: it would take some names for files
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
    kinds = {table: {name.lower(): _kind_of(type_) for name, type_ in fields} for table, fields in columns}
    tree = on_duckdb(parse_statement(_without_binding(statement)), lambda name: kinds.get(name, {}))
    strip_layout(tree)
    # Redshift does not enforce primary keys. DuckDB would, after each statement, and slowly.
    for key in list(tree.find_all(exp.PrimaryKey)):
        key.pop()
    return str(tree.sql(dialect=DUCKDB, comments=False, copy=False))


@cache
def _kind_of(duckdb_type: str) -> Kind:
    return of_type(exp.DataType.build(duckdb_type, dialect=DUCKDB))


def _without_binding(statement: str) -> str:
    return statement.strip().rstrip(";").removesuffix(_LATE_BINDING)


def _is_lock(statement: str) -> bool:
    return statement.strip().upper().startswith(_LOCK)


def strip_layout(tree: Any) -> None:
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
