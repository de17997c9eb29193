"""Assumptions about Redshift that rest on its documentation alone, and the questions that test them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.statements import StatementFailed
from analytics.warehouse.warehouse import Warehouse

GUIDE = "https://docs.aws.amazon.com/redshift/latest/dg/"


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something that our SQL relies on, and a query whose answer shows whether it holds."""

    name: str  # the assumption, as a sentence
    sql: str  # a query that needs no table of ours, and changes nothing
    answer: str  # as text, if the assumption holds
    page: str  # of GUIDE, which documents it
    not_on_duckdb: str | None = None  # why DuckDB cannot answer it; None if it can


_TWO = "SELECT 1 AS n UNION ALL SELECT 3"
_WALK = "SELECT 1 AS n UNION ALL SELECT n + 1 FROM walk WHERE n < 40"
ASSUMPTIONS: tuple[Assumption, ...] = (
    Assumption(
        "microseconds are kept",
        "SELECT CAST(CAST('2026-01-31 23:59:59.123456' AS TIMESTAMP) AS VARCHAR(32)) AS v",
        "2026-01-31 23:59:59.123456",
        "r_Datetime_types.html",
    ),
    Assumption(
        "a text's size counts bytes",
        "SELECT OCTET_LENGTH('é€') AS v",
        "5",
        "r_OCTET_LENGTH.html",
        "DuckDB's texts have no size",
    ),
    Assumption(
        "a backslash escapes in a literal",
        r"SELECT LENGTH('a\\b') AS v",
        "3",
        "r_Character_types.html",
        "the translation writes it as DuckDB does",
    ),
    Assumption(
        "dates subtract to whole days",
        "SELECT CAST('2026-03-01' AS DATE) - CAST('2026-02-27' AS DATE) AS v",
        "2",
        "r_Dateparts_for_datetime_functions.html",
    ),
    Assumption("whole numbers divide to whole numbers", "SELECT 7 / 2 AS v", "3", "r_OPERATOR_SYMBOLS.html"),
    Assumption(
        "a Sunday is day 0",
        "SELECT CAST(EXTRACT(dow FROM CAST('2026-02-01' AS DATE)) AS INTEGER) AS v",
        "0",
        "r_EXTRACT_function.html",
    ),
    Assumption(
        "EXCEPT takes two NULLs as equal",
        "SELECT COUNT(*) AS v FROM "
        "(SELECT CAST(NULL AS INTEGER) AS n EXCEPT SELECT CAST(NULL AS INTEGER)) AS distinct_rows",
        "0",
        "r_UNION.html",
    ),
    Assumption(
        "descending, NULL comes first",
        "SELECT COALESCE(n, 0) AS v FROM (SELECT 1 AS n UNION ALL SELECT CAST(NULL AS INTEGER)) AS t "
        "ORDER BY n DESC LIMIT 1",
        "0",
        "r_ORDER_BY_clause.html",
    ),
    Assumption(
        "texts sort by their bytes",
        "SELECT MIN(t) AS v FROM (SELECT 'a' AS t UNION ALL SELECT 'B') AS texts",
        "B",
        "c_collation_sequences.html",
    ),
    Assumption(
        "LEAST leaves out NULL",
        "SELECT LEAST(2, CAST(NULL AS INTEGER), 1) AS v",
        "1",
        "r_GREATEST_LEAST.html",
    ),
    Assumption(
        "a frame of ROWS looks forward",
        "SELECT MIN(later) AS v FROM (SELECT MIN(n) OVER (ORDER BY n ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED "
        f"FOLLOWING) AS later FROM ({_TWO}) AS two) AS w",
        "3",
        "r_Window_function_synopsis.html",
    ),
    Assumption(
        "a recursion goes 40 steps",
        f"WITH RECURSIVE walk (n) AS ({_WALK}) SELECT MAX(n) AS v FROM walk",
        "40",
        "r_WITH_clause.html",
    ),
    Assumption(
        "a text knows whether it is JSON",
        "SELECT CASE WHEN IS_VALID_JSON('{\"a\": 1}') AND NOT IS_VALID_JSON('{a') THEN 1 ELSE 0 END AS v",
        "1",
        "IS_VALID_JSON.html",
    ),
    Assumption(
        "hundredths stay exact",
        "SELECT CAST(CAST(12345678901234567 AS DECIMAL(22, 2)) / 100 AS DECIMAL(24, 2)) AS v",
        "123456789012345.67",
        "r_numeric_computations201.html",
        "DuckDB divides decimals as doubles",
    ),
)


def check_assumptions(
    warehouse: Warehouse, assumptions: Sequence[Assumption] = ASSUMPTIONS
) -> tuple[list[str], dict[str, str]]:
    """Ask a warehouse whether assumptions hold.

    Returns the names that hold; and by name what was answered instead, or why the statement failed. What
    DuckDB cannot settle is left out if the warehouse is DuckDB.
    """
    holding: list[str] = []
    wrong: dict[str, str] = {}
    is_laptop = isinstance(warehouse, DuckWarehouse)
    for assumption in assumptions:
        if is_laptop and assumption.not_on_duckdb is not None:
            continue
        answer = _answer(warehouse, assumption.sql)
        if answer == assumption.answer:
            holding.append(assumption.name)
        else:
            wrong[assumption.name] = f"{answer}, not {assumption.answer}"
    return holding, wrong


def _answer(warehouse: Warehouse, sql: str) -> str:
    """Return the values of the answer as one text, or why the statement failed."""
    try:
        rows: list[dict[str, Any]] = warehouse.rows(sql)
    except StatementFailed as error:
        return error.reason
    return ", ".join(str(value) for row in rows for value in row.values())
