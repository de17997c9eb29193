"""Checks that a row of the lake has its entity's columns and types."""

import json
from datetime import datetime
from typing import Any

from rules.days import stamp
from rules.lake.entities import Entity, Type

PARTITION = {"dt", "hour"}
PYTHON = {
    Type.TEXT: "str",
    Type.INTEGER: "int",
    Type.BOOLEAN: "bool",
    Type.DATE: "str",
    Type.TIMESTAMP: "str",
}


def has_its_shape(entity: Entity, row: dict[str, Any]) -> None:
    """All required fields are there, nothing else, each readable as its type."""
    known = {field.name: field for field in entity.fields}
    assert set(row) <= set(known) | PARTITION
    assert {field.name for field in entity.fields if field.required} <= set(row)
    for name in set(row) - PARTITION:
        kind, value = known[name].type, row[name]
        assert type(value).__name__ == PYTHON[kind], name
        if kind is Type.DATE:
            assert datetime.fromisoformat(value).date().isoformat() == value
        if kind is Type.TIMESTAMP:
            assert stamp(datetime.fromisoformat(value.replace("Z", "+00:00"))) == value
    assert json.loads(json.dumps(row)) == row
    assert list(row) == [*(name for name in known if name in row), "dt", "hour"], "the schema's order"
