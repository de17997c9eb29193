"""Memory entries as attributes of the Memory table, and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.leads.memory import TYPES, Evidence, MemoryEntry

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
