"""The tests that models declare. Each becomes a query for the rows that break it.

The columns of a model's key are never NULL, and unique together. More tests stand in NAME.yml, below `tests`:
not_null: [columns]; unique: [columns]; accepted_values: {column: [values]};
relationships: {column: schema.table.column}; expression: [conditions that hold for each row];
sql: {name: a query that must find nothing}.
A night tests the rows that came since the tests held last, and once a week all of them, and the `sql` ones.
Of a view that says `tested_in: MODEL`, that model has the same rows: a night tests them there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analytics.warehouse.models import Model, ModelError, models
from analytics.warehouse.statements import literal
from analytics.warehouse.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that failed. rows: how many rows break it."""

    model: str
    test: str
    rows: int


@dataclass(frozen=True, slots=True)
class Scope:
    """Which rows are tested. rows: a condition; "" for all.

    near: a condition of all rows that have a key of one of them, as far as dates can tell; "": they may be
    anywhere.
    """

    rows: str = ""
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
