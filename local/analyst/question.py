"""A query as analysts write it: one statement in Redshift's SQL that only reads, with :name for values."""

from collections.abc import Mapping
from datetime import date
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from analytics.warehouse.dialect.reading import statements
from analytics.warehouse.statements import literal
from analytics.warehouse.translate import REDSHIFT
from local.analyst.answer import QueryFailed

Value = str | int | date | None
# What writes can hide within a query: SELECT ... INTO makes a table.
_WRITES = (exp.DML, exp.DDL, exp.Into, exp.Command, exp.Lock)


def read_only(sql: str, parameters: Mapping[str, Value] | None = None) -> str:
    """Return the query's text with its parameters filled in, without a semicolon at its end.

    Raises QueryFailed for anything but one query that only reads. That spares an analyst a mistake. What
    holds against somebody who wants to write are rights: sql/README.md says which.
    """
    text = _filled(sql, parameters or {})
    try:
        found = statements(text)
    except SqlglotError as error:
        raise QueryFailed(f"this is no SQL of Redshift: {_first_line(error)}") from error
    if len(found) != 1:
        raise QueryFailed(f"this is {len(found)} statements: one query is asked at a time")
    tree = found[0]
    writes = next((each for each in tree.walk() if isinstance(each, _WRITES)), None)
    if not isinstance(tree, exp.Query) or writes is not None:
        what = (tree if writes is None else writes).key.upper()
        raise QueryFailed(f"only a query that reads is run here, SELECT or WITH ... SELECT: this is {what}")
    return text.strip().rstrip(";").rstrip()


def _filled(sql: str, parameters: Mapping[str, Value]) -> str:
    """Put literals in the places of :name. A colon within a text or in `::` is none."""
    try:
        tokens = sqlglot.tokenize(sql, read=REDSHIFT)
    except SqlglotError as error:
        raise QueryFailed(f"this is no SQL of Redshift: {_first_line(error)}") from error
    parts, end, used = [], 0, set()
    for colon, name in pairwise(tokens):
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
