"""A standby's tables: takes over the writer's changes, late, twice and in any order (rule 23)."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from adapters.engagement.account_items import entry_from
from adapters.engagement.ledger_store import HeadMoved, LedgerStore
from adapters.platform.aws import pauses
from adapters.regions.followed_days import FollowedDays
from adapters.regions.followed_items import FollowedItems
from rules.regions.changes import LEDGER, ItemChange, place_needed
from rules.regions.ledgers import Contradicted, following

ATTEMPTS_MAX = 6
PROFILES = "UserStreaks"


@dataclass(slots=True)
class FollowedBatch:
    """What became of changes. waiting: those that speak of entries that are not there yet. wrong: with
    why.
    """

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
        self._days = FollowedDays(dynamodb, tables, self._ledger)

    def follow(self, changes: Sequence[ItemChange], now: datetime) -> FollowedBatch:
        """Take over changes: entries first, each on its predecessor; then what speaks of them."""
        outcome = FollowedBatch()
        heads: dict[str, str] = {}
        entries = [each for each in changes if each.table == LEDGER and each.is_new and each.image]
        for each in sorted(entries, key=lambda change: (change.owner, _seq(change))):
            self._entry(each, outcome)
        for each in changes:
            if each.image is None:
                self._items.delete(each, now)
                outcome.followed += 1
            elif each.table != LEDGER:
                self._other(each, heads, outcome)
        return outcome

    def _entry(self, change: ItemChange, outcome: FollowedBatch) -> None:
        entry = entry_from({name: dict(each) for name, each in (change.image or {}).items()})
        for _ in pauses(ATTEMPTS_MAX):
            newest = self._ledger.newest(entry.account_id)
            head = newest.head if newest else None
            try:
                what = following(head, entry)
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
        needed = place_needed(change.table, change.image or {})
        if needed and needed > heads.get(change.owner, ""):
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
