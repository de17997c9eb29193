"""The warehouse's SQL is Redshift's; sqlglot turns it into DuckDB's (a laptop) and PostgreSQL's (tests).

What has no counterpart there is left out: how Redshift spreads, sorts and compresses a table, locks
(a DuckDB file has one writer), late binding of views.
"""

from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

REDSHIFT, DUCKDB, POSTGRES = "redshift", "duckdb", "postgres"
_LAYOUT = (exp.DistKeyProperty, exp.DistStyleProperty, exp.SortKeyProperty)
_LATE_BINDING = "WITH NO SCHEMA BINDING"


@lru_cache(maxsize=512)
def translate(statement: str, dialect: str) -> str | None:
    """Return one Redshift statement in another dialect; None if it has nothing to do there.

    Raises sqlglot's ParseError for what is no Redshift SQL.
    """
    text = statement.strip().rstrip(";")
    if text.upper().startswith("LOCK "):
        return None if dialect == DUCKDB else text.replace("LOCK ", "LOCK TABLE ", 1)
    tree = sqlglot.parse_one(text.removesuffix(_LATE_BINDING), read=REDSHIFT)
    return str(_adapt(tree, dialect).sql(dialect=dialect))


def _adapt(tree: Any, dialect: str) -> Any:
    _strip_layout(tree)
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.upper() == "IS_VALID_JSON":
            call.replace(_is_json(call.expressions[0], dialect))
    if dialect == DUCKDB:
        # Redshift does not enforce keys; DuckDB would, statement by statement, and slowly.
        for key in list(tree.find_all(exp.PrimaryKey)):
            key.pop()
    if dialect == POSTGRES:
        _for_postgres(tree)
    return tree


def _strip_layout(tree: Any) -> None:
    for properties in tree.find_all(exp.Properties):
        kept = [each for each in properties.expressions if not isinstance(each, _LAYOUT)]
        properties.set("expressions", kept)
    for column in tree.find_all(exp.ColumnDef):
        kept = [each for each in column.constraints if not isinstance(each.kind, exp.EncodeColumnConstraint)]
        column.set("constraints", kept)


def _is_json(text: Any, dialect: str) -> Any:
    if dialect == DUCKDB:
        return exp.func("JSON_VALID", text.copy())
    return exp.Paren(this=exp.Is(this=text.copy(), expression=exp.Var(this="JSON")))


def _for_postgres(tree: Any) -> None:
    """Texts are no JSON by themselves there; a list's order stands inside of STRING_AGG."""
    for path in list(tree.find_all(exp.JSONExtractScalar)):
        path.set("this", exp.cast(path.this, "json"))
    for group in list(tree.find_all(exp.WithinGroup)):
        listed, order = group.this, group.expression
        if isinstance(listed, exp.GroupConcat):
            listed.set("this", exp.Order(this=listed.this, expressions=order.expressions))
            group.replace(listed)
