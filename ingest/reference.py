"""The reference: one page of HTML from an OpenAPI document, with examples and commands of a shell. It
needs no script and no style of its own.
"""

import json
import re
import shlex
from collections.abc import Iterable
from html import escape
from typing import Any

from ingest.web.json_schema import Schema
from ingest.web.validate import first_problem

# Which part of the API an operation belongs to, in the order of the reference.


PRIVACY = "Export and erasure"
ADMIN = "Administration"
# The first pattern that fits `METHOD /path`.
PATTERNS = (
    (r"DELETE /v1/(users|leads)/[^/]+$|.*/export$|.*/lift$|.* /v1/erasures/.*", PRIVACY),
    (r".* /v1/events$", "Events"),
    (r".* /v1/(questions|agents|stats|subscriptions)\b.*|.*/answers$", "Questions"),
    (r".*/(balance|ledger|holds|redemptions|clawbacks|rewards)\b.*", "Points and rewards"),
    (r".* /v1/leaderboards/.*|.*/alias$", "Leaderboards"),
    (r".* /v1/users/.*", "Streaks and profile"),
    (r".* /v1/(leads|hooks)\b.*", "Leads"),
    (r".* /v1/webhook-endpoints\b.*", "Outgoing webhooks"),
    (r".* /v1/(rules|review|amnesties|operations)\b.*", ADMIN),
    (r".*", "Service"),
)
ORDER = (
    *("Events", "Streaks and profile", "Leaderboards", "Points and rewards", "Questions", "Leads"),
    *("Outgoing webhooks", PRIVACY, ADMIN, "Service"),
)
VOID = frozenset({"meta", "link"})
SHAPE_DEPTH_MAX = 8
BOUNDS = (
    *(("minimum", "at least {}"), ("exclusiveMinimum", "above {}"), ("maximum", "at most {}")),
    *(("minLength", "at least {} characters"), ("maxLength", "at most {} characters")),
    *(("minItems", "at least {} of them"), ("maxItems", "at most {} of them"), ("default", "{} by default")),
    *(("maxProperties", "at most {} fields"), ("contentMediaType", "{}")),
)
SAMPLE_DEPTH_MAX = 6
FORMATS = {"date": "2026-11-20", "date-time": "2026-11-20T10:30:00Z", "uri": "https://app.example.com"}
SETTINGS = (
    "export STREAKLINE_URL=https://...  # the address of this page, up to /v1\n"
    "export STREAKLINE_TOKEN=...        # a JWT of the user"
)
LINE_MAX = 60
A_DATE = "2026-11-20"
NOW = """'"$(date -u +%FT%TZ)"'"""
SUCCESS = "2"
FIRST = "/v1/events"


def tag_of(method: str, path: str) -> str:
    """Return the tag of an operation: one of ORDER."""
    return next(tag for pattern, tag in PATTERNS if re.fullmatch(pattern, f"{method.upper()} {path}"))


# Makes HTML. Text is always escaped; only what `element` made is not escaped again.


class Markup(str):
    """HTML that is safe as it is."""

    __slots__ = ()


def element(tag: str, *children: str | None, **attributes: str | bool) -> Markup:
    """Return an element. A child that is None is left out; `class_` is the attribute class.

    An attribute that is True has no value; False: it is left out.
    """
    given = "".join(
        f" {_name(name)}" if value is True else f' {_name(name)}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not False
    )
    inner = join_markup(children)
    return Markup(f"<{tag}{given}>" if tag in VOID else f"<{tag}{given}>{inner}</{tag}>")


def join_markup(children: Iterable[str | None]) -> Markup:
    """Return children one after the other, texts escaped."""
    return Markup(
        "".join(
            each if isinstance(each, Markup) else escape(each, quote=False)
            for each in children
            if each is not None
        )
    )


def _name(attribute: str) -> str:
    return attribute.rstrip("_").replace("_", "-")


# Shows a JSON Schema as a list that people read.


def shape(schema: Schema, depth: int = 0) -> Markup:
    """Return what a schema takes: its type, its bounds, what it means, and its fields."""
    if depth > SHAPE_DEPTH_MAX:
        return Markup("")
    inner = _fields(schema, depth) or _nested_fields(schema, depth)
    return join_markup([element("span", _facts(schema), class_="facts"), _description(schema), inner])


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
        found.append(join_markup(["one of ", *_with_separator(values, ", ")]))
    if "pattern" in schema:
        found.append(join_markup(["matches ", element("code", schema["pattern"])]))
    if schema.get("additionalProperties") is False:
        found.append("no other fields")
    return join_markup(_with_separator(found, "; "))


def _with_separator(parts: list[Any], mark: str) -> list[Any]:
    return [each for part in parts for each in (mark, part)][1:]


def _description(schema: Schema) -> Markup | None:
    return element("span", schema["description"], class_="meaning") if schema.get("description") else None


def _fields(schema: Schema, depth: int) -> Markup | None:
    properties = schema.get("properties")
    if not properties:
        return None
    required = schema.get("required", [])
    rows = [
        join_markup(
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


def _nested_fields(schema: Schema, depth: int) -> Markup | None:
    """Return the fields of what is in a list, of the values of a map, and of each alternative."""
    within: list[Schema] = schema.get("anyOf") or schema.get("oneOf") or []
    if "items" in schema:
        within = [schema["items"]]
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        within = [*within, more]
    shown = [shape(each, depth + 1) for each in within if _has_details(each)]
    return element("ul", *(element("li", each) for each in shown), class_="inside") if shown else None


def _has_details(schema: Schema) -> bool:
    keywords = {
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
    return bool(keywords & schema.keys())


# Examples of bodies and paths, made from schemas.


# What a reader knows from the rest of the documentation. Each is used where its schema takes it.
NAMED_SAMPLES: dict[str, Any] = {
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
    return _sample_of_type(schema, kind, parts, name, depth)


def _sample_of_type(schema: Schema, kind: str | None, parts: dict[str, Schema], name: str, depth: int) -> Any:
    if kind == "object":
        return _object(schema, parts, depth)
    if kind == "array":
        count = max(1, schema.get("minItems", 1))
        return (
            [sample(schema.get("items", {}), parts, name, depth + 1)] * count
            if depth < SAMPLE_DEPTH_MAX
            else []
        )
    if kind in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        return max(least, 1) if schema.get("maximum", 1) >= 1 else least
    return True if kind == "boolean" else _text(schema, name)


def _object(schema: Schema, parts: dict[str, Schema], depth: int) -> dict[str, Any]:
    if depth >= SAMPLE_DEPTH_MAX:
        return {}
    needed = schema.get("required", [])
    properties = schema.get("properties", {})
    return {name: sample(properties.get(name, {}), parts, name, depth + 1) for name in needed}


def _text(schema: Schema, name: str) -> Any:
    wanted = [NAMED_SAMPLES[name]] if name in NAMED_SAMPLES else []
    if form := schema.get("format"):
        wanted.append(FORMATS.get(form, "text"))
    pattern = schema.get("pattern", "")
    return next((each for each in (*wanted, *TEXTS) if re.search(pattern, str(each))), "text")


def valid_sample(schema: Schema, parts: dict[str, Schema]) -> Any:
    """Return an example of a body; None if none is found that the schema takes."""
    made = sample(schema, parts)
    return made if first_problem(_resolved_schema(schema, parts), made) is None else None


def _resolved_schema(schema: Any, parts: dict[str, Schema]) -> Any:
    """Return a schema with its `$ref`s replaced by what they name."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _resolved_schema(parts[schema["$ref"].rpartition("/")[2]], parts)
        return {name: _resolved_schema(each, parts) for name, each in schema.items()}
    return [_resolved_schema(each, parts) for each in schema] if isinstance(schema, list) else schema


def example_path(path: str) -> str:
    """Return a path with examples in place of its parameters: /v1/users/ada."""
    return re.sub(r"\{(\w+)\}", lambda match: str(NAMED_SAMPLES.get(match[1], match[1].upper())), path)


# Commands of a shell that call an operation.


def curl(method: str, path: str, operation: dict[str, Any], parts: dict[str, Schema]) -> str:
    """Return a command that a reader may paste into a shell. parts: the schemas that `$ref` names."""
    needed = [each["name"] for each in operation["parameters"] if each["in"] == "query" and each["required"]]
    query = "&".join(f"{name}={A_DATE if name == 'date' else name.upper()}" for name in needed)
    target = example_path(path) + (f"?{query}" if query else "")
    lines = [f'curl {"" if method == "get" else f"-X {method.upper()} "}"$STREAKLINE_URL{target}"']
    if operation["security"]:
        lines.append('  -H "Authorization: Bearer $STREAKLINE_TOKEN"')
    if body := operation.get("requestBody"):
        media, content = next(iter(body["content"].items()))
        made = valid_sample(content["schema"], parts)
        data = "@body.json" if made is None else _json_text(made)
        lines += [f"  -H 'Content-Type: {media}'", f"  -d {shlex.quote(data)}"]
    return " \\\n".join(lines)


def _json_text(body: Any) -> str:
    short = json.dumps(body, ensure_ascii=False)
    return short if len(short) <= LINE_MAX else json.dumps(body, ensure_ascii=False, indent=2)


def with_current_time(command: str) -> str:
    """Return a command whose event happens when it is run: an old one would be refused (rule 3)."""
    return re.sub(r'("occurred_at": ")[^"]*', lambda match: match[1] + NOW, command)


Operation = dict[str, Any]


def reference(document: dict[str, Any], stylesheet: str) -> str:
    """Return the page. stylesheet: the address of its style, relative to the page's own."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("title", f"{document['info']['title']} API"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="stylesheet", href=stylesheet),
    )
    groups = [(tag, found) for tag in ORDER if (found := _operations(document, tag))]
    parts = document["components"]["schemas"]
    main = element(
        "main",
        element("h1", f"{document['info']['title']} API", tabindex="-1"),
        element("p", document["info"]["description"], "."),
        _first_steps(document),
        *(_group(tag, found, parts) for tag, found in groups),
        _errors(document),
        _schemas(parts),
        id="main",
    )
    skip = element("a", "Skip to the content", href="#main", class_="skip")
    body = element("body", skip, _contents(groups), main)
    return "<!doctype html>" + element("html", head, body, lang="en")


def _operations(document: dict[str, Any], tag: str) -> list[tuple[str, str, Operation]]:
    return [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if operation["tags"] == [tag]
    ]


def _contents(groups: list[tuple[str, list[tuple[str, str, Operation]]]]) -> Markup:
    def entry(method: str, path: str, operation: Operation) -> Markup:
        name = element("code", f"{method.upper()} {path}")
        return element("li", element("a", name, href=f"#{operation['operationId']}"))

    listed = [
        element(
            "details",
            element("summary", tag),
            element("ul", *(entry(*each) for each in found)),
            open=found[0][1] == FIRST,
        )
        for tag, found in groups
    ]
    further = [
        ("First event", "#first"),
        ("Errors", "#errors"),
        ("Schemas", "#schemas"),
        ("OpenAPI", "openapi.json"),
    ]
    links = element("ul", *(element("li", element("a", name, href=target)) for name, target in further))
    return element("nav", links, *listed, aria_label="Contents")


def _first_steps(document: dict[str, Any]) -> Markup:
    """Return how to send the first event, and see what came of it."""
    parts = document["components"]["schemas"]
    event = document["paths"][FIRST]["post"]
    profile = document["paths"]["/v1/users/{user_id}"]["get"]
    return element(
        "section",
        element("h2", "Send the first event", id="first"),
        element(
            "p",
            "Every call has a bearer token of your sign-in service; its ",
            element("code", "sub"),
            " is the user. On the laptop, ",
            element("code", "streakline token --user ada"),
            " makes one.",
        ),
        _code(SETTINGS, "Settings of the shell"),
        element(
            "p",
            "Send what happened. The same event with the same key may be sent any number of times:"
            " it counts once.",
        ),
        _code(with_current_time(curl("post", FIRST, event, parts)), "Send an event"),
        element("p", "A moment later the profile has it:"),
        _code(curl("get", "/v1/users/{user_id}", profile, parts), "Read the profile"),
    )


def _group(tag: str, operations: list[tuple[str, str, Operation]], parts: dict[str, Schema]) -> Markup:
    return element("section", element("h2", tag), *(_operation(*each, parts) for each in operations))


def _operation(method: str, path: str, operation: Operation, parts: dict[str, Schema]) -> Markup:
    name = operation["operationId"]
    body = operation.get("requestBody")
    media = next(iter(body["content"].items())) if body else None
    return element(
        "article",
        element(
            "h3",
            element("code", method.upper(), class_=f"method {method}"),
            " ",
            element("code", path),
            id=name,
        ),
        element("p", operation["summary"], "."),
        element("p", operation["description"]) if operation.get("description") else None,
        None if operation["security"] else element("p", "Needs no token.", class_="note"),
        _parameters(operation["parameters"]),
        join_markup(
            [element("h4", f"Body: {media[0]}"), element("div", shape(media[1]["schema"]), class_="shape")]
        )
        if media
        else None,
        _code(curl(method, path, operation, parts), f"curl of {method.upper()} {path}"),
        *(_answer(code, each) for code, each in operation["responses"].items() if code.startswith(SUCCESS)),
        element("p", element("a", "Errors", href="#errors"), " are the same everywhere.", class_="note"),
        aria_labelledby=name,
    )


def _parameters(parameters: list[dict[str, Any]]) -> Markup | None:
    if not parameters:
        return None
    rows = [
        join_markup(
            [
                element(
                    "dt",
                    element("code", each["name"]),
                    f" in the {each['in']}",
                    element("em", " required") if each["required"] else None,
                ),
                element("dd", shape(each["schema"])),
            ]
        )
        for each in parameters
    ]
    return join_markup([element("h4", "Parameters"), element("dl", *rows, class_="fields")])


def _answer(code: str, response: dict[str, Any]) -> Markup:
    media, content = next(iter(response["content"].items()))
    return join_markup(
        [element("h4", f"Answer {code}: {media}"), element("div", shape(content["schema"]), class_="shape")]
    )


def _code(text: str, label: str) -> Markup:
    # It scrolls where it is wide, so the keyboard must be able to come to it.
    return element("pre", element("code", text), tabindex="0", role="region", aria_label=label)


def _errors(document: dict[str, Any]) -> Markup:
    """Return the refusals, which all operations share, and the codes that distinguish them."""
    responses = document["paths"][FIRST]["post"]["responses"]
    rows = [
        join_markup([element("dt", element("code", code)), element("dd", each["description"])])
        for code, each in responses.items()
        if not code.startswith(SUCCESS)
    ]
    return element(
        "section",
        element("h2", "Errors", id="errors"),
        element(
            "p",
            "The body of an error is ",
            element("a", "Error", href="#schema-Error"),
            ": its code is for programs, its message for people.",
        ),
        element("dl", *rows, class_="fields"),
    )


def _schemas(parts: dict[str, Schema]) -> Markup:
    shown = [
        element(
            "article", element("h3", name, id=f"schema-{name}"), element("div", shape(each), class_="shape")
        )
        for name, each in parts.items()
    ]
    return element("section", element("h2", "Schemas", id="schemas"), *shown)
