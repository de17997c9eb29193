"""A standby's tables: takes over the writer's changes, late, twice and in any order (rule 23)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from adapters.engagement.ledger_store import HeadMoved, LedgerStore
from adapters.platform.aws import pauses
from adapters.regions.followed_days import FollowedDays
from adapters.regions.followed_items import FollowedItems
from adapters.regions.followed_order import EVENTS, FollowedOrder, Parted, entries_of
from rules.regions.changes import LEDGER, ItemChange
from rules.regions.standby import Contradicted, follow_entry, place_needed

ATTEMPTS_MAX = 6
PROFILES = "UserStreaks"


@dataclass(slots=True)
class FollowedBatch:
    """What became of changes. waiting: those that need what is not there yet. wrong: with why."""

    followed: int = 0
    waiting: list[ItemChange] = field(default_factory=list)
    wrong: list[tuple[ItemChange, str]] = field(default_factory=list)


class Follower:
    """Whoever writes to a standby's tables. Raises what DynamoDB raises; then the changes must come again."""

    def __init__(self, dynamodb: Any, tables: Mapping[str, str]) -> None:
        """dynamodb: a client that the fence lets through while this region follows. tables: see
        FollowedItems.
        """
        self._ledger = LedgerStore(dynamodb, tables[LEDGER])
        self._items = FollowedItems(dynamodb, tables)
        self._order = FollowedOrder(dynamodb, tables)
        self._days = FollowedDays(dynamodb, tables, self._ledger)

    def follow(self, changes: Sequence[ItemChange], now: datetime) -> FollowedBatch:
        """Take over changes, whatever their order: each after what it needs (rules.regions.standby)."""
        outcome = FollowedBatch()
        gone, there = _parted(changes, lambda each: each.image is None)
        entries, items = _parted(there, lambda each: each.table == LEDGER)
        events, items = _parted(items, lambda each: each.table == EVENTS)
        later, first = _parted(items, lambda each: bool(place_needed(each.table, each.image or {})))
        for each in gone:
            self._items.delete(each, now)
        for each in first:
            self._items.put(each)
        ready, waiting = self._order.by_claims(events, now)
        for each in ready:
            self._items.put(each)
        outcome.waiting += waiting
        outcome.followed += len(gone) + len(first) + len(ready)
        ready, waiting = self._order.by_events((each for each in entries if each.is_new), now)
        for each in sorted(ready, key=lambda change: (change.owner, _seq(change))):
            self._entry(each, outcome)
        outcome.waiting += waiting
        heads: dict[str, str] = {}
        for each in later:
            self._other(each, heads, outcome)
        return outcome

    def _entry(self, change: ItemChange, outcome: FollowedBatch) -> None:
        *_, entry = entries_of(change)
        for _ in pauses(ATTEMPTS_MAX):
            newest = self._ledger.newest(entry.account_id)
            head = newest.head if newest else None
            try:
                what = follow_entry(head, entry)
            except Contradicted as error:
                outcome.wrong.append((change, str(error)))
                return
            if what is None:
                break
            with suppress(HeadMoved):
                if what.carrier:
                    self._ledger.follow(head, what.carrier, what.carried)
                else:
                    self._ledger.store_new(what.carried)
                outcome.followed += 1
                return
        outcome.waiting.append(change)

    def _other(self, change: ItemChange, heads: dict[str, str], outcome: FollowedBatch) -> None:
        """Take over what speaks of an entry."""
        needed = place_needed(change.table, change.image or {})
        if needed > heads.get(change.owner, ""):
            newest = self._ledger.newest(change.owner)
            heads[change.owner] = newest.created_at if newest else ""
            if needed > heads[change.owner]:
                outcome.waiting.append(change)
                return
        if change.table == PROFILES and not self._days.reach(change):
            outcome.waiting.append(change)
            return
        self._items.put(change)
        outcome.followed += 1


def _seq(change: ItemChange) -> int:
    return int((change.image or {})["seq"]["N"])


def _parted(changes: Iterable[ItemChange], is_wanted: Callable[[ItemChange], bool]) -> Parted:
    wanted: list[ItemChange] = []
    rest: list[ItemChange] = []
    for each in changes:
        (wanted if is_wanted(each) else rest).append(each)
    return wanted, rest
