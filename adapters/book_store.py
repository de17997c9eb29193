"""The table RuleBooks: every published version of the book of rules, written once.

Version 1 ships with Streakline. It is in force from the beginning until another version is published.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import Refresh, get_one, query_all
from rules.book.book import Books, Version
from rules.book.daily import DailyTerms, daily_rules
from rules.book.document import read_book
from rules.days import EPOCH, stamp, unstamp

FIRST = 1
# Every process knows a version at latest this many seconds after it was published.
FRESH_SECONDS = 30
VERSIONS, DOCUMENTS = "versions", "documents"


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
        FIRST,
        EPOCH,
        lambda: read_book(shipped_document()),
        note="as shipped",
        author="streakline",
    )


class PublicationConflict(Exception):
    """Somebody else has published a version since the newest one was read: read again."""


@dataclass(frozen=True, slots=True)
class Publication:
    """A document that is published, by whom, and from when it is in force."""

    document: Mapping[str, Any]  # as rules.book.document.read_book reads it
    effective_at: datetime
    published_at: datetime
    author: str
    note: str


class BookStore:
    """All versions, as one process sees them. It remembers what it has read: a version never changes."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._known: dict[int, Version] = {}
        self._documents: dict[int, Mapping[str, Any]] = {}
        self._books = Books([shipped_version()])
        self._refresh = Refresh(FRESH_SECONDS)

    def books(self) -> Books:
        """Return the versions that were published at least half a minute ago, and maybe newer ones.

        If the table is away, it returns what it remembers: each event says which version has judged it.
        """
        self._refresh.renew_if_over(self.look)
        return self._books

    def daily_terms(self) -> DailyTerms:
        """Return what the books say of dates (Books.daily_terms)."""
        return self.books().daily_terms

    def pay_bonuses(self) -> bool:
        """Whether any version pays for achievements."""
        return self.books().pay_bonuses

    def look(self) -> Books:
        """Return all versions that are published now."""
        began_at = time.monotonic()
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="book = :book AND version > :known",
            ExpressionAttributeValues=encode_item({":book": VERSIONS, ":known": max(self._known, default=0)}),
            ConsistentRead=True,
        )
        for stored in map(decode_item, items):
            self._known[stored["version"]] = self._version(stored)
        if self._known:
            self._books = Books(self._known.values())
        self._refresh.renew(began_at)
        return self._books

    def document(self, number: int) -> Mapping[str, Any]:
        """Return the document of a version that `books` has; raises KeyError."""
        if not self._known and number == FIRST:
            return shipped_document()
        if number not in self._documents:
            item = get_one(self._dynamodb, self._table, {"book": DOCUMENTS, "version": number})
            self._documents[number] = json.loads(decode_item(item or {})["document"])
        return self._documents[number]

    def publish(self, publication: Publication) -> Version:
        """Store the version after the newest one that this process knows; raises PublicationConflict."""
        number = self._books.newest.number + 1
        items = _items(number, publication)
        if not self._known:  # the shipped version is stored with the first one that is published
            shipped = shipped_version()
            first = Publication(shipped_document(), EPOCH, EPOCH, shipped.author, shipped.note)
            items = _items(FIRST, first) + items
        self._put(items)
        return self.look().numbered(number)

    def _put(self, items: Iterable[Item]) -> None:
        new = {"TableName": self._table, "ConditionExpression": "attribute_not_exists(book)"}
        puts = [{"Put": {**new, "Item": item}} for item in items]
        try:
            self._dynamodb.transact_write_items(TransactItems=puts)
        except self._dynamodb.exceptions.TransactionCanceledException:
            self._refresh.end()
            raise PublicationConflict from None

    def _version(self, stored: Mapping[str, Any]) -> Version:
        number = stored["version"]
        return Version(
            number,
            unstamp(stored["effective_at"]),
            lambda: read_book(self.document(number)),
            unstamp(stored["published_at"]),
            stored["author"],
            stored["note"],
            daily_rules(stored.get("daily"), stored.get("boards"), stored.get("leagues")),
            bool(stored.get("pays_bonuses")),
        )


def _pays_bonuses(document: Mapping[str, Any]) -> bool:
    return any("points" in section for section in document.get("achievements", {}).values())


def _items(number: int, publication: Publication) -> list[Item]:
    """Return a version's items: one without the document, for lists, and one with it."""
    fields = {
        "book": VERSIONS,
        "version": number,
        "effective_at": stamp(publication.effective_at),
        "published_at": stamp(publication.published_at),
        "author": publication.author,
        "note": publication.note,
        # Who asks for nothing else need not read the document.
        "daily": publication.document.get("daily"),
        "boards": publication.document.get("boards") or None,
        "leagues": publication.document.get("leagues"),
        "pays_bonuses": _pays_bonuses(publication.document) or None,
    }
    text = json.dumps(publication.document, ensure_ascii=False, separators=(",", ":"))
    return [encode_item(fields), encode_item({**fields, "book": DOCUMENTS, "document": text})]
