"""The versions of the book that were in force, with what freezes and pauses cost by them, from the lake."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from adapters.book import FIRST, shipped_version
from adapters.platform.objects import Objects
from analytics.lake import curated_files
from rules.book.book import NO_FREEZES, NO_PAUSES, Book, Books, Freezes, Pauses, Version
from rules.book.document import read_book
from rules.lake.entities import RULES
from rules.lake.rule_entities import BOOK, book_of

COLUMNS = tuple(each.name for each in RULES.fields)
Rows = Sequence[Mapping[str, Any]]


def real_books(objects: Objects) -> Books:
    """Return the published versions; the shipped book is version 1 while the lake has no version 1.

    A book is without contracts and rewards: the lake has neither. It has the expiry of books that have come
    into it since their rows say that; of others, events say what expires when.
    """
    rows: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for batch in curated_files.reader(objects, RULES.name, COLUMNS):
        for row in batch.to_pylist():
            rows[row["version"]][row["item"]] = row
    versions = [
        Version(number, first["effective_at"], partial(_book, list(items.values())), first["published_at"])
        for number, items in rows.items()
        for first in (next(iter(items.values())),)
    ]
    return Books(versions if FIRST in rows else [shipped_version(), *versions])


def _book(rows: Rows) -> Book:
    texts = [row["document"] for row in rows if row["kind"] == BOOK and row["document"]]
    rest = json.loads(texts[0]) if texts else {}
    return replace(
        book_of(rows),
        freezes=Freezes(**rest["freezes"]) if "freezes" in rest else NO_FREEZES,
        expiry=read_book({"event_types": {}, "expiry": rest["expiry"]}).expiry if "expiry" in rest else None,
        pauses=Pauses(**rest["pauses"]) if "pauses" in rest else NO_PAUSES,
    )
