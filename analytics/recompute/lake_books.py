"""The versions of the book of rules that were published, as the curated lake has them."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from adapters.book_store import FIRST, shipped_version
from adapters.platform.objects import Objects
from analytics.lake import curated_files
from rules.book.book import NO_FREEZES, NO_PAUSES, Book, Books, FreezeRules, PauseRules, Version
from rules.book.daily import NO_REPAIRS, RepairRules
from rules.book.document import read_book
from rules.lake.entities import RULES
from rules.lake.rule_entities import BOOK, book_of

COLUMNS = tuple(field.name for field in RULES.fields)
Rows = Sequence[Mapping[str, Any]]


def lake_books(objects: Objects) -> Books:
    """Return the published versions. While the lake has no version 1, the shipped book is version 1.

    The books have no contracts and no rewards, because the lake has neither. A book has no rule of expiry if
    its row in the lake has none. Then its events say when their points expire.
    """
    rows: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for batch in curated_files.reader(objects, RULES.name, COLUMNS):
        for row in batch.to_pylist():
            rows[row["version"]][row["item"]] = row
    versions = [_version(number, list(items.values())) for number, items in rows.items()]
    if FIRST not in rows:
        shipped = shipped_version()
        # A version may be sent to another process, and a function without a name cannot be.
        versions.append(replace(shipped, read=partial(replace, shipped.book)))
    return Books(versions)


def _version(number: int, rows: Rows) -> Version:
    """Return a version. Each of its rows has the version's instants, and one item of its book."""
    return Version(number, rows[0]["effective_at"], partial(_book, rows), rows[0]["published_at"])


def _book(rows: Rows) -> Book:
    texts = [row["document"] for row in rows if row["kind"] == BOOK and row["document"]]
    sections = json.loads(texts[0]) if texts else {}  # those parts of the book that are no items
    expiry = None
    if "expiry" in sections:  # it is read as the expiry of a book without event types
        expiry = read_book({"event_types": {}, "expiry": sections["expiry"]}).expiry
    return replace(
        book_of(rows),
        freezes=FreezeRules(**sections["freezes"]) if "freezes" in sections else NO_FREEZES,
        repairs=RepairRules(**sections["repairs"]) if "repairs" in sections else NO_REPAIRS,
        expiry=expiry,
        pauses=PauseRules(**sections["pauses"]) if "pauses" in sections else NO_PAUSES,
    )
