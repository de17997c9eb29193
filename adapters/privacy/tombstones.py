"""Tombstones as one process knows them, so that no event costs a read (docs/rules.md, rule 10)."""

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from adapters.bootstrap import ClientOf
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.tables import BEFORE_ALL, Refresh, query_all
from rules.days import key_of_stamp, stamp, stamp_of_key, unstamp
from rules.privacy.tombstones import (
    Act,
    ErasureLogEntry,
    Tombstone,
    digest_of,
    lead_subject,
    user_subject,
    with_entries,
)
from rules.user_ids import user_of_holder, user_of_partition

# Every process knows a tombstone at latest this many seconds after it was written.
FRESH_SECONDS = 30
# Entries are ordered by their writers' clocks, which differ. So each read begins this long before the newest
# entry that the process knows.
CLOCKS_DIFFER = timedelta(minutes=5)
ERASURE_LOG = "journal"  # the partition of the entries, which are written once and never change
# The attributes that name the person of an item. No item names two persons. A holder may also be a stock: no
# user has its name, so it has no tombstone.
HOLDER = "holder"
USER_KEYS = ("user_id", "account_id", "owner", HOLDER)
LEAD_KEY = "lead_organization_id"
FRIEND_KEY = "friend_id"  # of a tie of somebody else


class Tombstones:
    """All tombstones, which follow from the entries of the erasure log.

    A caller that gets an error of DynamoDB or Secrets Manager must not take the event.
    """

    def __init__(self, dynamodb: Any, table: str, key: KeyedHash) -> None:
        """table: the table Erasures. key: the hash's, which is read once there is a tombstone."""
        self._dynamodb, self._table, self._key = dynamodb, table, key
        self._known: dict[str, Tombstone] = {}
        self._newest, self._refresh = BEFORE_ALL, Refresh(FRESH_SECONDS)

    def forbids(self, subject: str, happened_at: str) -> bool:
        """Return whether an event of a subject (user_subject ...) must not be taken. happened_at: a stamp."""
        tombstone = self.of(subject)
        return tombstone is not None and tombstone.forbids(happened_at)

    def stands(self, subject: str) -> bool:
        """Return whether the subject is erased now, so that reads of it are answered by 410."""
        tombstone = self.of(subject)
        return tombstone is not None and tombstone.stands

    def of(self, subject: str) -> Tombstone | None:
        """Return a subject's tombstone, at most half a minute old; None if it has none."""
        if self._refresh.is_over:
            self.look()
        return self._known.get(self.digest(subject)) if self._known else None

    def digest(self, subject: str) -> str:
        """Return the subject's keyed hash."""
        # This secret has one key and is never rotated: under a new key no older tombstone would be found.
        return digest_of(self._key.ring.keys[0], subject)

    def look(self) -> dict[str, Tombstone]:
        """Read the new entries of the erasure log; returns all tombstones by digest, as they are now."""
        asked_at = time.monotonic()
        since = self._newest
        if since != BEFORE_ALL:
            newest = unstamp(stamp_of_key(since.partition("#")[0]))
            since = key_of_stamp(stamp(newest - CLOCKS_DIFFER))
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="#part = :log AND place > :since",
            ExpressionAttributeNames={"#part": "part"},
            ExpressionAttributeValues=encode_item({":log": ERASURE_LOG, ":since": since}),
            ConsistentRead=True,
        )
        entries = [_entry(decode_item(item)) for item in items]
        self._known = with_entries(self._known, entries)
        self._newest = max((self._newest, *(entry.place for entry in entries)))
        self._refresh.renew(asked_at)
        return self._known


class TombstoneSettings(Protocol):
    """The settings of every function that looks for tombstones."""

    @property
    def erasures_table(self) -> str:
        """The table Erasures."""

    @property
    def erasure_secret_arn(self) -> str:
        """The secret with the key of the hash."""


def tombstones_of(config: TombstoneSettings, client: ClientOf) -> Tombstones:
    """Return a process's view of the tombstones."""
    key = KeyedHash(lambda: client("secretsmanager"), config.erasure_secret_arn)
    return Tombstones(client("dynamodb"), config.erasures_table, key)


class NoErasures(Tombstones):
    """The check where nobody can have been erased, as in a benchmark."""

    def __init__(self) -> None:
        """Read nothing."""

    def of(self, subject: str) -> Tombstone | None:  # noqa: ARG002 (as Tombstones has it)
        """Return None."""
        return None


ErasureCheck = Tombstones  # consumers call it before they take an event
NO_ERASURES = NoErasures()


def is_erased_record(record: Mapping[str, Any], erased: ErasureCheck) -> bool:
    """Return whether a stream's record is of an erased person, and came before that was lifted."""
    subject = subject_of(record["dynamodb"].get("NewImage", {}))
    return bool(subject) and _is_erased(record["dynamodb"], subject, erased)


def names_erased(record: Mapping[str, Any], erased: ErasureCheck) -> bool:
    """Return whether a stream's record is of an erased person, or names one as a friend."""
    subjects = subjects_of(record["dynamodb"].get("NewImage", {}))
    return any(_is_erased(record["dynamodb"], subject, erased) for subject in subjects)


def _is_erased(change: Mapping[str, Any], subject: str, erased: ErasureCheck) -> bool:
    try:
        arrived = datetime.fromtimestamp(float(change["ApproximateCreationDateTime"]), UTC)
    except (KeyError, TypeError, ValueError):
        tombstone = erased.of(subject)
        return tombstone is not None and tombstone.stands
    return erased.forbids(subject, stamp(arrived))


def subject_of(image: Mapping[str, Any]) -> str:
    """Return the subject of the person whose item an image is; "" if the item names nobody."""
    for name in USER_KEYS:
        if user := image.get(name, {}).get("S"):
            return user_subject((user_of_holder(user) or user) if name == HOLDER else user_of_partition(user))
    lead = image.get(LEAD_KEY, {}).get("S")
    return lead_subject(lead) if lead else ""


def subjects_of(image: Mapping[str, Any]) -> list[str]:
    """Return the subjects of all persons whom an item names: whose it is, and a friend."""
    friend = image.get(FRIEND_KEY, {}).get("S")
    return [subject for subject in (subject_of(image), friend and user_subject(friend)) if subject]


def erasure_log_puts(table: str, entries: Iterable[ErasureLogEntry]) -> list[dict[str, Any]]:
    """Return a transaction's actions that write entries. Writing them again changes nothing."""
    return [{"Put": {"TableName": table, "Item": _item(entry)}} for entry in entries]


def _item(entry: ErasureLogEntry) -> Item:
    return encode_item({"part": ERASURE_LOG, "place": entry.place, "erasure_id": entry.erasure_id})


def _entry(stored: dict[str, Any]) -> ErasureLogEntry:
    at, digest, act = stored["place"].split("#")
    return ErasureLogEntry(stamp_of_key(at), digest, Act(act), stored["erasure_id"])
