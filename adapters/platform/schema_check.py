"""Checks values against a JSON Schema, up to the first problem: a field and a reason."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import fastjsonschema

MISSING = "is missing"  # the reason for a field that is not there


@lru_cache(maxsize=1000)
def _validator(schema_text: str) -> Callable[[Any], Any]:
    """Return the compiled schema. It comes as a text, because a dict cannot be the key of a cache."""
    compiled: Callable[[Any], Any] = fastjsonschema.compile(json.loads(schema_text), use_default=False)
    return compiled


def first_problem(schema: Mapping[str, Any], value: Any) -> tuple[str, str] | None:
    """Return the first problem as (field, reason), or None. field: a path such as `events.0`, or `body`."""
    try:
        _validator(json.dumps(schema))(value)
    except fastjsonschema.JsonSchemaValueException as error:
        # The first part of the path is the library's name for the whole value.
        field = ".".join(str(part) for part in error.path[1:]) or "body"
        reason = str(error.message).removeprefix(str(error.name)).strip()
        if error.rule == "additionalProperties":
            unknown = error.value.keys() - error.definition.get("properties", {}).keys()
            return field, f"has unknown {', '.join(sorted(unknown))}"[:300]
        if error.rule == "required":
            missing = sorted(set(error.rule_definition) - set(error.value))
            return (f"{field}.{missing[0]}" if field != "body" else missing[0]), MISSING
        return field, reason[:300]
    return None
