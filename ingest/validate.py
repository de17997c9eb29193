"""Checks a value against a JSON Schema; a problem is told as field and reason."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import fastjsonschema

from ingest.schemas import Schema


@cache
def _validator(key: str) -> Callable[[Any], Any]:
    compiled: Callable[[Any], Any] = fastjsonschema.compile(json.loads(key), use_default=False)
    return compiled


def check(schema: Schema, value: Any) -> tuple[str, str] | None:
    """Return the first problem as (field, reason), or None."""
    try:
        _validator(json.dumps(schema))(value)
    except fastjsonschema.JsonSchemaValueException as error:
        field = ".".join(str(part) for part in error.path[1:]) or "body"
        reason = str(error.message).removeprefix(str(error.name)).strip()
        if error.rule == "additionalProperties":
            return field, reason.replace("must not contain", "has unknown")[:300]
        if error.rule == "required":
            missing = sorted(set(error.rule_definition) - set(error.value))
            return (f"{field}.{missing[0]}" if field != "body" else missing[0]), "is missing"
        return field, reason[:300]
    return None
