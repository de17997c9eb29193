"""Tombstones as one process sees them: no event costs a read (rule 10).

They are in the table Erasures, as a journal that only grows:

| part | place | holds |
|---|---|---|
| journal | 2026-11-23T10:00:00.000000Z#DIGEST#erased | the erasure that it belongs to |

A process reads the journal once, and what is new twice a minute: half a read unit. While nobody was ever
erased, that is all, and no key is asked for. So a process knows a tombstone half a minute after it was
written; what it lets pass until then, an erasure's second sweep removes.
"""

import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Protocol

from adapters.platform.aws import client
from adapters.platform.items import Item, item, plain
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.tables import Refresh, query_all
from adapters.platform.turn import fenced
from rules.days import stamp, unstamp
from rules.privacy.tombstones import Act, JournalEntry, Tombstone, digest_of, with_entries

# Every process knows a tombstone at latest so many seconds after it was written.
FRESH_SECONDS = 30
# Writers' clocks differ: so far back each reading looks again.
CLOCKS_DIFFER = timedelta(minutes=5)
JOURNAL = "journal"
BEFORE_ALL = "0"


class Tombstones:
    """All tombstones. Methods raise what DynamoDB and Secrets Manager raise: then nothing may be let in."""

    def __init__(self, dynamodb: Any, table: str, key: KeyedHash) -> None:
        """table: Erasures. key: of the hash, which is read when the first tombstone is met."""
        self._dynamodb, self._table, self._key = dynamodb, table, key
        self._known: dict[str, Tombstone] = {}
        self._newest, self._refresh = BEFORE_ALL, Refresh()

    def forbids(self, subject: str, happened_at: str) -> bool:
        """Whether what happened then (a stamp) must not be taken.

        subject: see rules.privacy.tombstones.user_subject and its neighbours.
        """
        found = self.of(subject)
        return found is not None and found.forbids(happened_at)

    def stands(self, subject: str) -> bool:
        """Whether whose subject it is answers 410."""
        found = self.of(subject)
        return found is not None and found.stands

    def of(self, subject: str) -> Tombstone | None:
        """Return what is known of a subject, at most half a minute old."""
        if self._refresh.is_over:
            self.look()
        return self._known.get(self.digest(subject)) if self._known else None

    def digest(self, subject: str) -> str:
        """Return the subject's keyed hash."""
        return digest_of(self._key.ring.keys[0], subject)

    def look(self) -> dict[str, Tombstone]:
        """Read what is new; returns all tombstones by digest, as they are now."""
        asked_at = time.monotonic()
        since = self._newest
        if since != BEFORE_ALL:
            since = stamp(unstamp(since.partition("#")[0]) - CLOCKS_DIFFER)
        found = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="#part = :journal AND place > :since",
            ExpressionAttributeNames={"#part": "part"},
            ExpressionAttributeValues=item({":journal": JOURNAL, ":since": since}),
            ConsistentRead=True,
        )
        entries = [_entry(plain(each)) for each in found]
        self._known = with_entries(self._known, entries)
        self._newest = max((self._newest, *(each.place for each in entries)))
        self._refresh.renew(asked_at, FRESH_SECONDS)
        return self._known


def journal_puts(table: str, entries: Iterable[JournalEntry]) -> list[dict[str, Any]]:
    """Return a transaction's actions that write entries; again they change nothing."""
    return [{"Put": {"TableName": table, "Item": _item(each)}} for each in entries]


def _item(entry: JournalEntry) -> Item:
    return item({"part": JOURNAL, "place": entry.place, "erasure_id": entry.erasure_id})


def _entry(stored: dict[str, Any]) -> JournalEntry:
    at, digest, act = stored["place"].split("#")
    return JournalEntry(at, digest, Act(act), stored["erasure_id"])


class WhereTombstonesAre(Protocol):
    """The settings of every function that looks for tombstones."""

    @property
    def erasures_table(self) -> str:
        """The table Erasures."""

    @property
    def erasure_secret_arn(self) -> str:
        """The secret with the key of the hash."""


def tombstones_of(config: WhereTombstonesAre) -> Tombstones:
    """Return a process's view of the tombstones."""
    key = KeyedHash(lambda: client("secretsmanager"), config.erasure_secret_arn)
    return Tombstones(fenced(client("dynamodb")), config.erasures_table, key)


class Erased(Protocol):
    """What consumers ask before they take what comes to them: see Tombstones."""

    def forbids(self, subject: str, happened_at: str) -> bool:
        """Whether what happened then must not be taken."""

    def of(self, subject: str) -> Tombstone | None:
        """Return what is known of a subject."""


class NobodyErased:
    """Where no person is known, or nobody can have been erased, as in a benchmark."""

    def forbids(self, subject: str, happened_at: str) -> bool:  # noqa: ARG002 (as Tombstones has it)
        """Return False."""
        return False

    def of(self, subject: str) -> Tombstone | None:  # noqa: ARG002 (as Tombstones has it)
        """Return None."""
        return None


NOBODY = NobodyErased()
