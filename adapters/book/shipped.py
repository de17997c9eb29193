"""The book that ships with Streakline: version 1, in force from the beginning until another is published."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from rules.book.book import Version
from rules.book.document import read_book
from rules.days import EPOCH

FIRST = 1


@cache
def shipped_document() -> dict[str, Any]:
    """Return the document of the shipped book."""
    text = files("rules.book").joinpath("shipped.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@cache
def shipped_version() -> Version:
    """Return the shipped book as version 1."""
    return Version(
        FIRST, EPOCH, lambda: read_book(shipped_document()), note="as shipped", author="streakline"
    )
