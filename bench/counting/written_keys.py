"""Which items a request to DynamoDB writes, and which of these writes were refused."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.platform.items import Item
from bench.counting.table_shapes import TableShape

INSERT = re.compile(r'INSERT INTO "(?P<table>[^"]+)" VALUE \{(?P<names>.*)\}')
NAME = re.compile(r"'([^']+)': \?")
Shapes = Mapping[str, TableShape]


@dataclass(frozen=True, slots=True)
class WrittenItem:
    """An item that is written. is_check: a transaction only checks it, which is billed all the same."""

    table: str
    key: Item
    is_check: bool = False


def inserted(statement: Mapping[str, Any]) -> tuple[str, Item]:
    """Return table and item of a PartiQL INSERT; raises ValueError for another statement."""
    found = INSERT.fullmatch(statement["Statement"])
    if not found:
        raise ValueError(f"the meter knows INSERT alone: {statement['Statement']}")
    return found["table"], dict(zip(NAME.findall(found["names"]), statement["Parameters"], strict=True))


def places_of(operation: str, params: Mapping[str, Any], shapes: Shapes) -> list[WrittenItem]:
    """Return the items that a request writes, in its order; none for a read."""
    if operation == "BatchExecuteStatement":
        rows = map(inserted, params["Statements"])
        return [WrittenItem(table, shapes[table].key_of(item)) for table, item in rows]
    if operation == "TransactWriteItems":
        return [
            _of_action(kind, action, shapes)
            for each in params["TransactItems"]
            for kind, action in each.items()
        ]
    if operation == "BatchWriteItem":
        pairs = ((table, each) for table, listed in params["RequestItems"].items() for each in listed)
        return [_of_request(table, each, shapes) for table, each in pairs]
    if operation in ("PutItem", "UpdateItem", "DeleteItem"):
        return [_of_action(operation.removesuffix("Item"), params, shapes)]
    return []


def _of_action(kind: str, action: Mapping[str, Any], shapes: Shapes) -> WrittenItem:
    table = action["TableName"]
    key = shapes[table].key_of(action["Item"] if kind == "Put" else action["Key"])
    return WrittenItem(table, key, kind == "ConditionCheck")


def _of_request(table: str, request: Mapping[str, Any], shapes: Shapes) -> WrittenItem:
    ((_, inner),) = request.items()
    return WrittenItem(table, shapes[table].key_of(inner.get("Item") or inner["Key"]))


def refused_places(parsed: Mapping[str, Any], count: int) -> frozenset[int]:
    """Return the places of the writes that an answer refuses, of so many."""
    if "Error" in parsed:
        return frozenset(range(count))
    failed = (at for at, each in enumerate(parsed.get("Responses") or ()) if "Error" in each)
    return frozenset(failed) if isinstance(parsed.get("Responses"), list) else frozenset()
