"""Amnesties, in a partition of the table RuleBooks: `book` is `amnesties`, and `version` the number.

What was declared never changes; a revocation is added to it. A process asks twice a minute, as for the book,
so no event costs a read.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from adapters.platform.items import item, plain
from adapters.platform.tables import Refresh, query_all
from rules.days import stamp, unstamp
from rules.engagement.account_state import NO_AMNESTIES, Amnesties, Amnesty

FRESH_SECONDS = 30
PARTITION = "amnesties"


class DeclaredMeanwhile(Exception):
    """Somebody else has declared an amnesty since the newest one was read: look again."""


class NoAmnesty(Exception):
    """There is no amnesty of this number."""


class AmnestyStore:
    """All amnesties, as one process sees them."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._known, self._refresh = NO_AMNESTIES, Refresh()

    def known(self) -> Amnesties:
        """Return what was declared or revoked half a minute ago, and maybe newer ones.

        Where the table cannot be read, a process goes on with what it knows.
        """
        self._refresh.keep(self.look)
        return self._known

    def look(self) -> Amnesties:
        """Return all amnesties that are declared by now, by number."""
        asked_at = time.monotonic()
        found = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="book = :book",
            ExpressionAttributeValues=item({":book": PARTITION}),
            ConsistentRead=True,
        )
        self._known = Amnesties(tuple(_amnesty(plain(each)) for each in found))
        self._refresh.renew(asked_at, FRESH_SECONDS)
        return self._known

    def numbered(self, number: int) -> Amnesty:
        """Return an amnesty as it is now; raises NoAmnesty."""
        for each in self.look().known:
            if each.number == number:
                return each
        raise NoAmnesty(number)

    def declare(self, said: Amnesty, now: datetime) -> Amnesty:
        """Store an amnesty under the number after the newest one. Raises DeclaredMeanwhile."""
        number = max((each.number for each in self.look().known), default=0) + 1
        made = replace(said, number=number, declared_at=stamp(now))
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item=item(_attributes(made)),
                ConditionExpression="attribute_not_exists(book)",
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            raise DeclaredMeanwhile(number) from None
        self._refresh.end()
        return made

    def revoke(self, number: int, now: datetime) -> Amnesty:
        """Revoke an amnesty; one that is revoked stays as it is. Raises NoAmnesty."""
        self.numbered(number)
        self._dynamodb.update_item(
            TableName=self._table,
            Key=item({"book": PARTITION, "version": number}),
            UpdateExpression="SET revoked_at = if_not_exists(revoked_at, :now)",
            ExpressionAttributeValues=item({":now": stamp(now)}),
        )
        return self.numbered(number)


def _attributes(said: Amnesty) -> dict[str, Any]:
    return {
        "book": PARTITION,
        "version": said.number,
        "since": stamp(said.since),
        "until": stamp(said.until),
        "zones": sorted(said.zones) or None,
        "is_listed": said.is_listed or None,
        "reason": said.reason,
        "author": said.author,
        "declared_at": said.declared_at,
    }


def _amnesty(stored: Mapping[str, Any]) -> Amnesty:
    return Amnesty(
        stored["version"],
        unstamp(stored["since"]),
        unstamp(stored["until"]),
        frozenset(stored.get("zones") or ()),
        bool(stored.get("is_listed")),
        stored["reason"],
        stored["author"],
        stored["declared_at"],
        stored.get("revoked_at") or "",
    )
