"""Checks values against a JSON Schema. A problem is a field and a reason."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from adapters.platform.schema_check import MISSING, first_problem
from ingest.web.json_schema import Schema
from rules.json_values import BadValue, bad_values, check_strict

__all__ = ["MISSING", "PROBLEMS_MAX", "all_problems", "body_problems", "first_problem"]
PROBLEMS_MAX = 50  # the most faults that are reported of a body
ITEMS_SEEN_MAX = 1000  # the most items of a list that are checked


def all_problems(schema: Schema, value: Any) -> list[tuple[str, str]]:
    """Return every field at fault with its reason, the one of first_problem first; at most PROBLEMS_MAX."""
    first = first_problem(schema, value)
    if first is None:
        return []
    reasons = dict([first])  # by field
    for field, reason in islice(_problems(schema, value, ()), PROBLEMS_MAX):
        reasons.setdefault(field, reason)
    return list(reasons.items())[:PROBLEMS_MAX]


def body_problems(schema: Schema, body: Any, apart: str = "") -> list[tuple[str, str]]:
    """Return every field of a body at fault: what JSON could not hold again, and what the schema refuses.

    apart: as of check_strict.
    """
    try:
        check_strict(body, apart)
    except BadValue as first:
        if not isinstance(body, dict):
            return [(first.field, first.reason)]
        bad = bad_values({name: value for name, value in body.items() if name != apart})
        good = {name: value for name, value in body.items() if name not in bad}
        reasons = {error.field: error.reason for error in bad.values()}
        for field, reason in all_problems(schema, good):
            if field not in bad:
                reasons.setdefault(field, reason)
        return list(reasons.items())[:PROBLEMS_MAX]
    return all_problems(schema, body)


def _problems(schema: Schema, value: Any, at: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the parts of a value; where they are right, with the value as a whole."""
    first = first_problem(schema, value)
    if first is None:
        return
    has_parts = False
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                has_parts = True
                yield ".".join((*at, name)), MISSING
        unknown = {} if schema.get("additionalProperties", True) else value.keys() - properties.keys()
        if unknown:
            has_parts = True
            yield ".".join(at) or "body", f"has unknown {', '.join(sorted(unknown))}"[:300]
        names = {"type": "object", "propertyNames": schema.get("propertyNames", True)}
        if bad_names := first_problem(names, value):
            has_parts = True
            yield ".".join(at) or "body", bad_names[1]
    for name, inner, each in _inner_values(schema, value):
        for problem in _problems(inner, each, (*at, name)):
            has_parts = True
            yield problem
    if not has_parts:
        yield ".".join((*at, *(() if first[0] == "body" else (first[0],)))) or "body", first[1]


def _inner_values(schema: Schema, value: Any) -> Iterator[tuple[str, Schema, Any]]:
    """Yield the parts of an object or a list, each with its name or place and its schema."""
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, each in value.items():
            if isinstance(inner := properties.get(name, others), dict):
                yield name, inner, each
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, each in enumerate(value[:ITEMS_SEEN_MAX]):
            yield str(index), schema["items"], each
