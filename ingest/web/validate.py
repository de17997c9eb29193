"""Checks values against a JSON Schema. A problem is a field and a reason."""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import fastjsonschema

from ingest.web.json_schema import Schema


@lru_cache(maxsize=1000)
def _validator(key: str) -> Callable[[Any], Any]:
    compiled: Callable[[Any], Any] = fastjsonschema.compile(json.loads(key), use_default=False)
    return compiled


def first_problem(schema: Schema, value: Any) -> tuple[str, str] | None:
    """Return the first problem as (field, reason), or None. field: a path such as `events.0`, or `body`."""
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
