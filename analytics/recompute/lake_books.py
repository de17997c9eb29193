"""All versions of the book of rules, as the curated lake has them."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

from adapters.book import FIRST, shipped_version
from adapters.platform.objects import Objects
from analytics.lake import curated_files
from rules.book.book import Books, Version
from rules.lake.entities import RULES
from rules.lake.rule_entities import book_of

COLUMNS = tuple(each.name for each in RULES.fields)


def lake_books(objects: Objects) -> Books:
    """Return the published versions; the shipped book is version 1 while the lake has no version 1.

    A book is without contracts, freezes and pauses: from these no points follow.
    """
    rows: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for batch in curated_files.reader(objects, RULES.name, COLUMNS):
        for row in batch.to_pylist():
            rows[row["version"]][row["item"]] = row
    versions = [_version(number, list(items.values())) for number, items in rows.items()]
    return Books(versions if FIRST in rows else [shipped_version(), *versions])


def _version(number: int, rows: Sequence[dict[str, Any]]) -> Version:
    first = rows[0]
    return Version(
        number,
        first["effective_at"],
        partial(book_of, rows),
        first["published_at"],
        first["author"],
        first["note"],
    )
