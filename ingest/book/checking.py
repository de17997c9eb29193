"""Checks a document that somebody wants to publish. Whatever is wrong is told by its place and a reason."""

import json
from collections.abc import Mapping
from typing import Any

from ingest.web.validate import check_strict, first_problem
from rules.book.book import Book
from rules.book.book_schema import BOOK
from rules.book.contracts import breaks
from rules.book.reading import BookRefused, Fault, read_book

# An item of a table may have 400 KB.
DOCUMENT_BYTES_MAX = 300_000


def checked(document: Any) -> Book:
    """Return the book of a document; raises BookRefused."""
    try:
        check_strict(document)
    except ValueError as error:
        raise BookRefused([Fault((), str(error))]) from None
    if (size := len(json.dumps(document, ensure_ascii=False).encode())) > DOCUMENT_BYTES_MAX:
        raise BookRefused([Fault((), f"has {size} bytes as JSON; {DOCUMENT_BYTES_MAX} are allowed")])
    if problem := first_problem(BOOK, document):
        field, reason = problem
        raise BookRefused([Fault(tuple(map(_step, field.split("."))) if field != "body" else (), reason)])
    return read_book(document)


def _step(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def check_senders(old: Book, new: Mapping[str, Any]) -> None:
    """Raise BookRefused for a contract that refuses what senders of the old book may send."""
    faults = []
    for name, said in new["event_types"].items():
        if name not in old.event_types:
            continue
        for path, reason in breaks(old.event_types[name].properties, said.get("properties")):
            why = f"{reason}: what is sent today would be refused; a new event type may ask for it"
            faults.append(Fault(("event_types", name, "properties", *path), why))
    if faults:
        raise BookRefused(faults)
