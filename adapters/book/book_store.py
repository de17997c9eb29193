"""The table RuleBooks: every published version of the book of rules, one item each, written once.

A process asks for newer versions twice a minute, so no event costs a read. While nothing is published, the
shipped book is in force, and the table is empty. Whatever is published first is version 2, and the shipped
book is stored with it as version 1: so a later release of Streakline that ships another one changes nothing.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.book.shipped import FIRST, shipped_document, shipped_version
from adapters.platform.batches import query_all
from adapters.platform.items import Item, item, plain
from rules.book.reading import read_book
from rules.book.versions import Books, Version
from rules.days import EPOCH, stamp, unstamp

# Every process knows a version at latest so many seconds after it was published.
FRESH_SECONDS = 30
PARTITION = "rules"


class PublishedMeanwhile(Exception):
    """Somebody else has published a version since the newest one was read: look again."""


@dataclass(frozen=True, slots=True)
class Publication:
    """What is published: a document that rules.book.reading.read_book reads, and who says so from when."""

    document: Mapping[str, Any]
    effective_at: datetime
    published_at: datetime
    author: str
    note: str


class BookStore:
    """All versions, as one process sees them. It keeps what it has read: a version never changes."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._known: dict[int, Version] = {}
        self._documents: dict[int, Mapping[str, Any]] = {}
        self._books = Books([shipped_version()])
        self._fresh_until = 0.0

    def books(self) -> Books:
        """Return the versions that were published at least half a minute ago, and maybe newer ones."""
        if time.monotonic() >= self._fresh_until:
            self.look()
        return self._books

    def look(self) -> Books:
        """Return all versions that are published by now."""
        asked_at = time.monotonic()
        found = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="book = :book AND version > :known",
            ExpressionAttributeValues=item({":book": PARTITION, ":known": max(self._known, default=0)}),
            ConsistentRead=True,
        )
        for stored in map(plain, found):
            self._documents[stored["version"]] = json.loads(stored["document"])
            self._known[stored["version"]] = self._version(stored)
        if self._known:
            self._books = Books(self._known.values())
        self._fresh_until = asked_at + FRESH_SECONDS
        return self._books

    def document(self, number: int) -> Mapping[str, Any]:
        """Return the document of a version that `books` has; raises KeyError."""
        if not self._known and number == FIRST:
            return shipped_document()
        return self._documents[number]

    def publish(self, publication: Publication) -> Version:
        """Store the version after the newest one that this process knows; raises PublishedMeanwhile."""
        number = self._books.newest.number + 1
        first = Publication(shipped_document(), EPOCH, EPOCH, *_signed(shipped_version()))
        stored = [] if self._known else [_item(FIRST, first)]
        self._put([*stored, _item(number, publication)])
        return self.look().numbered(number)

    def _put(self, items: Iterable[Item]) -> None:
        puts = [
            {
                "Put": {
                    "TableName": self._table,
                    "Item": each,
                    "ConditionExpression": "attribute_not_exists(book)",
                }
            }
            for each in items
        ]
        try:
            self._dynamodb.transact_write_items(TransactItems=puts)
        except self._dynamodb.exceptions.TransactionCanceledException:
            self._fresh_until = 0.0
            raise PublishedMeanwhile from None

    def _version(self, stored: Mapping[str, Any]) -> Version:
        return Version(
            stored["version"],
            unstamp(stored["effective_at"]),
            read_book(self._documents[stored["version"]]),
            unstamp(stored["published_at"]),
            stored["author"],
            stored["note"],
        )


def _signed(version: Version) -> tuple[str, str]:
    return version.author, version.note


def _item(number: int, said: Publication) -> Item:
    return item(
        {
            "book": PARTITION,
            "version": number,
            "effective_at": stamp(said.effective_at),
            "published_at": stamp(said.published_at),
            "author": said.author,
            "note": said.note,
            "document": json.dumps(said.document, ensure_ascii=False, separators=(",", ":")),
        }
    )
