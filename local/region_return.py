"""Returns a region that wrote before to a new writer: nothing of it is lost, and then it follows (rule 23).

1. Find what the old region has that the new writer never saw (local/region_unseen.py), for a report.
2. Apply it: events go to the new writer with their claims, and its API carries out commands under their keys.
3. Cut the old ledgers where both regions agree, and delete whatever the new writer does not have.
4. Join: from here on the new writer's changes are sent to the old region.
5. Fill: the old region takes over what the new writer had before, by the code that follows changes.

The steps may be interrupted anywhere and run again. Steps 1 and 2 change nothing the second time: an event is
applied once, a command is carried out once under its key.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from adapters.platform.fence import RegisterStore
from adapters.platform.items import Item
from adapters.platform.tables import BEFORE_ALL, chunks, get_all, query_all
from adapters.privacy.tombstones import ErasureCheck
from adapters.regions import Follower, claims_of, events_of
from ingest.engagement.points.commands import REDEEM
from local.region_unseen import (
    CLAIMS,
    EVENTS,
    PROFILES,
    FoundUnseen,
    ListedItem,
    Side,
    UnseenFinder,
    is_deletion_mark,
    key_of,
    shared_fields,
)
from rules.engagement.ledger import entry_id
from rules.regions.changes import KEYS, LEDGER, ItemChange, place_needed
from rules.regions.register import QUIET_SECONDS, NotPossible, Register, join_region, mark_filled
from rules.regions.standby import UnseenEntry, UnseenFate

FILL_CHUNK_ITEMS = 200
ATTEMPTS_MAX = 5
DAYS = "DailyActivity"
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
            free = [item for item in items if table != EVENTS or key_of(CLAIMS, item) not in found.taken_keys]
            counts[table] += self.new.store(table).put_missing(free)
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
        draft, reason = unseen.entry.draft, unseen.reason
        if unseen.fate is UnseenFate.EVENT:
            is_there = (account_id, str(draft.event_id)) in event_keys
            reason = "" if is_there else "its event is in neither region, or its key stands for another one"
        elif unseen.fate is UnseenFate.REDEEM:
            reason = self._command(account_id, "redemptions", _redemption_body(unseen))
        elif unseen.fate is UnseenFate.REVERSE:
            reason = self._command(account_id, f"redemptions/{entry_id(str(draft.reverses))}/reversal", {})
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
            status, answer = self.door.call("POST", f"/v1/users/{account_id}/{path}", body)
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
        self._fill(Follower(client, self.old.tables), self._register().epoch, now)
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
        for table in KEYS.keys() & self.old.tables.keys() - {LEDGER}:
            store = self.old.store(table)
            for old_item, new_item in self.new.with_counterparts(table, self.old.items(table)):
                if new_item is None and not is_deletion_mark(table, old_item):
                    store.delete(old_item)
                    changed += 1
        return changed

    def _cut_ledger(self, account_id: str) -> int:
        """Cut an old ledger after the last entry that both regions have, and mark that entry as its head.

        The old head is deleted last. While it is there, a second run finds the account again. Returns how
        many items were deleted or rewritten.
        """
        new_items = {key_of(LEDGER, item): item for item in self.new.ledger_items(account_id)}
        old_items = {key_of(LEDGER, item): item for item in self.old.ledger_items(account_id)}
        common = {key: shared_fields(new_items[key]) for key in old_items if key in new_items}
        last_key = max(common, default=None)
        for key, item in common.items():
            item.pop("active", None)
            if key == last_key:
                item["active"] = {"BOOL": True}
            _, last_created_at = last_key or ("", "")
            if item.get("reversed_by", {}).get("S", "") > last_created_at:
                del item["reversed_by"]  # that reversal is behind the cut; filling brings it back
        store, changed = self.old.store(LEDGER), 0
        for key, item in common.items():
            if shared_fields(old_items[key]) != item:
                store.put(item)
                changed += 1
        for key in sorted(old_items.keys() - new_items.keys()):
            store.delete(old_items[key])
            changed += 1
        return changed

    def _fill(self, follower: Follower, epoch: int, now: datetime) -> None:
        """Let the old region take over all that the new one has. Raises RuntimeError if something remains.

        The order is that in which a writer writes: an event's claim first; an entry before the days, the
        profile and the command's claim that name it.
        """
        event_claims = (claim for claim in self._claims() if not place_needed(CLAIMS, claim))
        command_claims = (claim for claim in self._claims() if place_needed(CLAIMS, claim))
        others = sorted(KEYS.keys() & self.new.tables.keys() - {CLAIMS, EVENTS, LEDGER, DAYS, PROFILES})
        steps = [
            (CLAIMS, event_claims),
            *((table, self.new.items(table)) for table in (EVENTS, LEDGER, DAYS, PROFILES)),
            (CLAIMS, command_claims),
            *((table, self.new.items(table)) for table in others),
        ]
        for table, items in steps:
            count = 0
            for chunk in chunks(items, FILL_CHUNK_ITEMS):
                self._take_over(follower, [_change(table, epoch, item) for item in chunk], now)
                count += len(chunk)
            self.say(f"{table}: {count} items")

    def _claims(self) -> Iterator[Item]:
        return (item for item in self.new.items(CLAIMS) if not is_deletion_mark(CLAIMS, item))

    def _take_over(self, follower: Follower, changes: list[ItemChange], now: datetime) -> None:
        """Let the old region take over changes. Before one that waits for others, it takes over these.

        A change waits if the new writer has written what it needs after that table was filled.
        """
        for _ in range(ATTEMPTS_MAX):
            outcome = follower.follow(changes, now)
            if outcome.wrong:
                raise RuntimeError("; ".join(f"{change.owner}: {why}" for change, why in outcome.wrong))
            changes = outcome.waiting
            if not changes:
                return
            follower.follow(list(self._prerequisites(changes, now)), now)
        raise RuntimeError(f"{len(changes)} items of {changes[0].table} wait for others: run it again")

    def _prerequisites(self, waiting: list[ItemChange], now: datetime) -> Iterator[ItemChange]:
        """Yield what the waiting changes need, in the order of dependence, and waiting events and entries."""
        epoch = waiting[0].epoch
        # A profile, a day and a command's claim need entries that the old region lacks.
        entries = [change for change in waiting if change.table == LEDGER]
        for owner in sorted({change.owner for change in waiting if change.table not in (LEDGER, EVENTS)}):
            newest = self.old.ledger.newest(owner)
            newer = self.new.ledger.stored_after(owner, newest.created_at if newest else BEFORE_ALL)
            entries += [_change(LEDGER, epoch, item) for item in newer]
        # A profile says that its days are written.
        for owner in sorted({change.owner for change in waiting if change.table == PROFILES}):
            yield from (_change(DAYS, epoch, day) for day in self._days(owner))
        # An entry needs its event, and an event its claim.
        event_keys = {key for entry in entries for key in events_of(entry, now)}
        events = [change for change in waiting if change.table == EVENTS]
        events += [_change(EVENTS, epoch, item) for item in self._items_of_keys(EVENTS, event_keys)]
        claim_keys = {key for event in events for key in claims_of(event, now)}
        yield from (_change(CLAIMS, epoch, item) for item in self._items_of_keys(CLAIMS, claim_keys))
        yield from (*events, *entries)

    def _items_of_keys(self, table: str, keys: Iterable[tuple[str, str]]) -> list[Item]:
        partition_key, sort_key = KEYS[table]
        wanted = [{partition_key: partition, sort_key: sort} for partition, sort in sorted(keys)]
        return get_all(self.new.dynamodb, self.new.tables[table], wanted)

    def _days(self, user_id: str) -> Iterator[Item]:
        return query_all(
            self.new.dynamodb,
            TableName=self.new.tables[DAYS],
            KeyConditionExpression="user_id = :user",
            ExpressionAttributeValues={":user": {"S": user_id}},
            ConsistentRead=True,
        )


def _redemption_body(unseen: UnseenEntry) -> dict[str, Any]:
    """Return the request that redeems again under the old key, so that a client's repetition finds it."""
    draft = unseen.entry.draft
    key = unseen.key.removeprefix(REDEEM) if unseen.key else f"region-{entry_id(unseen.entry.created_at)}"
    body: dict[str, Any] = {"reward_id": draft.reward_id, "idempotency_key": key}
    # A redemption at a price of the book names no points: the writer takes them from the book.
    return body if draft.rules_version else {**body, "points": -draft.points}


def _change(table: str, epoch: int, stored: Item) -> ItemChange:
    """Return an item as the first change of an epoch: every change that is sent live is newer."""
    key = {name: stored[name] for name in KEYS[table]}
    return ItemChange(table, epoch, 0, key, shared_fields(stored), is_new=True)
