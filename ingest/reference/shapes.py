"""Shows a JSON Schema as a list that people read."""

from typing import Any

from ingest.reference.markup import Markup, element, joined
from ingest.web.json_schema import Schema

DEPTH_MAX = 8
BOUNDS = (
    *(("minimum", "at least {}"), ("exclusiveMinimum", "above {}"), ("maximum", "at most {}")),
    *(("minLength", "at least {} characters"), ("maxLength", "at most {} characters")),
    *(("minItems", "at least {} of them"), ("maxItems", "at most {} of them"), ("default", "{} by default")),
    *(("maxProperties", "at most {} fields"), ("contentMediaType", "{}")),
)


def shape(schema: Schema, depth: int = 0) -> Markup:
    """Return what a schema takes: its type, its bounds, what it means, and its fields."""
    if depth > DEPTH_MAX:
        return Markup("")
    inner = _fields(schema, depth) or _inside(schema, depth)
    return joined([element("span", _facts(schema), class_="facts"), _meaning(schema), inner])


def type_of(schema: Schema) -> str:
    """Return a schema's type in words: `text or null`, `list of objects`."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return f"always {schema['const']!r}".replace("'", '"')
    if choices := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(dict.fromkeys(type_of(each) for each in choices))
    kind = schema.get("type", "object" if "properties" in schema else "anything")
    kinds = [kind] if isinstance(kind, str) else kind
    words = [{"string": "text", "array": "list"}.get(each, each) for each in kinds]
    if "items" in schema:
        words = [f"list of {type_of(schema['items'])}" if each == "list" else each for each in words]
    return " or ".join(words)


def _facts(schema: Schema) -> Markup:
    found: list[str] = [
        element("a", type_of(schema), href=f"#schema-{type_of(schema)}")
        if "$ref" in schema
        else type_of(schema)
    ]
    if "format" in schema:
        found.append(str(schema["format"]))
    found += [words.format(schema[key]) for key, words in BOUNDS if key in schema]
    if "enum" in schema:
        values = [element("code", str(each)) for each in schema["enum"]]
        found.append(joined(["one of ", *_between(values, ", ")]))
    if "pattern" in schema:
        found.append(joined(["matches ", element("code", schema["pattern"])]))
    if schema.get("additionalProperties") is False:
        found.append("no other fields")
    return joined(_between(found, "; "))


def _between(parts: list[Any], mark: str) -> list[Any]:
    return [each for part in parts for each in (mark, part)][1:]


def _meaning(schema: Schema) -> Markup | None:
    return element("span", schema["description"], class_="meaning") if schema.get("description") else None


def _fields(schema: Schema, depth: int) -> Markup | None:
    properties = schema.get("properties")
    if not properties:
        return None
    required = schema.get("required", [])
    rows = [
        joined(
            [
                element(
                    "dt", element("code", name), element("em", " required") if name in required else None
                ),
                element("dd", shape(each, depth + 1)),
            ]
        )
        for name, each in properties.items()
    ]
    return element("dl", *rows, class_="fields")


def _inside(schema: Schema, depth: int) -> Markup | None:
    """Return the fields of what is in a list, of the values of a map, and of each alternative."""
    within: list[Schema] = schema.get("anyOf") or schema.get("oneOf") or []
    if "items" in schema:
        within = [schema["items"]]
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        within = [*within, more]
    shown = [shape(each, depth + 1) for each in within if _tells_more(each)]
    return element("ul", *(element("li", each) for each in shown), class_="inside") if shown else None


def _tells_more(schema: Schema) -> bool:
    told = {
        "$ref",
        "properties",
        "items",
        "anyOf",
        "oneOf",
        "enum",
        "pattern",
        "description",
        "additionalProperties",
    }
    return bool(told & schema.keys())
