"""Examples of bodies and paths, made from schemas."""

import re
from typing import Any

from ingest.web.json_schema import Schema
from ingest.web.validate import first_problem

DEPTH_MAX = 6
# What a reader knows from the rest of the documentation. Each is used where its schema takes it.
NAMED: dict[str, Any] = {
    "user_id": "ada",
    "idempotency_key": "3f1c",
    "event_type": "LESSON_COMPLETED",
    "timezone": "Europe/Berlin",
    "reward": "mug",
    "board": "streaks",
    "prompt": "Which name is clearer?",
    "alias": "Ada L.",
    "url": "https://app.example.com/hooks",
}
TEXTS = (
    "text",
    "ada",
    "a1b2",
    "2026-11-20",
    "20261120T103000000000Z",
    "https://app.example.com",
    "A_NAME",
    "1",
)
FORMATS = {"date": "2026-11-20", "date-time": "2026-11-20T10:30:00Z", "uri": "https://app.example.com"}


def sample(schema: Schema, parts: dict[str, Schema], name: str = "", depth: int = 0) -> Any:
    """Return a value that a schema may take. parts: the schemas that `$ref` names.

    It is a guess: whoever shows it checks it first (`valid_sample`).
    """
    if "$ref" in schema:
        return sample(parts[schema["$ref"].rpartition("/")[2]], parts, name, depth)
    if choices := schema.get("anyOf", schema.get("oneOf")):
        return sample(choices[0], parts, name, depth)
    said = [schema[key] for key in ("example", "const", "default") if key in schema]
    if said or "enum" in schema:
        return (said or schema["enum"])[0]
    kind = schema.get("type", "object" if "properties" in schema else None)
    kind = next((each for each in kind if each != "null"), None) if isinstance(kind, list) else kind
    return _of_kind(schema, kind, parts, name, depth)


def _of_kind(schema: Schema, kind: str | None, parts: dict[str, Schema], name: str, depth: int) -> Any:
    if kind == "object":
        return _object(schema, parts, depth)
    if kind == "array":
        count = max(1, schema.get("minItems", 1))
        return [sample(schema.get("items", {}), parts, name, depth + 1)] * count if depth < DEPTH_MAX else []
    if kind in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        return max(least, 1) if schema.get("maximum", 1) >= 1 else least
    return True if kind == "boolean" else _text(schema, name)


def _object(schema: Schema, parts: dict[str, Schema], depth: int) -> dict[str, Any]:
    if depth >= DEPTH_MAX:
        return {}
    needed = schema.get("required", [])
    properties = schema.get("properties", {})
    return {name: sample(properties.get(name, {}), parts, name, depth + 1) for name in needed}


def _text(schema: Schema, name: str) -> Any:
    wanted = [NAMED[name]] if name in NAMED else []
    if form := schema.get("format"):
        wanted.append(FORMATS.get(form, "text"))
    pattern = schema.get("pattern", "")
    return next((each for each in (*wanted, *TEXTS) if re.search(pattern, str(each))), "text")


def valid_sample(schema: Schema, parts: dict[str, Schema]) -> Any:
    """Return an example of a body; None if none is found that the schema takes."""
    made = sample(schema, parts)
    return made if first_problem(_whole(schema, parts), made) is None else None


def _whole(schema: Any, parts: dict[str, Schema]) -> Any:
    """Return a schema with its `$ref`s replaced by what they name."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _whole(parts[schema["$ref"].rpartition("/")[2]], parts)
        return {name: _whole(each, parts) for name, each in schema.items()}
    return [_whole(each, parts) for each in schema] if isinstance(schema, list) else schema


def filled(path: str) -> str:
    """Return a path with examples in place of its parameters: /v1/users/ada."""
    return re.sub(r"\{(\w+)\}", lambda found: str(NAMED.get(found[1], found[1].upper())), path)
