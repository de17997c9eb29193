"""The Memory table: what is remembered of each lead, every entry joined with new evidence and never set."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.batches import get_all, query_all
from adapters.platform.items import Item, item, plain
from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.leads.evidence import Evidence, MemoryEntry, join_entries, memory_entry
from rules.leads.lead_events import LeadEvent
from rules.leads.memory import remembered_entries
from rules.leads.memory_types import TYPES

KEY = "memory_type#key"
ATTEMPTS_MAX = 12


class LeadContended(Exception):
    """Others were first in every attempt; it is safe to repeat."""


class _Changed(Exception):
    """An entry is no longer what was read."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """What the table holds under a key. entry: None if there is none, or it was withdrawn."""

    version: int = 0
    entry: MemoryEntry | None = None
    attributes: Mapping[str, Any] | None = None


class MemoryStore:
    """The entries of all leads; root: the lead_organization_id that a group's memory is kept under."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def all_of(self, root: str) -> list[MemoryEntry]:
        """Return all entries by key, strongly consistent; those that have expired too."""
        return self._found(self._query(root, ""))

    def of_type(self, root: str, memory_type: str) -> list[MemoryEntry]:
        """Return the entries of one type, as all_of."""
        return self._found(self._query(root, f"{memory_type}#"))

    def get(self, root: str, memory_type: str, key: str) -> MemoryEntry | None:
        """Return one entry, strongly consistent."""
        name = f"{memory_type}#{key}"
        return self._read(root, [name])[name].entry

    def join(self, root: str, entries: Iterable[MemoryEntry]) -> int:
        """Join entries with what is there; returns how many were written. Raises LeadContended."""
        left, written = {each.name: each for each in entries}, 0
        for _ in pauses(ATTEMPTS_MAX):
            if not left:
                return written
            stored, lost = self._read(root, left), {}
            for name, each in left.items():
                before = stored[name]
                after = each if before.entry is None else join_entries(before.entry, each)
                if after == before.entry:
                    continue
                try:
                    self._put(root, after, before)
                    written += 1
                except _Changed:
                    lost[name] = each
            left = lost
        if left:
            raise LeadContended(f"memory {', '.join(sorted(left))} of {root}")
        return written

    def rebuild(
        self,
        root: str,
        leaves: Iterable[str],
        events: Callable[[], Iterable[LeadEvent]],
        now: datetime,
    ) -> None:
        """Make a group's memory what its leaves' events give, and what was stated by hand about a leaf.

        Memory is read before the events: what it holds of one not read yet is then kept by the condition
        of the write. An entry that nothing supports any more is withdrawn. Raises LeadContended.
        """
        leaves = frozenset(leaves)
        for _ in pauses(ATTEMPTS_MAX):
            stored = self._query(root, "")
            stated = self._stated(leaves | {root}, leaves)
            wanted = remembered_entries(events())
            for each in stated:
                wanted[each.name] = join_entries(wanted[each.name], each) if each.name in wanted else each
            try:
                self._replace(root, stored, wanted, now)
                return
            except _Changed:
                continue
        raise LeadContended(f"the memory of {root}")

    def _replace(
        self, root: str, stored: Mapping[str, _Stored], wanted: Mapping[str, MemoryEntry], now: datetime
    ) -> None:
        for name, each in wanted.items():
            before = stored.get(name, _Stored())
            if before.entry != each:
                self._put(root, each, before)
        for name, before in stored.items():
            if name not in wanted and before.entry is not None:
                self._write(root, withdrawn_attributes(before.attributes or {}, now), before)

    def _stated(self, owners: Iterable[str], homes: frozenset[str]) -> list[MemoryEntry]:
        found = [each for owner in sorted(owners) for each in self.all_of(owner)]
        by_hand = [
            (each, [piece for piece in each.evidence if piece.by_hand and piece.home in homes])
            for each in found
        ]
        return [memory_entry(each.kind, each.key, pieces) for each, pieces in by_hand if pieces]

    def _query(self, root: str, prefix: str) -> dict[str, _Stored]:
        condition, values = "lead_organization_id = :root", {":root": root}
        names = {}
        if prefix:
            condition += " AND begins_with(#key, :prefix)"
            values[":prefix"], names = prefix, {"ExpressionAttributeNames": {"#key": KEY}}
        found = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=item(values),
            ConsistentRead=True,
            **names,
        )
        return dict(map(_stored, map(plain, found)))

    def _read(self, root: str, names: Iterable[str]) -> dict[str, _Stored]:
        keys = [{"lead_organization_id": root, KEY: name} for name in names]
        found = dict(map(_stored, map(plain, get_all(self._dynamodb, self._table, keys))))
        return {key[KEY]: found.get(key[KEY], _Stored()) for key in keys}

    @staticmethod
    def _found(stored: Mapping[str, _Stored]) -> list[MemoryEntry]:
        return [each.entry for each in stored.values() if each.entry is not None]

    def _put(self, root: str, new: MemoryEntry, read: _Stored) -> None:
        self._write(root, entry_attributes(root, new), read)

    def _write(self, root: str, attributes_: Mapping[str, Any], read: _Stored) -> None:
        new: Item = item({**attributes_, "lead_organization_id": root, "version": read.version + 1})
        if read.version:
            guard: dict[str, Any] = {
                "ConditionExpression": "#version = :version",
                "ExpressionAttributeNames": {"#version": "version"},
                "ExpressionAttributeValues": item({":version": read.version}),
            }
        else:
            guard = {"ConditionExpression": "attribute_not_exists(lead_organization_id)"}
        try:
            self._dynamodb.put_item(TableName=self._table, Item=new, **guard)
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            raise _Changed from None


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
    """Return an entry that nothing supports: expired, its value kept, and not deleted.

    The lake hears of what is put, and of nothing else.
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
    """One line a piece, short: its id stands in source_event_ids, at the same place."""
    fields = (
        f"{(unstamp(piece.at) - EPOCH) // MICROSECOND:x}",
        f"{piece.weight_milli}{'!' if piece.by_hand else ''}",
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
        int(weight.rstrip("!")),
        source or read["source"],
        home or read["lead_organization_id"],
        by_hand=weight.endswith("!"),
    )


def _stored(read: Mapping[str, Any]) -> tuple[str, _Stored]:
    kind, _, key = read[KEY].partition("#")
    pairs = zip(read["source_event_ids"], read["evidence"], strict=False)
    pieces = tuple(_decode(read, event_id, line) for event_id, line in pairs)
    found = MemoryEntry(TYPES[kind], key, pieces, read["created_at"]) if pieces else None
    return read[KEY], _Stored(read["version"], found, read)
