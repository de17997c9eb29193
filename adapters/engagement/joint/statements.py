"""Conditional puts as PartiQL statements, of which one request carries 25.

A put replaces an item; an UPDATE sets attributes of it. So the statement sets all that the put has, and
removes all that an item of the table may have beside. It costs what the put costs: a statement that writes
an item is billed as a write of this item, whether its condition holds or not.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Statement = dict[str, Any]
Put = Mapping[str, Any]
IS_ABSENT = "attribute_not_exists(user_id)"


@dataclass(frozen=True, slots=True)
class TableNames:
    """Key attributes of a table, and all other attributes that an item of it may have."""

    key: tuple[str, ...]
    others: frozenset[str]


def statement_of(put: Put, names: TableNames) -> Statement | None:
    """Return the statement that does what a conditional put does; None if there is none.

    The condition is that the item is absent, or that one attribute is as it was read: `version = :read`.
    """
    table, stored = put["TableName"], put["Item"]
    condition = put.get("ConditionExpression", "")
    if condition == IS_ABSENT:
        return {"Statement": _insert(table, tuple(stored)), "Parameters": list(stored.values())}
    mark, _, operand = condition.partition(" = ")
    if operand != ":read" or not names.others >= stored.keys() - set(names.key):
        return None
    written = tuple(name for name in stored if name not in names.key)
    return {
        "Statement": _update(table, written, names, mark),
        "Parameters": [
            *(stored[name] for name in written),
            *(stored[name] for name in names.key),
            put["ExpressionAttributeValues"][":read"],
        ],
    }


# A table's items have few forms, and a text takes longer to make than to find.
@lru_cache(maxsize=256)
def _insert(table: str, names: tuple[str, ...]) -> str:
    places = ", ".join(f"'{name}': ?" for name in names)
    return f'INSERT INTO "{table}" VALUE {{{places}}}'


@lru_cache(maxsize=256)
def _update(table: str, written: tuple[str, ...], names: TableNames, mark: str) -> str:
    clauses = [f'SET "{name}" = ?' for name in written]
    clauses += [f'REMOVE "{name}"' for name in sorted(names.others.difference(written))]
    conditions = " AND ".join(f'"{name}" = ?' for name in (*names.key, mark))
    return f'UPDATE "{table}" {" ".join(clauses)} WHERE {conditions}'


def refused(answer: Mapping[str, Any], statements: Collection[Statement]) -> Sequence[str]:
    """Return what became of each statement: an error's code, or "" if it was carried out."""
    responses = answer["Responses"]
    if len(responses) != len(statements):
        raise ValueError(f"{len(responses)} answers to {len(statements)} statements")
    return [each.get("Error", {}).get("Code", "") for each in responses]
