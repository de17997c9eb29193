"""The Memory table: what is remembered of each lead.

New evidence is joined with the stored entry, in any order. Only a rebuild replaces an entry.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

from adapters import clock
from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import get_all, query_all
from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.leads.lead_events import LeadEvent
from rules.leads.memory import TYPES, Evidence, MemoryEntry, join_entries, remembered_entries

# Memory entries as attributes of the Memory table, and back.


KEY = "memory_type#key"


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """What the table holds under a key. entry: None if there is none, or it was withdrawn."""

    version: int = 0
    entry: MemoryEntry | None = None
    attributes: Mapping[str, Any] | None = None


def entry_attributes(root: str, found: MemoryEntry) -> dict[str, Any]:
    """Return an entry as table attributes, without its version."""
    return {
        KEY: found.name,
        "value": found.value,
        "confidence": found.confidence,
        "source": found.source,
        "source_event_ids": found.source_event_ids,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
        "expires_at": found.expires_at,
        "evidence": [_encode(root, found.source, each) for each in found.evidence],
    }


def withdrawn_attributes(read: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the attributes of an entry that no evidence supports any more: expired, with its value kept.

    The item is not deleted, because the lake hears of puts alone.
    """
    return {
        **read,
        "confidence": _number(read["confidence"]),
        "updated_at": max(read["updated_at"], stamp(now)),
        "expires_at": min(read["expires_at"], (now - EPOCH) // timedelta(seconds=1)),
        "evidence": [],
    }


def _number(read: Any) -> Decimal:
    """Read a number that may have decimals (adapters.platform.items leaves those in their wire format)."""
    return Decimal(read["N"] if isinstance(read, Mapping) else read)


def _encode(root: str, source: str, piece: Evidence) -> str:
    """Write a piece as one short line. Its id is not in it, but at the same place of source_event_ids."""
    fields = (
        f"{(unstamp(piece.at) - EPOCH) // MICROSECOND:x}",
        f"{piece.weight_milli}",
        "" if piece.source == source else piece.source,
        "" if piece.home == root else piece.home,
        piece.value,
    )
    return "\t".join(fields)


def _decode(read: Mapping[str, Any], event_id: str, line: str) -> Evidence:
    moment, weight, source, home, value = line.split("\t", 4)
    return Evidence(
        stamp(EPOCH + int(moment, 16) * MICROSECOND),
        event_id,
        value,
        int(weight),
        source or read["source"],
        home or read["lead_organization_id"],
    )


def memory_from(read: Mapping[str, Any]) -> tuple[str, StoredMemory]:
    """Read an item: its key, and what is stored under it."""
    kind, _, key = read[KEY].partition("#")
    pairs = zip(read["source_event_ids"], read["evidence"], strict=False)
    pieces = tuple(_decode(read, event_id, line) for event_id, line in pairs)
    found = MemoryEntry(TYPES[kind], key, pieces, read["created_at"]) if pieces else None
    return read[KEY], StoredMemory(read["version"], found, read)


ATTEMPTS_MAX = 12


class TooManyMemories(Exception):
    """More is stored of a lead than the caller wants to read."""


class LeadContended(Exception):
    """Other writers were first in every attempt; it is safe to repeat."""


class _EntryChanged(Exception):
    """Another writer has changed the entry since it was read."""


class MemoryStore:
    """The entries of all leads; root: the lead_organization_id that a group's memory is kept under."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def all_of(self, root: str, most: int | None = None) -> list[MemoryEntry]:
        """Return all entries of a root, sorted by key, expired ones too; strongly consistent.

        Raises TooManyMemories if more than `most` are stored.
        """
        return self._found(self._query(root, "", most))

    def of_type(self, root: str, memory_type: str, most: int | None = None) -> list[MemoryEntry]:
        """Return a root's entries of one type, as all_of does."""
        return self._found(self._query(root, f"{memory_type}#", most))

    def get(self, root: str, memory_type: str, key: str) -> MemoryEntry | None:
        """Return one entry, strongly consistent."""
        name = f"{memory_type}#{key}"
        return self._read(root, [name])[name].entry

    def join(self, root: str, entries: Iterable[MemoryEntry]) -> int:
        """Join entries with the stored ones; returns how many were written. Raises LeadContended."""
        left, written = {each.name: each for each in entries}, 0
        for _ in pauses(ATTEMPTS_MAX if left else 0):
            stored, lost = self._read(root, left), {}
            for name, each in left.items():
                before = stored[name]
                after = each if before.entry is None else join_entries(before.entry, each)
                if after == before.entry:
                    continue
                try:
                    self._put(root, after, before)
                    written += 1
                except _EntryChanged:
                    lost[name] = each
            left = lost
            if not left:
                break
        if left:
            raise LeadContended(f"memory {', '.join(sorted(left))} of {root}")
        return written

    def rebuild(
        self,
        root: str,
        events: Callable[[], Iterable[LeadEvent]],
        now: datetime,
    ) -> None:
        """Make a group's memory what its leaves' events give.

        Memory is read before the events. So if an event is joined later than that, the entry's version has
        changed, the write fails, and rebuild starts again. An entry that nothing supports any more is
        withdrawn.
        Raises LeadContended.
        """
        for _ in pauses(ATTEMPTS_MAX):
            stored = self._query(root, "")
            wanted = remembered_entries(events())
            try:
                self._replace(root, stored, wanted, now)
                return
            except _EntryChanged:
                continue
        raise LeadContended(f"the memory of {root}")

    def _replace(
        self, root: str, stored: Mapping[str, StoredMemory], wanted: Mapping[str, MemoryEntry], now: datetime
    ) -> None:
        for name, each in wanted.items():
            before = stored.get(name, StoredMemory())
            if before.entry != each:
                self._put(root, each, before)
        for name, before in stored.items():
            if name not in wanted and before.entry is not None:
                self._write(root, withdrawn_attributes(before.attributes or {}, now), before)

    def _query(self, root: str, prefix: str, most: int | None = None) -> dict[str, StoredMemory]:
        condition, values = "lead_organization_id = :root", {":root": root}
        names = {}
        if prefix:
            condition += " AND begins_with(#key, :prefix)"
            values[":prefix"], names = prefix, {"ExpressionAttributeNames": {"#key": KEY}}
        found = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=encode_item(values),
            ConsistentRead=True,
            **names,
        )
        stored = list(islice(found, None if most is None else most + 1))
        if most is not None and len(stored) > most:
            raise TooManyMemories(root)
        return dict(map(memory_from, map(decode_item, stored)))

    def _read(self, root: str, names: Iterable[str]) -> dict[str, StoredMemory]:
        keys = [{"lead_organization_id": root, KEY: name} for name in names]
        found = dict(map(memory_from, map(decode_item, get_all(self._dynamodb, self._table, keys))))
        return {key[KEY]: found.get(key[KEY], StoredMemory()) for key in keys}

    @staticmethod
    def _found(stored: Mapping[str, StoredMemory]) -> list[MemoryEntry]:
        return [each.entry for each in stored.values() if each.entry is not None]

    def _put(self, root: str, new: MemoryEntry, read: StoredMemory) -> None:
        self._write(root, entry_attributes(root, new), read)

    def _write(self, root: str, attributes: Mapping[str, Any], read: StoredMemory) -> None:
        version = read.version + 1 if read.version else clock.first_version()
        new: Item = encode_item({**attributes, "lead_organization_id": root, "version": version})
        if read.version:
            guard: dict[str, Any] = {
                "ConditionExpression": "#version = :version",
                "ExpressionAttributeNames": {"#version": "version"},
                "ExpressionAttributeValues": encode_item({":version": read.version}),
            }
        else:
            guard = {"ConditionExpression": "attribute_not_exists(lead_organization_id)"}
        try:
            self._dynamodb.put_item(TableName=self._table, Item=new, **guard)
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            raise _EntryChanged from None
