"""Writes the reference of the API, with a form and a command of a shell for each operation.

`python -m infra.client_types` stores it beside the OpenAPI document, as the page of /v1/docs. The
documentation site has it too (docs_site.py). api_reference.html is its template.
"""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape

from ingest.openapi import TAGS
from ingest.web.json_schema import Schema
from ingest.web.served_parts import BEGIN, END, meanings
from ingest.web.validate import first_problem
from rules.parts import OF_PART, VALUES_OF_PARTS

TEMPLATE = Path(__file__).with_name("api_reference.html")
STYLESHEET, SCRIPT = "../app/docs.css", "../app/docs.js"  # relative to the address of the page
Operation = tuple[str, str, dict[str, Any]]  # method, path, and what the document says of it
Schemas = dict[str, Schema]  # those that a `$ref` names
LINE_CHARACTERS_MAX = 60  # a longer body is written in several lines
BOUND_WORDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} of them",
    "maxItems": "at most {} of them",
    "default": "{} by default",
    "maxProperties": "at most {} fields",
    "contentMediaType": "{}",
}
# A schema with one of these says more than a type.
DETAIL_KEYWORDS = frozenset(
    {
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
)
# Values that a reader knows from the rest of the documentation, by the name of their field or parameter.
NAMED_SAMPLES = {
    "user_id": "ada",
    "idempotency_key": "3f1c",
    "event_type": "LESSON_COMPLETED",
    "timezone": "Europe/Berlin",
    "reward": "mug",
    "board": "streaks",
    "prompt": "Which name is clearer?",
    "alias": "Ada L.",
    "url": "https://app.example.com/hooks",
    "date": "2026-11-20",
}
# The sample of a text is the first of these that the field's pattern matches.
SAMPLE_TEXTS = (
    *("text", "ada", "a1b2", "2026-11-20", "20261120T103000000000Z"),
    *("https://app.example.com", "A_NAME", "1"),
)
FORMAT_SAMPLES = {"date": "2026-11-20", "date-time": "2026-11-20T10:30:00Z", "uri": "https://app.example.com"}
SHELL_SETTINGS = (
    "export STREAKLINE_URL=https://...  # the address of the API, without /v1\n"
    "export STREAKLINE_TOKEN=...        # a JWT of the user"
)


def reference(
    document: dict[str, Any],
    stylesheet: str = STYLESHEET,
    script: str = SCRIPT,
    is_within_site: bool = False,
    tag: str = "",
) -> str:
    """Return the page of an OpenAPI document, as HTML. Its texts are escaped.

    is_within_site: only what a page of the documentation site has between its head and its foot. There the
    operations of each tag have a page, and the page without a tag lists them all, with what is common.
    """
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    environment = Environment(autoescape=True)
    environment.globals |= {
        "type_words": type_words,
        "bound_words": bound_words,
        "inner_schemas": inner_schemas,
        "body_text": body_text,
        "parameter_sample": _parameter_sample,
        "curl": curl,
        "tag_id": tag_id,
        "with_current_time": with_current_time,
        "shell_settings": SHELL_SETTINGS,
        "home": "../api.html" if tag else "",
    }
    return environment.from_string(TEMPLATE.read_text()).render(
        document=document,
        stylesheet=stylesheet,
        script=script,
        is_within_site=is_within_site,
        tag=tag,
        groups=[_group(each, operations) for each in TAGS if tag in ("", each)],
        framed=framed,
        meaning=meaning,
    )


def _group(tag: str, operations: Sequence[Operation]) -> tuple[str, str, list[tuple[Operation, str]]]:
    """Return a tag, its part, its operations, each with a part of its own; "" for no part.

    The operations of a tag that is of one part have no part of their own: comments of parts do not nest.
    """
    own = [operation for operation in operations if operation[2]["tags"] == [tag]]
    parts = {operation.get(OF_PART, "") for _, _, operation in own}
    part = parts.pop() if len(parts) == 1 else ""
    return tag, part, [(each, "" if part else each[2].get(OF_PART, "")) for each in own]


def framed(html: str, part: str) -> Markup:
    """Return HTML within the comments of a part (ingest/web/served_parts.py); as it is if part is ""."""
    return Markup(f"{BEGIN.format(part)}{html}{END}" if part else html)  # noqa: S704 (it is HTML already)


def meaning(schema: Schema) -> Markup:
    """Return a schema's description as HTML, in which sentences about values of parts are framed."""
    parts = schema.get(VALUES_OF_PARTS, {})
    said = meanings(schema) if parts else [("", schema["description"])]
    return Markup().join(
        framed(escape(f"{'; ' if place else ''}{text}"), parts.get(value, ""))
        for place, (value, text) in enumerate(said)
    )


def tag_id(tag: str) -> str:
    """Return the id of a tag's heading."""
    return tag.lower().replace(" ", "-")


def type_words(schema: Schema) -> str:
    """Return a schema's type in words: `text or null`, `list of object`."""
    if "$ref" in schema:
        return _ref_name(schema)
    if "const" in schema:
        return f"always {json.dumps(schema['const'])}"
    if choices := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(dict.fromkeys(map(type_words, choices)))
    kind = schema.get("type", "object" if "properties" in schema else "anything")
    words = {"string": "text", "array": "list"}
    if "items" in schema:
        words["array"] = f"list of {type_words(schema['items'])}"
    return " or ".join(words.get(name, name) for name in ([kind] if isinstance(kind, str) else kind))


def bound_words(schema: Schema) -> list[str]:
    """Return the bounds of a schema's values in words: `at least 1`, `at most 100 of them`."""
    return [words.format(schema[keyword]) for keyword, words in BOUND_WORDS.items() if keyword in schema]


def inner_schemas(schema: Schema) -> list[Schema]:
    """Return the schemas of list items, map values and alternatives, of those that say more than a type."""
    inner: list[Schema] = [schema["items"]] if "items" in schema else []
    inner += schema.get("anyOf") or schema.get("oneOf") or []
    if isinstance(values := schema.get("additionalProperties"), dict):
        inner.append(values)
    return [part for part in inner if DETAIL_KEYWORDS & part.keys()]


def curl(method: str, path: str, operation: dict[str, Any], schemas: Schemas) -> str:
    """Return the command that calls an operation: a reader may paste it into a shell."""
    query = "&".join(
        f"{parameter['name']}={_parameter_sample(parameter['name'])}"
        for parameter in operation["parameters"]
        if parameter["in"] == "query" and parameter["required"]
    )
    target = re.sub(r"\{(\w+)\}", lambda match: _parameter_sample(match[1]), path) + f"?{query}" * bool(query)
    option = "" if method == "get" else f"-X {method.upper()} "
    lines = [f'curl {option}"$STREAKLINE_URL{target}"']
    if operation["security"]:
        lines.append('  -H "Authorization: Bearer $STREAKLINE_TOKEN"')
    if body := operation.get("requestBody"):
        (media,) = body["content"]
        data = body_text(operation, schemas) or "@body.json"
        lines += [f"  -H 'Content-Type: {media}'", f"  -d {shlex.quote(data)}"]
    return " \\\n".join(lines)


def body_text(operation: dict[str, Any], schemas: Schemas) -> str:
    """Return an example of an operation's body, as JSON; "" if none is found."""
    (content,) = operation["requestBody"]["content"].values()
    example = valid_sample(content["schema"], schemas)
    return "" if example is None else _json_text(example)


def with_current_time(command: str) -> str:
    """Return a command whose event happens when it is run: an old one would be refused (rule 3)."""
    return re.sub(r'("occurred_at": ")[^"]*', lambda match: match[1] + """'"$(date -u +%FT%TZ)"'""", command)


def valid_sample(schema: Schema, schemas: Schemas) -> Any:
    """Return an example of a body; None if none is found that the schema takes."""
    body = sample(schema, schemas)
    return body if first_problem(_without_refs(schema, schemas), body) is None else None


def sample(schema: Schema, schemas: Schemas, name: str = "") -> Any:
    """Return a value that a schema may take: its example, or a guess. name: of its field."""
    if "$ref" in schema:
        return sample(schemas[_ref_name(schema)], schemas, name)
    if choices := schema.get("anyOf", schema.get("oneOf")):
        return sample(choices[0], schemas, name)
    for keyword in ("example", "const", "default"):
        if keyword in schema:
            return schema[keyword]
    kind = schema.get("type", "object")
    return _sample_of_kind(kind if isinstance(kind, str) else kind[0], schema, schemas, name)


def _sample_of_kind(kind: str, schema: Schema, schemas: Schemas, name: str) -> Any:
    if kind == "object":
        fields = schema.get("properties", {})
        return {field: sample(fields.get(field, {}), schemas, field) for field in schema.get("required", ())}
    if kind == "array":
        return [sample(schema.get("items", {}), schemas, name)] * max(1, schema.get("minItems", 1))
    if kind == "string":
        return _sample_text(schema, name)
    return True if kind == "boolean" else _sample_number(schema)


def _sample_number(schema: Schema) -> float:
    least: float = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    return max(least, 1) if schema.get("maximum", 1) >= 1 else least


def _sample_text(schema: Schema, name: str) -> str:
    if "enum" in schema:
        return str(schema["enum"][0])
    texts = [NAMED_SAMPLES[name]] if name in NAMED_SAMPLES else []
    if "format" in schema:
        texts.append(FORMAT_SAMPLES.get(schema["format"], "text"))
    pattern = schema.get("pattern", "")
    return next((text for text in (*texts, *SAMPLE_TEXTS) if re.search(pattern, text)), "text")


def _parameter_sample(name: str) -> str:
    return NAMED_SAMPLES.get(name, name.upper())


def _ref_name(schema: Schema) -> str:
    return str(schema["$ref"].rpartition("/")[2])


def _without_refs(schema: Any, schemas: Schemas) -> Any:
    """Return a schema with what its `$ref`s name in their place."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _without_refs(schemas[_ref_name(schema)], schemas)
        return {name: _without_refs(part, schemas) for name, part in schema.items()}
    return [_without_refs(part, schemas) for part in schema] if isinstance(schema, list) else schema


def _json_text(body: Any) -> str:
    short = json.dumps(body, ensure_ascii=False)
    return short if len(short) <= LINE_CHARACTERS_MAX else json.dumps(body, ensure_ascii=False, indent=2)
