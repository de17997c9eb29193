"""The tests that models declare. Each becomes a query for the rows that break it.

The columns of a model's key are never NULL, and unique together. More tests stand in NAME.yml, below `tests`:
not_null: [columns]; unique: [columns]; accepted_values: {column: [values]};
relationships: {column: schema.table.column}; expression: [conditions that hold for each row];
sql: {name: a query that must find nothing}.
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


def check(warehouse: Warehouse) -> list[Failure]:
    """Run the tests of all models; returns those that failed. Raises ModelError, StatementFailed."""
    with warehouse.kept_open():
        return [failure for model in models().values() for failure in check_model(warehouse, model)]


def check_model(warehouse: Warehouse, model: Model) -> list[Failure]:
    """Run a model's tests in one query; returns those that failed."""
    tests = dict(_tests(model))
    counts = " UNION ALL ".join(
        f"SELECT {literal(name)} AS test, COUNT(*) AS broken FROM ({query}) AS found"  # noqa: S608 (our own SQL)
        for name, query in tests.items()
    )
    found = warehouse.rows(f"SELECT test, broken FROM ({counts}) AS tests WHERE broken > 0 ORDER BY test")  # noqa: S608
    return [Failure(model.name, row["test"], int(row["broken"])) for row in found]


def _tests(model: Model) -> Iterator[tuple[str, str]]:
    """Yield the name and the query of each test."""
    declared: dict[str, Any] = dict(model.tests)
    yield _unique(model.name, list(model.key))
    for column in dict.fromkeys([*model.key, *declared.pop("not_null", [])]):
        yield f"not_null {column}", _where(model.name, f'"{column}" IS NULL')
    if columns := declared.pop("unique", []):
        yield _unique(model.name, columns)
    for column, values in declared.pop("accepted_values", {}).items():
        listed = ", ".join(literal(value) for value in values)
        yield f"accepted_values {column}", _where(model.name, f'"{column}" NOT IN ({listed})')
    for column, target in declared.pop("relationships", {}).items():
        yield f"relationships {column}", _orphans(model.name, column, target)
    for condition in declared.pop("expression", []):
        # A row for which the condition is NULL breaks the test.
        yield f"expression {condition}", _where(model.name, f"CASE WHEN {condition} THEN 0 ELSE 1 END = 1")
    for name, query in declared.pop("sql", {}).items():
        yield f"sql {name}", query
    if declared:
        raise ModelError(f"{model.name}: unknown tests {sorted(declared)}")


def _where(table: str, condition: str) -> str:
    return f"SELECT 1 AS broken FROM {table} WHERE {condition}"  # noqa: S608


def _unique(table: str, columns: list[str]) -> tuple[str, str]:
    names = ", ".join(f'"{column}"' for column in columns)
    query = f"SELECT {names} FROM {table} GROUP BY {names} HAVING COUNT(*) > 1"  # noqa: S608
    return f"unique {', '.join(columns)}", query


def _orphans(table: str, column: str, target: str) -> str:
    other, _, other_column = target.rpartition(".")
    return (
        f"SELECT 1 AS broken FROM {table} AS child LEFT JOIN {other} AS parent "  # noqa: S608
        f'ON child."{column}" = parent."{other_column}" '
        f'WHERE child."{column}" IS NOT NULL AND parent."{other_column}" IS NULL'
    )
