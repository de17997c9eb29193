"""What Redshift refuses, or does otherwise: words, functions and types."""

import re
from collections.abc import Iterator

from sqlglot import exp

from tests.support.redshift_statement import Statement, rule
from tests.support.redshift_words import (
    LEADER_ONLY,
    OF_TODAY,
    RESERVED,
    UNKNOWN_FUNCTIONS,
    UNKNOWN_TYPES,
)

VARCHAR_BYTES_MAX, DIGITS_MAX = 65_535, 38


@rule("not understood", "c_SQL_commands.html", "VACUUM marts.t", "EXPLAIN ANALYZE marts.t")
def not_understood(statement: Statement) -> Iterator[str]:
    """What cannot be read cannot be checked. VACUUM and the like also refuse to run in our transactions."""
    yield from (each.sql()[:80] for each in statement.all(exp.Command))


@rule(
    "reserved word",
    "r_pg_keywords.html",
    "SELECT 1 AS tag",
    "SELECT freeze FROM lake.ledger",
    "SELECT user FROM marts.t",
)
def reserved(statement: Statement) -> Iterator[str]:
    for each in statement.all(exp.Identifier):
        if not each.quoted and each.name.lower() in RESERVED:
            yield each.name
    if "user" in set(statement.words()):
        yield "user"


@rule(
    "runs on the leader alone",
    "c_SQL_functions_leader_node_only.html",
    "SELECT SUBSTR(user_id, 1, 3) FROM lake.events",
    "SELECT NOW()",
    "SELECT CURRENT_TIMESTAMP",
    "SELECT AGE(occurred_at) FROM lake.events",
    "SELECT LOG(points_awarded) FROM lake.events",
)
def leader_only(statement: Statement) -> Iterator[str]:
    yield from LEADER_ONLY & set(statement.calls())


@rule(
    "no such function",
    "c_unsupported-postgresql-functions.html",
    "SELECT STRING_AGG(a, ',') FROM marts.t",
    "SELECT a FROM GENERATE_SERIES(1, 3) AS g",
    "SELECT UNNEST(a) FROM marts.t",
    "SELECT CORR(a, b) FROM marts.t",
    "SELECT DIV(a, b) FROM marts.t",
)
def unknown_function(statement: Statement) -> Iterator[str]:
    yield from UNKNOWN_FUNCTIONS & set(statement.calls())


@rule(
    "IS DISTINCT FROM",
    "c_unsupported-postgresql-functions.html",
    "SELECT a IS NOT DISTINCT FROM b FROM marts.t",
)
def null_safe(statement: Statement) -> Iterator[str]:
    yield from (each.sql() for each in statement.all(exp.NullSafeEQ, exp.NullSafeNEQ))


@rule("of today", "../../../sql/README.md", "SELECT CURRENT_DATE", "SELECT GETDATE()", "SELECT RANDOM()")
def of_today(statement: Statement) -> Iterator[str]:
    """No model depends on its day. Whether a streak lives is asked when a query runs."""
    asked = Statement(statement.text.replace("lapses_at > GETDATE()", "TRUE"))
    yield from OF_TODAY & set(asked.words())


@rule(
    "no such type",
    "c_unsupported-postgresql-datatypes.html",
    "SELECT CAST(a AS UUID) FROM marts.t",
    "CREATE TABLE marts.t (a JSONB)",
    "SELECT a::INT[] FROM marts.t",
    "CREATE TABLE marts.t (a BIGSERIAL)",
)
def unknown_type(statement: Statement) -> Iterator[str]:
    for each in statement.all(exp.DataType):
        if each.this.value.lower() in UNKNOWN_TYPES:
            yield each.sql("redshift")


@rule(
    "a text of 256 bytes",
    "r_Character_types.html",
    "SELECT CAST(a AS VARCHAR) FROM marts.t",
    "CREATE TABLE marts.t (a TEXT)",
    "SELECT a::TEXT FROM marts.t",
    "CREATE TABLE marts.t (a VARCHAR(65536))",
    "CREATE TABLE marts.t (a CHAR(4097))",
)
def text_size(statement: Statement) -> Iterator[str]:
    """VARCHAR and TEXT without a size are VARCHAR(256), in bytes; elsewhere they have no limit."""
    for each in statement.all(exp.DataType):
        kind, size = each.this.value, each.expressions[0].name if each.expressions else ""
        if kind in ("VARCHAR", "TEXT", "NVARCHAR"):
            if not size.isdecimal() or int(size) > VARCHAR_BYTES_MAX:
                yield each.sql("redshift")
        elif kind in ("CHAR", "NCHAR", "BPCHAR") and size.isdecimal() and int(size) > 4096:
            yield each.sql("redshift")


@rule("more than 38 digits", "r_Numeric_types201.html", "SELECT CAST(a AS DECIMAL(39, 2)) FROM marts.t")
def digits(statement: Statement) -> Iterator[str]:
    for each in statement.all(exp.DataType):
        if each.this.value == "DECIMAL" and each.expressions and int(each.expressions[0].name) > DIGITS_MAX:
            yield each.sql("redshift")


@rule(
    "finer than a microsecond",
    "r_Datetime_types.html",
    "SELECT TIMESTAMP '2026-01-31 12:00:00.1234567'",
    "SELECT CAST('2026-01-31 12:00:00.123456789' AS TIMESTAMP)",
)
def microseconds(statement: Statement) -> Iterator[str]:
    for each in statement.all(exp.Literal):
        if each.is_string and re.fullmatch(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d{7,}.*", each.name):
            yield each.name
