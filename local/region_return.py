"""Returns a region that wrote before to a new writer: nothing of it is lost, and then it follows (rule 23).

1. Find what the old region has that the new writer never saw (local/region_unseen.py), for a report.
2. Apply it: events go to the new writer with their claims, and its API carries out commands under their keys.
3. Cut the old ledgers where both regions agree, and delete whatever the new writer does not have.
4. Join: from here on the new writer's changes are sent to the old region.
5. Fill: the old region takes over what the new writer had or deleted before (local/region_fill.py).

The steps may be interrupted anywhere and run again. Steps 1 and 2 change nothing the second time: an event is
applied once, a command is carried out once under its key.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from adapters.platform.fence import RegisterStore
from adapters.platform.items import Item
from adapters.privacy.tombstones import ErasureCheck
from adapters.regions import Follower
from ingest.engagement.points.commands import REDEEM
from local.region_fill import RegionFill
from local.region_unseen import (
    CLAIMS,
    EVENTS,
    FoundUnseen,
    ListedItem,
    Side,
    UnseenFinder,
    key_of,
    shared_fields,
)
from rules.engagement.ledger import entry_id
from rules.regions.changes import KEYS, LEDGER
from rules.regions.register import QUIET_SECONDS, NotPossible, Register, join_region, mark_filled
from rules.regions.standby import UnseenEntry, UnseenFate
from rules.user_ids import path_part

ATTEMPTS_MAX = 5
EventKeys = set[tuple[str, ...]]


class WriterDoor(Protocol):
    """The new writer's API, called as an admin."""

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and answer."""


@dataclass(slots=True)
class ReturnOutcome:
    """What the new writer did with what it had never seen."""

    applied: Counter[str] = field(default_factory=Counter)  # number of entries, by kind and fate
    carried: Counter[str] = field(default_factory=Counter)  # number of items that were put, by table
    listed: list[ListedItem] = field(default_factory=list)  # all that somebody must decide about


@dataclass(frozen=True, slots=True)
class RegionReturn:
    """The steps of a return, in the order of the methods."""

    old: Side  # the region that returns; nobody writes there
    new: Side  # the one that writes
    registers: RegisterStore
    door: WriterDoor
    sleep: Callable[[float], None]  # waits some seconds
    say: Callable[[str], None]  # prints a line for the operator

    def find(self, erased: ErasureCheck, now: datetime) -> FoundUnseen:
        """Step 1: return what the new writer never saw, without erased persons' data. Nothing is written."""
        return UnseenFinder(self.old, self.new, erased, now).find()

    def apply(self, found: FoundUnseen) -> ReturnOutcome:
        """Step 2: give the new writer what it never saw; returns what became of each thing."""
        carried = self._carry(found)  # may find more keys that are taken, and lists them
        outcome = ReturnOutcome(carried=carried, listed=list(found.listed))
        event_keys = {key_of(EVENTS, item) for item in self._events_at_writer(found)}
        for account_id, unseen_entries in found.entries.items():
            for unseen in unseen_entries:
                self._settle_entry(account_id, unseen, event_keys, outcome)
        return outcome

    def _carry(self, found: FoundUnseen) -> Counter[str]:
        """Put items that the new writer lacks, claims before their events; returns how many, by table.

        The new writer goes on writing, so it may have used a key for something else since `find`. The claim
        that was put first decides: a second event of the key would count twice.
        """
        counts = Counter[str]()
        for table, items in found.carried.items():
            counts[table] += self.new.store(table).put_missing(found.items_to_put(table))
            if table == CLAIMS:
                for old_item, new_item in self.new.with_counterparts(CLAIMS, items):
                    if new_item is not None:
                        found.compare_claims(old_item, new_item)
        return counts

    def _events_at_writer(self, found: FoundUnseen) -> Iterator[Item]:
        """Yield the events of unseen entries that the new writer has, now that items were carried to it."""
        keys: list[Item] = [
            {"user_id": {"S": account_id}, "event_id": {"S": str(unseen.entry.draft.event_id)}}
            for account_id, unseen_entries in found.entries.items()
            for unseen in unseen_entries
            if unseen.fate is UnseenFate.EVENT
        ]
        return (item for _, item in self.new.with_counterparts(EVENTS, keys) if item)

    def _settle_entry(
        self, account_id: str, unseen: UnseenEntry, event_keys: EventKeys, outcome: ReturnOutcome
    ) -> None:
        """Carry out an entry's command, if it is one, and record in `outcome` what became of the entry.

        event_keys: of the events that the new writer has. It applies these by itself.
        """
        draft = unseen.entry.draft
        match unseen.fate:
            case UnseenFate.EVENT:
                is_there = (account_id, str(draft.event_id)) in event_keys
                reason = (
                    "" if is_there else "its event is in neither region, or its key stands for another one"
                )
            case UnseenFate.REDEEM:
                reason = self._command(account_id, "redemptions", _redemption_body(unseen))
            case UnseenFate.REVERSE:
                redemption = entry_id(str(draft.reverses))
                reason = self._command(account_id, f"redemptions/{redemption}/reversal", {})
            case UnseenFate.FOLLOWS | UnseenFate.UNDONE | UnseenFate.LISTED:
                reason = unseen.reason  # "" unless somebody must decide
        if reason:
            words = (account_id, unseen.entry.created_at, draft.kind, f"{draft.points:+d}", draft.reward_id)
            outcome.listed.append(ListedItem(LEDGER, " ".join(word for word in words if word), reason))
        else:
            outcome.applied[f"{draft.kind.value} {unseen.fate.value}"] += 1

    def _command(self, account_id: str, path: str, body: dict[str, Any]) -> str:
        """Send a command to the new writer; returns why it refused, or "".

        Raises RuntimeError if the writer stays unavailable or throttles for ATTEMPTS_MAX attempts.
        """
        for _ in range(ATTEMPTS_MAX):  # the door pauses between attempts of its own (local.api)
            status, answer = self.door.call("POST", f"/v1/users/{path_part(account_id)}/{path}", body)
            if status < 300:
                return ""
            if status < 500 and status != 429:
                refusal = answer.get("error", {})
                return f"{refusal.get('code')}: {refusal.get('message')}"
        raise RuntimeError(f"the new writer's door answers {status}: run it again")

    def follow(self, found: FoundUnseen, client: Any, now: datetime) -> None:
        """Steps 3 to 5: cut the old region, let it join, and fill it.

        client: of DynamoDB, which may write in the old region while that follows.
        """
        self.say(f"{self._cut(found)} items of the old region were cut")
        register = self._register()
        self.registers.change(register, join_region(register, self.old.region))
        self.sleep(QUIET_SECONDS)
        register, follower = self._register(), Follower(client, self.old.tables)
        RegionFill(self.old, self.new, follower, register.epoch, now, self.say).run()
        register = self._register()
        self.registers.change(register, mark_filled(register, self.old.region))
        self.say(f"{self.old.region} follows {register.writer}, epoch {register.epoch}")

    def _register(self) -> Register:
        register = self.registers.read()
        if register is None:
            raise NotPossible("the register is gone")
        return register

    def _cut(self, found: FoundUnseen) -> int:
        """Delete from the old region what the new one does not have.

        Returns how many items were deleted or rewritten.
        """
        changed = sum(self._cut_ledger(account_id) for account_id in found.entries)
        for table in sorted(KEYS.keys() & self.old.tables.keys() - {LEDGER}):
            store = self.old.store(table)
            for item in self.new.lacking(table, self.old.items(table)):
                store.delete(item)
                changed += 1
        return changed

    def _cut_ledger(self, account_id: str) -> int:
        """Cut an old ledger after the last entry that both regions have, and mark that entry as its head.

        The old head is deleted last. While it is there, a second run finds the account again. Returns how
        many items were deleted or rewritten.
        """
        new_items = {key_of(LEDGER, item): item for item in self.new.ledger_items(account_id)}
        old_items = {key_of(LEDGER, item): item for item in self.old.ledger_items(account_id)}
        common_keys = sorted(old_items.keys() & new_items.keys())
        store, changed = self.old.store(LEDGER), 0
        for key in common_keys:
            item = _cut_item(new_items[key], head_key=common_keys[-1])
            if shared_fields(old_items[key]) != item:
                store.put(item)
                changed += 1
        for key in sorted(old_items.keys() - new_items.keys()):
            store.delete(old_items[key])
            changed += 1
        return changed


def _redemption_body(unseen: UnseenEntry) -> dict[str, Any]:
    """Return the request that redeems again under the old key, so that a client's repetition finds it."""
    draft = unseen.entry.draft
    key = unseen.key.removeprefix(REDEEM) if unseen.key else f"region-{entry_id(unseen.entry.created_at)}"
    body: dict[str, Any] = {"reward_id": draft.reward_id, "idempotency_key": key}
    # A redemption at a price of the book names no points: the writer takes them from the book.
    return body if draft.rules_version else {**body, "points": -draft.points}


def _cut_item(stored: Item, head_key: tuple[str, ...]) -> Item:
    """Return an entry's item in a ledger that ends with the entry of `head_key`, which alone is `active`."""
    item = shared_fields(stored)
    item.pop("active", None)
    if key_of(LEDGER, item) == head_key:
        item["active"] = {"BOOL": True}
    _, head_created_at = head_key
    if item.get("reversed_by", {}).get("S", "") > head_created_at:
        del item["reversed_by"]  # that reversal is behind the cut; filling brings it back
    return item
