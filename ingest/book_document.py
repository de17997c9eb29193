"""Reads a document of rules: a book, or everything that is wrong with it, each fault with its place."""

import json
import re
from collections.abc import Iterator
from typing import Any

from ingest.web.validate import MISSING, all_problems, first_problem
from rules.book.book import Book
from rules.book.book_schema import BOOK
from rules.book.contracts import Path
from rules.book.document import BookRefused, Fault, faults_of, read_book
from rules.json_values import check_strict

DOCUMENT_BYTES_MAX = 300_000  # an item of a table may have 400 KB
CONTRACT_BYTES_MAX = 16_384  # each event of the type is held against the contract


def book_of_document(document: Any) -> Book:
    """Return the book of a document; raises BookRefused."""
    try:
        check_strict(document)
    except ValueError as error:
        raise BookRefused([Fault((), str(error))]) from None
    if (size := len(json.dumps(document, ensure_ascii=False).encode())) > DOCUMENT_BYTES_MAX:
        raise BookRefused([Fault((), f"has {size} bytes as JSON; {DOCUMENT_BYTES_MAX} are allowed")])
    if problems := all_problems(BOOK, document):
        faults: list[Fault] = []
        for field, reason in problems:
            faults += _structural_faults(document, _path_of(document, field), reason)
        raise BookRefused([*dict.fromkeys(faults)])
    # faults_of needs a document of the right shape.
    if faults := [*_float_faults(document)] or faults_of(document):
        raise BookRefused(faults)
    book = read_book(document)
    _check_contracts(book)
    return book


def _path_of(document: Any, field: str) -> Path:
    """Return the keys and indexes that a field's name stands for. A key may have dots in it.

    Example: `event_types.read.page.points` is (event_types, read.page, points), if a type is `read.page`.
    """
    parts = [] if field == "body" else field.split(".")
    path: list[str | int] = []
    while parts:
        size = 1
        if isinstance(document, dict):
            prefixes = (count for count in range(1, len(parts) + 1) if ".".join(parts[:count]) in document)
            size = next(prefixes, 1)
        key: str | int = int(parts[0]) if isinstance(document, list) else ".".join(parts[:size])
        path, parts = [*path, key], parts[size:]
        is_there = isinstance(document, list) or (isinstance(document, dict) and key in document)
        document = document[key] if is_there else None
    return tuple(path)


def _structural_faults(document: Any, path: Path, reason: str) -> list[Fault]:
    """Return the faults behind a problem with the schema. What is missing may be there under another name."""
    if reason == MISSING:
        return [Fault(path, reason), *_wrong_keys(document, path[:-1])]
    if path == ("daily", "day_starts_at"):
        # YAML reads 5:30 without quotation marks as the number 330.
        return [Fault(path, 'must be a time from "00:00" to "06:00", in quotation marks')]
    return [*_wrong_keys(document, path)] or [Fault(path, reason)]


def _wrong_keys(document: Any, path: Path) -> Iterator[Fault]:
    """Yield the keys that the object at a path may not have, each by itself: a schema reports the object."""
    section, schema = document, BOOK
    for key in path:  # the name of a field, or an index of a list
        inside = schema.get("properties", {}).get(
            key, schema.get("items", schema.get("additionalProperties"))
        )
        if not isinstance(inside, dict):
            return
        section, schema = section[key], inside
    if not isinstance(section, dict):
        return
    properties, pattern = schema.get("properties", {}), schema.get("propertyNames", {}).get("pattern", "")
    for key in section:
        if schema.get("additionalProperties") is False and key not in properties:
            yield Fault((*path, key), f"is unknown: there are {', '.join(properties)}")
        elif not re.search(pattern.replace("$", r"\Z"), key):  # in Python $ also matches before a newline
            yield Fault((*path, key), f"is no name: it must match {pattern}")


def _float_faults(value: Any, path: Path = ()) -> Iterator[Fault]:
    """Yield where a document has 5.0 for 5. JSON Schema takes it for whole, and the tables do not."""
    if isinstance(value, float) and value.is_integer():
        yield Fault(path, f"is {value}: write {int(value)}")
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _float_faults(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _float_faults(inner, (*path, index))


def _check_contracts(book: Book) -> None:
    """Raise BookRefused for a contract that no event can be checked by."""
    for name, rule in book.event_types.items():
        if (size := len(json.dumps(rule.properties))) > CONTRACT_BYTES_MAX:
            reason = f"has {size} bytes as JSON; {CONTRACT_BYTES_MAX} are allowed"
            raise BookRefused([Fault(("event_types", name, "properties"), reason)])
        try:  # with any value: the library compiles the schema first
            first_problem({"type": "object", **(rule.properties or {})}, {})
        except Exception as error:  # noqa: BLE001 (the library raises what it likes)
            fault = Fault(("event_types", name, "properties"), f"cannot be used: {error}")
            raise BookRefused([fault]) from None
