"""Whether events and entries may be taken over: a claim is there before its event, an event before its entry
(rule 23).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.engagement.account_items import entry_from
from adapters.platform.items import Item, plain
from adapters.platform.tables import get_all
from rules.engagement.ledger import Entry, unfold_carrier
from rules.regions.changes import KEYS, ItemChange
from rules.regions.standby import claim_needed, events_needed

CLAIMS, EVENTS = "IdempotencyKeys", "BPEvents"
Keys = set[tuple[str, str]]
Parted = tuple[list[ItemChange], list[ItemChange]]  # what is ready, and what waits


class FollowedOrder:
    """tables: by name in the template."""

    def __init__(self, dynamodb: Any, tables: Mapping[str, str]) -> None:
        self._dynamodb, self._tables = dynamodb, tables

    def by_claims(self, events: Iterable[ItemChange], now: datetime) -> Parted:
        """Return the changed events whose claims are there, and those that must wait for theirs."""
        return self._parted(CLAIMS, [(each, claims_of(each, now)) for each in events])

    def by_events(self, entries: Iterable[ItemChange], now: datetime) -> Parted:
        """Return the new entries whose events are there, and those that must wait for theirs."""
        return self._parted(EVENTS, [(each, events_of(each, now)) for each in entries])

    def _parted(self, name: str, needed: Sequence[tuple[ItemChange, Keys]]) -> Parted:
        first, second = KEYS[name]
        wanted = sorted({key for _, keys in needed for key in keys})
        asked = [{first: one, second: two} for one, two in wanted]
        found = get_all(self._dynamodb, self._tables[name], asked, f"{first}, {second}")
        there = {(each[first], each[second]) for each in map(plain, found)}
        ready = [each for each, keys in needed if keys <= there]
        return ready, [each for each, keys in needed if not keys <= there]


def claims_of(event: ItemChange, now: datetime) -> Keys:
    """Return the key of the claim that a changed event needs, if it needs one."""
    key = claim_needed(event.image or {}, now)
    return {(event.owner, key)} if key else set()


def events_of(entry: ItemChange, now: datetime) -> Keys:
    """Return the keys of the events that a new entry and those that it names need."""
    return {(entry.owner, each) for each in events_needed(entries_of(entry), now)}


def entries_of(change: ItemChange) -> list[Entry]:
    """Return a ledger's changed entry behind those that it names."""
    stored: Item = {name: dict(each) for name, each in (change.image or {}).items()}
    entry = entry_from(stored)
    return [*unfold_carrier(entry), entry]
