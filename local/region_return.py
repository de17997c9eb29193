"""The return of a region that wrote before: nothing of it is lost, and then it follows (rule 23).

1. Find: what it has that the new writer never saw. Nothing is written, and all of it is told in a report.
2. Apply: events go to the new writer with their claims; commands are asked for at its door, under their keys.
3. Cut: the old ledgers end where both regions agree. What the new writer does not have is deleted.
4. Join: from here on the new writer's changes are sent.
5. Fill: all that was there before is taken over, by the same code.

It may die anywhere and run again. Steps 1 and 2 change nothing the second time: an event is applied once, a
command is carried out once under its key.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol

from adapters.engagement.account_items import entry_from
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.item_tables import ItemTable
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import READ_MAX, chunks, get_all, query_all, scan_all
from adapters.privacy.tombstones import ErasureCheck, subject_of
from adapters.regions import Follower, claims_of, events_of
from ingest.engagement.points.commands import COMMAND, REDEEM
from rules.engagement.ledger import Entry, entry_id
from rules.regions.changes import FOLLOWED, GONE, KEYS, LEDGER, ItemChange, place_needed
from rules.regions.standby import (
    UNSEEN_POLICIES,
    UnseenEntry,
    UnseenFate,
    UnseenPolicy,
    common_length,
    settings_unseen,
    tables_in_order,
    unseen_entries,
)

# Tables of both regions, as the return of one of them reads and writes them (rule 23).


BEFORE_ALL = "0"  # sorts before every place
# Of an item, what tells where it came from, or where in its region's streams it stands.
OWN = (FOLLOWED, "applied_through")


@dataclass(frozen=True)
class Side:
    """One region's tables. tables: by name in the template."""

    region: str
    dynamodb: Any
    tables: Mapping[str, str]

    @cached_property
    def ledger(self) -> LedgerStore:
        """The ledger's store."""
        return LedgerStore(self.dynamodb, self.tables[LEDGER])

    def table(self, name: str) -> ItemTable:
        """Return a table to write to."""
        return ItemTable(self.dynamodb, self.tables[name], KEYS[name])

    def items(self, name: str) -> Iterator[Item]:
        """Yield all items of a table, strongly consistent."""
        return scan_all(self.dynamodb, TableName=self.tables[name], ConsistentRead=True)

    def account(self, account_id: str) -> list[Item]:
        """Return the items of an account's ledger, oldest first, strongly consistent."""
        return list(
            query_all(
                self.dynamodb,
                TableName=self.tables[LEDGER],
                KeyConditionExpression="account_id = :account",
                ExpressionAttributeValues=encode_item({":account": account_id}),
                ConsistentRead=True,
            )
        )

    def entries(self, account_id: str) -> list[Entry]:
        """Return all entries of an account, oldest first, also those that only a carrier names yet."""
        return self.ledger.after(account_id, BEFORE_ALL)[0]

    def heads(self) -> Iterator[Entry]:
        """Yield the newest entry of each account."""
        found = scan_all(
            self.dynamodb,
            TableName=self.tables[LEDGER],
            FilterExpression="attribute_exists(active)",
            ConsistentRead=True,
        )
        return map(entry_from, found)

    def same(self, name: str, items: Iterable[Item]) -> Iterator[tuple[Item, Item | None]]:
        """Yield each item with what this side has under its key."""
        for some in chunks(items, READ_MAX):
            keys = (decode_item({key: each[key] for key in KEYS[name]}) for each in some)
            found = {key_of(name, each): each for each in get_all(self.dynamodb, self.tables[name], keys)}
            yield from ((each, found.get(key_of(name, each))) for each in some)


def key_of(name: str, stored: Item) -> tuple[str, ...]:
    """Return an item's key."""
    return tuple(str(next(iter(stored[key].values()))) for key in KEYS[name])


def shared_fields(stored: Item | None) -> Item:
    """Return an item without what is its region's own."""
    return {name: each for name, each in (stored or {}).items() if name not in OWN}


# What the old writer has that the new one never saw: it is found by reading both, and nothing is written.


PROFILES, CLAIMS, EVENTS = "UserStreaks", "IdempotencyKeys", "BPEvents"


@dataclass(frozen=True, slots=True)
class Listed:
    """Something that somebody must decide about. key: whose, or which; never what it holds."""

    store: str
    key: str
    reason: str


@dataclass(slots=True)
class FoundUnseen:
    """What was found. accounts: the unseen entries of each account that has some, and how many it has in
    common.

    carried: items by table, that the new writer gets unless their key is taken. listed: with reasons. taken:
    users' keys that stand for something else in each region.
    """

    accounts: dict[str, tuple[int, list[UnseenEntry]]] = field(default_factory=dict)
    carried: dict[str, list[Item]] = field(default_factory=dict)
    listed: list[Listed] = field(default_factory=list)
    taken: set[tuple[str, ...]] = field(default_factory=set)

    def compare_claims(self, mine: Item, other: Item) -> None:
        """List a key that stands for one thing here, and for another there."""
        one, two = decode_item(mine), decode_item(other)
        if one.get("target") == two.get("target"):
            return
        # An event that is stored under both ids would count twice, also where its body is the same.
        self.taken.add(key_of(CLAIMS, mine))
        if one.get("body_hash") != two.get("body_hash"):
            reason = "another body in each region"
        elif "#" in str(one.get("target")):
            reason = "one event under two ids, the new writer's counts"
        else:
            reason = "carried out in both regions"
        reason += f": {one.get('target')} and {two.get('target')}"
        self.listed.append(Listed(CLAIMS, _label(CLAIMS, mine), reason))


@dataclass(frozen=True, slots=True)
class UnseenFinder:
    """old: the region that returns. new: the one that writes. erased: whose items go nowhere."""

    old: Side
    new: Side
    erased: ErasureCheck
    now: datetime

    def find(self) -> FoundUnseen:
        """Read both regions' tables; the old one must be quiet."""
        found = FoundUnseen()
        for account_id in self._parted():
            theirs, ours = self.old.entries(account_id), self.new.entries(account_id)
            keys = self._keys(account_id)
            found.accounts[account_id] = (common_length(theirs, ours), unseen_entries(theirs, ours, keys))
        for name in tables_in_order(self.old.tables.keys() & UNSEEN_POLICIES.keys()):
            self._items(name, found)
        self._settings(found)
        return found

    def _parted(self) -> Iterator[str]:
        """Yield the accounts whose newest entry the new writer does not have: all others' ledgers it has
        whole.
        """
        heads = ({**_head_item(each)} for each in self.old.heads())
        for head, other in self.new.same(LEDGER, heads):
            if other is None:
                yield head["account_id"]["S"]

    def _keys(self, account_id: str) -> dict[str, str]:
        """Return the keys of a user's commands, by the places of their entries."""
        claims = query_all(
            self.old.dynamodb,
            TableName=self.old.tables[CLAIMS],
            KeyConditionExpression="user_id = :user AND begins_with(idempotency_key, :command)",
            ExpressionAttributeValues={":user": {"S": account_id}, ":command": {"S": COMMAND}},
            ConsistentRead=True,
        )
        keys = {
            each["target"]: each["idempotency_key"].removeprefix(COMMAND) for each in map(decode_item, claims)
        }
        return {place: key for place, key in keys.items() if not key.startswith(PLACE)}

    def _items(self, name: str, found: FoundUnseen) -> None:
        way = UNSEEN_POLICIES[name]
        if way is UnseenPolicy.DERIVED:
            return
        for mine, other in self.new.same(name, self.old.items(name)):
            if shared_fields(mine) == shared_fields(other) or self._is_nobodys(name, mine):
                continue
            if name == CLAIMS and other is not None:
                found.compare_claims(mine, other)
            elif other is None and way is UnseenPolicy.CARRIED and not _is_of_unseen(name, mine, found):
                found.carried.setdefault(name, []).append(shared_fields(mine))
            elif way is UnseenPolicy.LISTED and (other is None or FOLLOWED not in mine):
                reason = "the new writer lacks it" if other is None else "both regions have changed it"
                found.listed.append(Listed(name, _label(name, mine), reason))

    def _is_nobodys(self, name: str, mine: Item) -> bool:
        """Whether an item's time is over, it is a mark of ours, or of a person who was erased."""
        if name == CLAIMS and mine["user_id"]["S"].startswith(GONE):
            return True
        expires = decode_item(mine).get("ttl")
        if isinstance(expires, int) and expires <= self.now.timestamp():
            return True
        subject = subject_of(mine) if name != "Erasures" else None
        return bool(subject and (of := self.erased.of(subject)) and of.stands)

    def _settings(self, found: FoundUnseen) -> None:
        for mine, other in self.new.same(PROFILES, self.old.items(PROFILES)):
            if FOLLOWED in mine or shared_fields(mine) == shared_fields(other):
                continue  # whoever only follows has set nothing
            names = settings_unseen(decode_item(mine), decode_item(other or {}))
            if names:
                reason = f"{', '.join(names)}: other than the new writer has"
                found.listed.append(Listed(PROFILES, mine["user_id"]["S"], reason))


PLACE = "free-freeze:"  # of a month's free freezes, not of a command


def _head_item(entry: Entry) -> Item:
    return {"account_id": {"S": entry.account_id}, "created_at": {"S": entry.created_at}}


def _label(name: str, stored: Item) -> str:
    return "/".join(key_of(name, stored)).replace(COMMAND, "")


def _is_of_unseen(name: str, mine: Item, found: FoundUnseen) -> bool:
    """Whether an item is the claim of an unseen entry: it comes with the entry, if that is applied."""
    if name != CLAIMS:
        return False
    _, beyond = found.accounts.get(mine["user_id"]["S"], (0, []))
    return mine.get("target", {}).get("S") in {each.entry.created_at for each in beyond}


FILLED_AT_ONCE = 200
ATTEMPTS_MAX = 5
DAYS = "DailyActivity"
# As the writer writes (rules.regions.changes). Claims come twice: those of events, then those of commands.
FILL_ORDER = (CLAIMS, EVENTS, LEDGER, DAYS, PROFILES, CLAIMS)


class WriterDoor(Protocol):
    """The new writer's API, as an admin."""

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and answer."""


@dataclass(slots=True)
class ReturnOutcome:
    """What became of what was unseen. applied, listed: entries by kind; all that is listed is named in
    `names`.
    """

    applied: Counter[str] = field(default_factory=Counter)
    carried: Counter[str] = field(default_factory=Counter)
    names: list[Listed] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Returning:
    """old: the region that returns, and is quiet. new: the one that writes. door: of the new one."""

    old: Side
    new: Side
    door: WriterDoor

    def apply(self, found: FoundUnseen) -> ReturnOutcome:
        """Give the new writer what it never saw; returns what became of each thing."""
        carried = self._carry(found)
        outcome = ReturnOutcome(carried=carried, names=list(found.listed))
        events = {(key_of(EVENTS, each)) for each in self._carried_or_there(found)}
        for account_id, (_, beyond) in found.accounts.items():
            for each in beyond:
                self._apply(account_id, each, events, outcome)
        return outcome

    def _carry(self, found: FoundUnseen) -> Counter[str]:
        """Put items that the new writer lacks, claims before their events; returns how many, by table.

        It writes all the time. So a key may stand for something else there by now, and whoever has put its
        claim decides: a second event of the key would count twice.
        """
        carried = Counter[str]()
        for name, items in found.carried.items():
            free = [each for each in items if name != EVENTS or key_of(CLAIMS, each) not in found.taken]
            carried[name] += self.new.table(name).put_missing(free)
            if name == CLAIMS:
                for mine, other in self.new.same(CLAIMS, items):
                    if other is not None:
                        found.compare_claims(mine, other)
        return carried

    def _carried_or_there(self, found: FoundUnseen) -> Iterator[Item]:
        """Yield the events of unseen entries that the new writer has by now."""
        wanted: list[Item] = [
            {"user_id": {"S": account_id}, "event_id": {"S": str(each.entry.draft.event_id)}}
            for account_id, (_, beyond) in found.accounts.items()
            for each in beyond
            if each.fate is UnseenFate.EVENT
        ]
        return (other for _, other in self.new.same(EVENTS, wanted) if other)

    def _apply(
        self, account_id: str, each: UnseenEntry, events: set[tuple[str, ...]], outcome: ReturnOutcome
    ) -> None:
        draft, reason = each.entry.draft, each.reason
        if each.fate is UnseenFate.EVENT:
            is_there = (account_id, str(draft.event_id)) in events
            reason = "" if is_there else "its event is in neither region, or its key stands for another one"
        elif each.fate is UnseenFate.REDEEM:
            reason = self._ask(account_id, "redemptions", self._redemption(each))
        elif each.fate is UnseenFate.REVERSE:
            reason = self._ask(account_id, f"redemptions/{entry_id(str(draft.reverses))}/reversal", {})
        kind = f"{draft.kind.value} {each.fate.value}"
        if reason:
            name = (
                f"{account_id} {each.entry.created_at} {draft.kind} {draft.points:+d} {draft.reward_id or ''}"
            )
            outcome.names.append(Listed(LEDGER, name.strip(), reason))
        else:
            outcome.applied[kind] += 1

    def _redemption(self, each: UnseenEntry) -> dict[str, Any]:
        """Return a redemption's body, under the key that it had: so a client that asks again gets this
        one.
        """
        draft = each.entry.draft
        key = each.key.removeprefix(REDEEM) if each.key else f"region-{entry_id(each.entry.created_at)}"
        body: dict[str, Any] = {"reward_id": draft.reward_id, "idempotency_key": key}
        return body if draft.rules_version else {**body, "points": -draft.points}

    def _ask(self, account_id: str, path: str, body: dict[str, Any]) -> str:
        """Ask the new writer's door; returns why it refused, or "". Raises RuntimeError if it is away."""
        for _ in range(ATTEMPTS_MAX):
            status, answer = self.door.call("POST", f"/v1/users/{account_id}/{path}", body)
            if status < 300:
                return ""
            if status < 500 and status != 429:
                told_of = answer.get("error", {})
                return f"{told_of.get('code')}: {told_of.get('message')}"
        raise RuntimeError(f"the new writer's door answers {status}: run it again")

    def cut(self, found: FoundUnseen) -> int:
        """Make the old region hold nothing that the new one has not; returns how many items that changed."""
        changed = 0
        for account_id in found.accounts:
            changed += self._cut_ledger(account_id)
        for name in KEYS.keys() & self.old.tables.keys() - {LEDGER}:
            table = self.old.table(name)
            for mine, other in self.new.same(name, self.old.items(name)):
                if other is None and not _is_mark(name, mine):
                    table.delete(mine)
                    changed += 1
        return changed

    def _cut_ledger(self, account_id: str) -> int:
        """Let an old ledger end with the last entry of both, and be marked as the new one's is.

        The old head goes last: while it is there, the account is found again if this dies halfway.
        """
        ours = {key_of(LEDGER, each): shared_fields(each) for each in self.new.account(account_id)}
        theirs = {key_of(LEDGER, each): each for each in self.old.account(account_id)}
        kept = {key: {**ours[key]} for key in theirs if key in ours}
        last = max(kept)[1] if kept else ""
        for each in kept.values():
            each.pop("active", None)
            if each.get("reversed_by", {}).get("S", "") > last:  # by an entry that is yet to be followed
                del each["reversed_by"]
        if kept:
            kept[max(kept)]["active"] = {"BOOL": True}
        table, changed = self.old.table(LEDGER), 0
        for key, each in kept.items():
            if shared_fields(theirs[key]) != each:
                table.put(each)
                changed += 1
        for key in sorted(theirs.keys() - ours.keys()):
            table.delete(theirs[key])
            changed += 1
        return changed

    def fill(
        self, follower: Follower, epoch: int, now: datetime, say: Callable[[str], None] = lambda _: None
    ) -> None:
        """Let the old region take over all that the new one has. Raises RuntimeError if something remains."""
        others = sorted(KEYS.keys() & self.new.tables.keys() - set(FILL_ORDER))
        for step, name in enumerate((*FILL_ORDER, *others)):
            count = 0
            for some in chunks(self._of_step(step, name), FILLED_AT_ONCE):
                self._fill(follower, [_change(name, epoch, each) for each in some], now)
                count += len(some)
            say(f"{name}: {count} items")

    def _of_step(self, step: int, name: str) -> Iterator[Item]:
        if name != CLAIMS:
            return self.new.items(name)
        claims = (each for each in self.new.items(name) if not _is_mark(name, each))
        return (each for each in claims if bool(place_needed(name, each)) == bool(step))

    def _fill(self, follower: Follower, changes: list[ItemChange], now: datetime) -> None:
        """Take over changes; what needs something newer brings that along."""
        for _ in range(ATTEMPTS_MAX):
            outcome = follower.follow(changes, now)
            if outcome.wrong:
                raise RuntimeError("; ".join(f"{each.owner}: {why}" for each, why in outcome.wrong))
            if not (changes := outcome.waiting):
                return
            follower.follow(list(self._before(changes, now)), now)
        raise RuntimeError(f"{len(changes)} items of {changes[0].table} wait for others: run it again")

    def _before(self, waiting: list[ItemChange], now: datetime) -> Iterator[ItemChange]:
        """Yield what the new writer has of what some changes wait for: entries, days, events and claims."""
        epoch = waiting[0].epoch
        entries = [each for each in waiting if each.table == LEDGER]
        for owner in sorted({each.owner for each in waiting if each.table not in (LEDGER, EVENTS)}):
            newest = self.old.ledger.newest(owner)
            more = self.new.ledger.stored_after(owner, newest.created_at if newest else BEFORE_ALL)
            entries += [_change(LEDGER, epoch, each) for each in more]
        for owner in sorted({each.owner for each in waiting if each.table == PROFILES}):
            yield from (_change(DAYS, epoch, each) for each in self._days(owner))
        ids = {key for each in entries for key in events_of(each, now)}
        events = [each for each in waiting if each.table == EVENTS]
        events += [_change(EVENTS, epoch, each) for each in self._some(EVENTS, ids)]
        keys = {key for each in events for key in claims_of(each, now)}
        yield from (_change(CLAIMS, epoch, each) for each in self._some(CLAIMS, keys))
        yield from (*events, *entries)

    def _some(self, name: str, keys: Iterable[tuple[str, str]]) -> list[Item]:
        first, second = KEYS[name]
        wanted = [{first: one, second: two} for one, two in sorted(keys)]
        return get_all(self.new.dynamodb, self.new.tables[name], wanted)

    def _days(self, user_id: str) -> Iterator[Item]:
        return query_all(
            self.new.dynamodb,
            TableName=self.new.tables[DAYS],
            KeyConditionExpression="user_id = :user",
            ExpressionAttributeValues={":user": {"S": user_id}},
            ConsistentRead=True,
        )


def _change(name: str, epoch: int, stored: Item) -> ItemChange:
    """Return an item as the first change of an epoch: whatever is sent live is newer."""
    key = {each: stored[each] for each in KEYS[name]}
    return ItemChange(name, epoch, 0, key, shared_fields(stored), is_new=True)


def _is_mark(name: str, mine: Item) -> bool:
    return name == CLAIMS and mine["user_id"]["S"].startswith(GONE)
