"""Translates Redshift's SQL with sqlglot: for DuckDB (a laptop), Athena (the lake) and PostgreSQL (tests).

It leaves out what has no counterpart there: how Redshift spreads, sorts and compresses a table, late binding
of views, and on DuckDB also locks (its file has one writer).
"""

from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp

REDSHIFT, DUCKDB, POSTGRES, ATHENA = "redshift", "duckdb", "postgres", "athena"
_LAYOUT = (exp.DistKeyProperty, exp.DistStyleProperty, exp.SortKeyProperty)
_LATE_BINDING = "WITH NO SCHEMA BINDING"


# Statements come in the same order night after night: of a cache that is too small for them none is still
# there. Nights of all kinds have a thousand of them, and each takes 20 to 40 ms of CPU.
@lru_cache(maxsize=4096)
def translate(statement: str, dialect: str) -> str | None:
    """Return one Redshift statement in another dialect; None if that engine has nothing to do for it.

    Raises sqlglot's ParseError if the statement is not Redshift's SQL.
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
    for call in list(tree.find_all(exp.FromBase)):
        call.replace(_hexadecimal(call.this, dialect))
    if dialect == DUCKDB:
        # Redshift does not enforce primary keys. DuckDB would, after each statement, and slowly.
        for key in list(tree.find_all(exp.PrimaryKey)):
            key.pop()
    if dialect == POSTGRES:
        _for_postgres(tree)
    if dialect == ATHENA:
        _for_athena(tree)
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
    if dialect == ATHENA:
        read = exp.Anonymous(
            this="TRY", expressions=[exp.Anonymous(this="JSON_PARSE", expressions=[text.copy()])]
        )
        return exp.Paren(this=exp.Not(this=exp.Is(this=read, expression=exp.Null())))
    return exp.Paren(this=exp.Is(this=text.copy(), expression=exp.Var(this="JSON")))


def _hexadecimal(digits: Any, dialect: str) -> Any:
    """Return what STRTOL(digits, 16) is there: our statements have no other base."""
    if dialect == POSTGRES:
        padded = exp.func("LPAD", digits.copy(), exp.Literal.number(16), exp.Literal.string("0"))
        bits = exp.cast(exp.DPipe(this=exp.Literal.string("x"), expression=padded), "bit(64)")
        return exp.cast(bits, "bigint")
    if dialect == DUCKDB:
        text = exp.DPipe(this=exp.Literal.string("0x"), expression=exp.paren(digits.copy()))
        return exp.cast(exp.paren(text), "bigint")
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
