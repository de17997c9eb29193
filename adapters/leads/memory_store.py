"""The Memory table: the entries of each root (MemoryStore), while leaves come and go (GroupMemory).

New evidence is joined with the stored entry, in any order. Only a rebuild replaces an entry.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any

from adapters import clock
from adapters.leads.feature_store import FeatureStore
from adapters.leads.person_events import PersonEvents
from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import Unprocessed, get_all, if_unchanged, query_all, write_if
from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.leads.feature_items import FeatureItem
from rules.leads.features import Contact
from rules.leads.lead_events import LeadEvent
from rules.leads.memory import (
    CAMPAIGN_CONTACT,
    TYPES,
    Evidence,
    MemoryEntry,
    campaign_contact,
    entry_of_leaves,
    join_entries,
    remembered_entries,
)

KEY = "memory_type#key"
ATTEMPTS_MAX = 12


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """An item of the table."""

    version: int = 0  # 0: the item is not stored
    entry: MemoryEntry | None = None  # None: the item is not stored, or its entry was withdrawn
    attributes: Mapping[str, Any] | None = None


class TooManyMemories(Exception):
    """A lead has more entries than the caller wants to read."""


class _EntryChanged(Exception):
    """Another writer has changed the entry since it was read."""


class MemoryStore:
    """The entries of all leads. A group's memory is kept under its root, a lead_organization_id."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def all_of(self, root: str, most: int | None = None) -> list[MemoryEntry]:
        """Return all entries of a root, sorted by key, expired ones too; strongly consistent.

        Raises TooManyMemories if more than `most` are stored.
        """
        return self._entries_of(self._query(root, "", most))

    def of_type(self, root: str, memory_type: str, most: int | None = None) -> list[MemoryEntry]:
        """Return a root's entries of one type, as all_of does."""
        return self._entries_of(self._query(root, f"{memory_type}#", most))

    def get(self, root: str, memory_type: str, key: str) -> MemoryEntry | None:
        """Return one entry, strongly consistent."""
        name = f"{memory_type}#{key}"
        return self._read(root, [name])[name].entry

    def join(self, root: str, entries: Iterable[MemoryEntry]) -> None:
        """Join entries with the stored ones. Raises Unprocessed."""
        unwritten = {entry.name: entry for entry in entries}
        for _ in pauses(ATTEMPTS_MAX):
            stored, contended = self._read(root, unwritten), {}
            for name, entry in unwritten.items():
                before = stored[name]
                after = entry if before.entry is None else join_entries(before.entry, entry)
                if after == before.entry:
                    continue
                try:
                    self._put(root, after, before)
                except _EntryChanged:
                    contended[name] = entry
            unwritten = contended
            if not unwritten:
                return
        raise Unprocessed("the memory of a lead kept changing")

    def rebuild(self, root: str, events: Callable[[], Iterable[LeadEvent]], now: datetime) -> None:
        """Make a group's memory what its leaves' events give.

        Memory is read before the events. If a writer joins an event after that, the entry's version changes,
        the write here fails, and the rebuild starts again. An entry that no event supports any more is
        withdrawn. Raises Unprocessed.
        """
        for _ in pauses(ATTEMPTS_MAX):
            stored = self._query(root, "")
            wanted = remembered_entries(events())
            try:
                self._replace(root, stored, wanted, now)
                return
            except _EntryChanged:
                continue
        raise Unprocessed("the memory of a lead kept changing")

    def _replace(
        self, root: str, stored: Mapping[str, StoredMemory], wanted: Mapping[str, MemoryEntry], now: datetime
    ) -> None:
        for name, entry in wanted.items():
            before = stored.get(name, StoredMemory())
            if before.entry != entry:
                self._put(root, entry, before)
        for name, before in stored.items():
            if name not in wanted and before.entry is not None:
                self._write(root, withdrawn_attributes(before.attributes or {}, now), before)

    def _query(self, root: str, prefix: str, most: int | None = None) -> dict[str, StoredMemory]:
        condition, values = "lead_organization_id = :root", {":root": root}
        names = {}
        if prefix:
            condition += " AND begins_with(#key, :prefix)"
            values[":prefix"], names = prefix, {"ExpressionAttributeNames": {"#key": KEY}}
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=encode_item(values),
            ConsistentRead=True,
            **names,
        )
        stored = list(islice(items, None if most is None else most + 1))
        if most is not None and len(stored) > most:
            raise TooManyMemories(root)
        return dict(map(memory_from, map(decode_item, stored)))

    def _read(self, root: str, names: Iterable[str]) -> dict[str, StoredMemory]:
        keys = [{"lead_organization_id": root, KEY: name} for name in names]
        stored = dict(map(memory_from, map(decode_item, get_all(self._dynamodb, self._table, keys))))
        return {key[KEY]: stored.get(key[KEY], StoredMemory()) for key in keys}

    @staticmethod
    def _entries_of(stored: Mapping[str, StoredMemory]) -> list[MemoryEntry]:
        return [memory.entry for memory in stored.values() if memory.entry is not None]

    def _put(self, root: str, new: MemoryEntry, before: StoredMemory) -> None:
        self._write(root, entry_attributes(root, new), before)

    def _write(self, root: str, attributes: Mapping[str, Any], before: StoredMemory) -> None:
        version = before.version + 1 if before.version else clock.first_version()
        new: Item = encode_item({**attributes, "lead_organization_id": root, "version": version})
        condition = if_unchanged("lead_organization_id", "version", before.version or None)
        if not write_if(self._dynamodb.put_item, TableName=self._table, Item=new, **condition):
            raise _EntryChanged


def entry_attributes(root: str, entry: MemoryEntry) -> dict[str, Any]:
    """Return an entry as table attributes, without its version."""
    return {
        KEY: entry.name,
        "value": entry.value,
        "confidence": entry.confidence,
        "source": entry.source,
        "source_event_ids": entry.source_event_ids,
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
        "expires_at": entry.expires_at,
        "evidence": [_encode(root, entry.source, piece) for piece in entry.evidence],
    }


def withdrawn_attributes(stored: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the attributes of an entry that no evidence supports any more: expired, with its value kept.

    The item is not deleted, because the lake gets only what is put.
    """
    return {
        **stored,
        "confidence": _number(stored["confidence"]),
        "updated_at": max(stored["updated_at"], stamp(now)),
        "expires_at": min(stored["expires_at"], (now - EPOCH) // timedelta(seconds=1)),
        "evidence": [],
    }


def memory_from(fields: Mapping[str, Any]) -> tuple[str, StoredMemory]:
    """Read an item; returns its key, and what is stored under it."""
    kind, _, key = fields[KEY].partition("#")
    lines = zip(fields["source_event_ids"], fields["evidence"], strict=False)
    pieces = tuple(_decode(fields, event_id, line) for event_id, line in lines)
    entry = MemoryEntry(TYPES[kind], key, pieces, fields["created_at"]) if pieces else None
    return fields[KEY], StoredMemory(fields["version"], entry, fields)


def _number(value: Any) -> Decimal:
    """Return a number that may have decimals. decode_item leaves those in their wire format, {"N": text}."""
    return Decimal(value["N"] if isinstance(value, Mapping) else value)


def _encode(root: str, source: str, piece: Evidence) -> str:
    """Return a piece as one short line. Its event's id has the same index in source_event_ids.

    The entry's own source and root are left out of the line.
    """
    fields = (
        f"{(unstamp(piece.at) - EPOCH) // MICROSECOND:x}",
        f"{piece.weight_milli}",
        "" if piece.source == source else piece.source,
        "" if piece.leaf == root else piece.leaf,
        piece.value,
    )
    return "\t".join(fields)


def _decode(fields: Mapping[str, Any], event_id: str, line: str) -> Evidence:
    microseconds, weight, source, leaf, value = line.split("\t", 4)
    return Evidence(
        at=stamp(EPOCH + int(microseconds, 16) * MICROSECOND),
        id=event_id,
        value=value,
        weight_milli=int(weight),
        source=source or fields["source"],
        leaf=leaf or fields["lead_organization_id"],
    )


class GroupMemory:
    """The memory of a group of leads: it is kept under their root, also while leaves move between roots.

    A *writer* merges the entries of an event into a root's memory, and then reads to which root its leaf
    belongs. A *move* of leaves first writes the new root to the leaves' items. Then it reads memory and the
    events, writes what differs on condition of the version that was read, and reads the leaves' items again.
    So of a writer and a move at the same time, at least one sees the other:

    - The writer still sees its leaf at the root that it wrote for. Then any later move reads memory after it.
    - The leaf has moved. Then the writer rebuilds the former root, and writes at the new one.
    - A rebuild has read an entry before a writer changes it. Then its condition fails, and it starts again.
    - Of two rebuilds, the one for the older group sees that leaves have come or gone, and starts again.

    Each piece of evidence names its leaf. So `contacts` leaves out what an event of a leaf that has left has
    just put there.
    """

    def __init__(self, memories: MemoryStore, features: FeatureStore, people: PersonEvents) -> None:
        self._memories, self._features, self._people = memories, features, people

    def remember(self, leaf: str, hint: str, entries: Collection[MemoryEntry], now: datetime) -> str:
        """Merge a leaf's entries into its root's memory; returns the root.

        hint: the root that the leaf probably has. Raises Unprocessed.
        """
        root = hint
        for _ in pauses(ATTEMPTS_MAX):
            self._memories.join(root, entries)
            current_root = self._features.home(leaf, root).lead_organization_id
            if current_root == root:
                return root
            self.rebuild(root, now)
            root = current_root
        raise Unprocessed("a lead moved in every attempt")

    def rebuild(self, root: str, now: datetime) -> None:
        """Make a root's memory what its leaves' events give. For a leaf that is no root it changes nothing.

        Raises Unprocessed.
        """
        for _ in pauses(ATTEMPTS_MAX):
            item = self._item(root)
            if item.merged_into is not None:
                return
            self._memories.rebuild(root, partial(self._people.of_person, item), now)
            if self._item(root).group_changes == item.group_changes:  # no leaf has come or gone meanwhile
                return
        raise Unprocessed("a group of leads kept changing")

    def absorb(self, root: str, leaves: Iterable[str], now: datetime) -> None:
        """Merge what leaves' events give into the memory of the root that they came to.

        It reads the events of these leaves alone, and a rebuild those of the whole group. Leaves that have
        moved on are left out. If one moves on meanwhile, memory is rebuilt.
        """
        members = self._features.members(root, leaves) - {root}
        entries = remembered_entries(self._people.events.of_leaves(sorted(members)))
        self._memories.join(root, list(entries.values()))
        if entries and self._features.members(root, members) != members:
            self.rebuild(root, now)

    def contacts(self, item: FeatureItem) -> list[Contact]:
        """Return the campaigns that a root's leaves were contacted by, strongly consistent."""
        entries = self._memories.of_type(item.lead_organization_id, CAMPAIGN_CONTACT.name)
        leaves = {piece.leaf for entry in entries for piece in entry.evidence}
        members = self._features.members(item.lead_organization_id, leaves)
        present_entries = (entry_of_leaves(entry, members) for entry in entries)
        return [campaign_contact(entry) for entry in present_entries if entry is not None]

    def _item(self, root: str) -> FeatureItem:
        return self._features.get(root) or FeatureItem(root)
