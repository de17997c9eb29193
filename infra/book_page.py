"""Writes the tables of docs/book.md: the fields of a book, from its schema (rules/book/book_schema.py)."""

from collections.abc import Iterator, Mapping
from typing import Any

from rules.book.book_schema import BOOK

Schema = Mapping[str, Any]
WORDS = {"string": "text", "array": "list", "boolean": "true or false", "object": "a JSON Schema"}
HEAD = "| field | value | meaning |\n|---|---|---|"


def book_tables() -> str:
    """Return a section for each part of a book, with a table of its fields. A required one is **bold**."""
    return "\n".join(
        part_text(name, schema) for name, schema in BOOK["properties"].items() if name != "format"
    )


def part_text(name: str, schema: Schema) -> str:
    """Return one section. The fields of an entry of a map begin with NAME, those of a list with `[]`."""
    nested = schema.get("items") or schema.get("additionalProperties") or {}
    meaning = ": ".join(part["description"] for part in (schema, nested) if "description" in part)
    rows = [f"| {field} | {value} | {words} |" for field, value, words in _rows("", schema)]
    return "\n".join([f"## `{name}`", "", f"{meaning[:1].upper()}{meaning[1:]}.", "", HEAD, *rows, ""])


def _rows(path: str, schema: Schema) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and meaning of each field below a path.

    Where two lists have one schema, the second refers to the first.
    """
    lists: dict[int, str] = {}  # by the identity of its schema: the name of the first list that has it
    for name, part in schema.get("properties", {}).items():
        field = f"**`{path}{name}`**" if name in schema.get("required", ()) else f"`{path}{name}`"
        if id(part) in lists:
            yield field, "list", f"as `{lists[id(part)]}`"
            continue
        if "items" in part:
            lists[id(part)] = name
        yield field, _value(part), part.get("description") or part.get("items", {}).get("description", "")
        yield from _rows(f"{path}{name}.", part)
    if isinstance(entries := schema.get("additionalProperties"), dict):
        yield from _rows(f"{path}NAME.", entries)
    if "items" in schema:
        yield from _rows(f"{path.removesuffix('.')}[].", schema["items"])


def _value(schema: Schema) -> str:
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    if "items" in schema:
        return "list"
    if schema.get("properties") or schema.get("propertyNames"):
        return f"{schema['minimum']} to {schema['maximum']:,}, or object" if "maximum" in schema else "object"
    least = schema.get("minimum", "above 0" if "exclusiveMinimum" in schema else None)
    if "maximum" in schema:
        return f"{least} to {schema['maximum']:,}"
    length = f", up to {schema['maxLength']:,}" if "maxLength" in schema else ""
    return WORDS.get(schema.get("type", ""), "") + length
