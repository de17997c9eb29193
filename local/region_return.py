"""The return of a region that wrote before: nothing of it is lost, and then it follows (rule 23).

1. Find: what the old region has that the new writer never saw (local/region_unseen.py). A report lists it.
2. Apply: events go to the new writer with their claims. Its API carries out commands again, under their keys.
3. Cut: the old ledgers end where both regions agree. What the new writer does not have is deleted.
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
    Listed,
    Side,
    UnseenFinder,
    is_mark,
    key_of,
    shared_fields,
)
from rules.engagement.ledger import entry_id
from rules.regions.changes import KEYS, LEDGER, ItemChange, place_needed
from rules.regions.register import QUIET_SECONDS, NotPossible, Register, join_region, mark_filled
from rules.regions.standby import UnseenEntry, UnseenFate

FILLED_AT_ONCE = 200
ATTEMPTS_MAX = 5
DAYS = "DailyActivity"
# The order in which a writer writes. Claims come twice: those of events first, then those of commands.
FILL_ORDER = (CLAIMS, EVENTS, LEDGER, DAYS, PROFILES, CLAIMS)


class WriterDoor(Protocol):
    """The new writer's API, called as an admin."""

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and answer."""


@dataclass(slots=True)
class ReturnOutcome:
    """What became of what was unseen."""

    applied: Counter[str] = field(default_factory=Counter)  # entries, by kind and fate
    carried: Counter[str] = field(default_factory=Counter)  # items, by table
    listed: list[Listed] = field(default_factory=list)  # all that somebody must decide about


@dataclass(frozen=True, slots=True)
class RegionReturn:
    """The steps of a return."""

    old: Side  # the region that returns; nobody writes there
    new: Side  # the one that writes
    registers: RegisterStore
    door: WriterDoor
    sleep: Callable[[float], None]  # waits some seconds
    say: Callable[[str], None]  # gets lines for the operator

    def find(self, erased: ErasureCheck, now: datetime) -> FoundUnseen:
        """Step 1: return what the new writer never saw. Nothing is written.

        erased: what is of erased persons is left out.
        """
        return UnseenFinder(self.old, self.new, erased, now).find()

    def apply(self, found: FoundUnseen) -> ReturnOutcome:
        """Step 2: give the new writer what it never saw; returns what became of each thing."""
        outcome = ReturnOutcome(carried=self._carry(found), listed=list(found.listed))
        events = {key_of(EVENTS, item) for item in self._events_at_writer(found)}
        for account_id, (_, unseen) in found.accounts.items():
            for unseen_entry in unseen:
                self._apply_entry(account_id, unseen_entry, events, outcome)
        return outcome

    def follow(self, found: FoundUnseen, client: Any, now: datetime) -> None:
        """Steps 3 to 5: cut the old region, and let it follow.

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
        """Delete from the old region what the new one does not have; returns how many items were changed."""
        changed = 0
        for account_id in found.accounts:
            changed += self._cut_ledger(account_id)
        for name in KEYS.keys() & self.old.tables.keys() - {LEDGER}:
            table = self.old.table(name)
            for old_item, new_item in self.new.with_counterparts(name, self.old.items(name)):
                if new_item is None and not is_mark(name, old_item):
                    table.delete(old_item)
                    changed += 1
        return changed

    def _fill(self, follower: Follower, epoch: int, now: datetime) -> None:
        """Let the old region take over all that the new one has. Raises RuntimeError if something remains."""
        others = sorted(KEYS.keys() & self.new.tables.keys() - set(FILL_ORDER))
        for step, name in enumerate((*FILL_ORDER, *others)):
            count = 0
            for chunk in chunks(self._items_of_step(step, name), FILLED_AT_ONCE):
                self._follow(follower, [_change(name, epoch, item) for item in chunk], now)
                count += len(chunk)
            self.say(f"{name}: {count} items")

    def _carry(self, found: FoundUnseen) -> Counter[str]:
        """Put items that the new writer lacks, claims before their events; returns how many, by table.

        The new writer writes all the time, so a key may stand for something else there meanwhile. The
        claim that was put first decides: a second event of the key would count twice.
        """
        carried = Counter[str]()
        for name, items in found.carried.items():
            free = [item for item in items if name != EVENTS or key_of(CLAIMS, item) not in found.taken]
            carried[name] += self.new.table(name).put_missing(free)
            if name == CLAIMS:
                for old_item, new_item in self.new.with_counterparts(CLAIMS, items):
                    if new_item is not None:
                        found.compare_claims(old_item, new_item)
        return carried

    def _events_at_writer(self, found: FoundUnseen) -> Iterator[Item]:
        """Yield the events of unseen entries that the new writer has, once its lacking items were put."""
        keys: list[Item] = [
            {"user_id": {"S": account_id}, "event_id": {"S": str(unseen_entry.entry.draft.event_id)}}
            for account_id, (_, unseen) in found.accounts.items()
            for unseen_entry in unseen
            if unseen_entry.fate is UnseenFate.EVENT
        ]
        return (item for _, item in self.new.with_counterparts(EVENTS, keys) if item)

    def _apply_entry(
        self, account_id: str, unseen: UnseenEntry, events: set[tuple[str, ...]], outcome: ReturnOutcome
    ) -> None:
        """Add an unseen entry to an outcome; a command is carried out before. events: keys at the writer."""
        draft, reason = unseen.entry.draft, unseen.reason
        if unseen.fate is UnseenFate.EVENT:
            is_there = (account_id, str(draft.event_id)) in events
            reason = "" if is_there else "its event is in neither region, or its key stands for another one"
        elif unseen.fate is UnseenFate.REDEEM:
            reason = self._ask(account_id, "redemptions", _redemption_body(unseen))
        elif unseen.fate is UnseenFate.REVERSE:
            reason = self._ask(account_id, f"redemptions/{entry_id(str(draft.reverses))}/reversal", {})
        if reason:
            words = (account_id, unseen.entry.created_at, draft.kind, f"{draft.points:+d}", draft.reward_id)
            outcome.listed.append(Listed(LEDGER, " ".join(word for word in words if word), reason))
        else:
            outcome.applied[f"{draft.kind.value} {unseen.fate.value}"] += 1

    def _ask(self, account_id: str, path: str, body: dict[str, Any]) -> str:
        """Send a command to the new writer; returns why it refused, or "".

        Raises RuntimeError if the writer stays unavailable or throttles for ATTEMPTS_MAX attempts.
        """
        for _ in range(ATTEMPTS_MAX):
            status, answer = self.door.call("POST", f"/v1/users/{account_id}/{path}", body)
            if status < 300:
                return ""
            if status < 500 and status != 429:
                refusal = answer.get("error", {})
                return f"{refusal.get('code')}: {refusal.get('message')}"
        raise RuntimeError(f"the new writer's door answers {status}: run it again")

    def _cut_ledger(self, account_id: str) -> int:
        """Let an old ledger end with the last entry of both, and be marked as the new one's is.

        The old head is deleted last. While it is there, a second run finds the account again.
        """
        new_items = {key_of(LEDGER, item): shared_fields(item) for item in self.new.account(account_id)}
        old_items = {key_of(LEDGER, item): item for item in self.old.account(account_id)}
        common = {key: {**new_items[key]} for key in old_items if key in new_items}
        last = max(common)[1] if common else ""
        for item in common.values():
            item.pop("active", None)
            if item.get("reversed_by", {}).get("S", "") > last:  # by an entry that is yet to be followed
                del item["reversed_by"]
        if common:
            common[max(common)]["active"] = {"BOOL": True}
        table, changed = self.old.table(LEDGER), 0
        for key, item in common.items():
            if shared_fields(old_items[key]) != item:
                table.put(item)
                changed += 1
        for key in sorted(old_items.keys() - new_items.keys()):
            table.delete(old_items[key])
            changed += 1
        return changed

    def _items_of_step(self, step: int, name: str) -> Iterator[Item]:
        """Yield a table's items in the new region; of the claims, in step 0 of events, else the others."""
        if name != CLAIMS:
            return self.new.items(name)
        claims = (item for item in self.new.items(name) if not is_mark(name, item))
        return (claim for claim in claims if bool(place_needed(name, claim)) == bool(step))

    def _follow(self, follower: Follower, changes: list[ItemChange], now: datetime) -> None:
        """Take over changes. A change that waits for something newer is taken over with that."""
        for _ in range(ATTEMPTS_MAX):
            outcome = follower.follow(changes, now)
            if outcome.wrong:
                raise RuntimeError("; ".join(f"{change.owner}: {why}" for change, why in outcome.wrong))
            if not (changes := outcome.waiting):
                return
            follower.follow(list(self._prerequisites(changes, now)), now)
        raise RuntimeError(f"{len(changes)} items of {changes[0].table} wait for others: run it again")

    def _prerequisites(self, waiting: list[ItemChange], now: datetime) -> Iterator[ItemChange]:
        """Yield what the new writer has of what some changes wait for: entries, days, events and claims."""
        epoch = waiting[0].epoch
        entries = [change for change in waiting if change.table == LEDGER]
        for owner in sorted({change.owner for change in waiting if change.table not in (LEDGER, EVENTS)}):
            newest = self.old.ledger.newest(owner)
            newer = self.new.ledger.stored_after(owner, newest.created_at if newest else BEFORE_ALL)
            entries += [_change(LEDGER, epoch, item) for item in newer]
        for owner in sorted({change.owner for change in waiting if change.table == PROFILES}):
            yield from (_change(DAYS, epoch, day) for day in self._days(owner))
        event_keys = {key for entry in entries for key in events_of(entry, now)}
        events = [change for change in waiting if change.table == EVENTS]
        events += [_change(EVENTS, epoch, item) for item in self._items_of_keys(EVENTS, event_keys)]
        claim_keys = {key for event in events for key in claims_of(event, now)}
        yield from (_change(CLAIMS, epoch, item) for item in self._items_of_keys(CLAIMS, claim_keys))
        yield from (*events, *entries)

    def _items_of_keys(self, name: str, keys: Iterable[tuple[str, str]]) -> list[Item]:
        partition_key, sort_key = KEYS[name]
        wanted = [{partition_key: partition, sort_key: sort} for partition, sort in sorted(keys)]
        return get_all(self.new.dynamodb, self.new.tables[name], wanted)

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


def _change(name: str, epoch: int, stored: Item) -> ItemChange:
    """Return an item as the first change of an epoch: every change that is sent live is newer."""
    key = {key_name: stored[key_name] for key_name in KEYS[name]}
    return ItemChange(name, epoch, 0, key, shared_fields(stored), is_new=True)
