"""Checks values against a JSON Schema. A problem is a field and a reason.

The doors check bodies by body_problems, and all else by first_problem. The library behind first_problem stops
at the first problem. So a value that has one is walked here part by part, to report all of them.
"""

from collections.abc import Iterator, Sequence
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
    reasons = dict([first])  # by field: the first reason is reported
    for field, reason in islice(_problems(schema, value, ()), PROBLEMS_MAX):
        reasons.setdefault(field, reason)
    return list(reasons.items())[:PROBLEMS_MAX]


def body_problems(schema: Schema, body: Any, apart: str = "") -> list[tuple[str, str]]:
    """Return every field of a body at fault: what JSON could not hold again, and what the schema refuses.

    apart: a field whose parts the caller checks each by itself.
    """
    try:
        check_strict(body, apart)
    except BadValue as first:
        if isinstance(body, dict):
            return _problems_beside_bad_values(schema, body, apart)
        return [(first.field, first.reason)]
    return all_problems(schema, body)


def _problems_beside_bad_values(schema: Schema, body: dict[str, Any], apart: str) -> list[tuple[str, str]]:
    """Return every field at fault of a body that has values which JSON could not hold again."""
    bad = bad_values({name: value for name, value in body.items() if name != apart})
    # Without the bad fields. The schema then calls them missing, so its word on them is left out.
    good = {name: value for name, value in body.items() if name not in bad}
    reasons = {error.field: error.reason for error in bad.values()}
    for field, reason in all_problems(schema, good):
        if field not in bad:
            reasons.setdefault(field, reason)
    return list(reasons.items())[:PROBLEMS_MAX]


def _problems(schema: Schema, value: Any, at: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the parts of a value; where they are right, with the value as a whole.

    at: the names around the value, outermost first.
    """
    first = first_problem(schema, value)
    if first is None:
        return
    are_parts_right = True
    for problem in _part_problems(schema, value, at):
        are_parts_right = False
        yield problem
    if are_parts_right:
        field, reason = first
        yield _field(at if field == "body" else (*at, field)), reason


def _part_problems(schema: Schema, value: Any, at: Sequence[str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        yield from _object_problems(schema, value, at)
    for name, inner_schema, inner_value in _inner_values(schema, value):
        yield from _problems(inner_schema, inner_value, (*at, name))


def _object_problems(schema: Schema, value: dict[str, Any], at: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield which fields of an object are missing, unknown or badly named."""
    for name in schema.get("required", ()):
        if name not in value:
            yield ".".join((*at, name)), MISSING
    properties = schema.get("properties", {})
    unknown = {} if schema.get("additionalProperties", True) else value.keys() - properties.keys()
    if unknown:
        yield _field(at), f"has unknown {', '.join(sorted(unknown))}"[:300]
    names = {"type": "object", "propertyNames": schema.get("propertyNames", True)}
    if bad_names := first_problem(names, value):
        yield _field(at), bad_names[1]


def _field(at: Sequence[str]) -> str:
    return ".".join(at) or "body"


def _inner_values(schema: Schema, value: Any) -> Iterator[tuple[str, Schema, Any]]:
    """Yield (name or place, schema, value) of each part of an object or a list that a schema describes."""
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, each in value.items():
            inner_schema = properties.get(name, others)
            if isinstance(inner_schema, dict):
                yield name, inner_schema, each
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, each in enumerate(value[:ITEMS_SEEN_MAX]):
            yield str(index), schema["items"], each
