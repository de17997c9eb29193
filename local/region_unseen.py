"""What a region has that the new writer never saw (rule 23). It is found by reading both regions."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from adapters.engagement.account_items import entry_from
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.item_tables import ItemTable
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import READ_MAX, chunks, get_all, query_all, scan_all
from adapters.privacy.tombstones import ErasureCheck, subject_of
from ingest.engagement.points.commands import COMMAND
from rules.engagement.ledger import Entry
from rules.regions.changes import FOLLOWED, GONE, KEYS, LEDGER
from rules.regions.standby import (
    UNSEEN_POLICIES,
    UnseenEntry,
    UnseenPolicy,
    common_length,
    settings_unseen,
    tables_in_order,
    unseen_entries,
)

BEFORE_ALL = "0"  # sorts before every place
# Of an item, what tells where it came from, or where in its region's streams it stands.
OWN = (FOLLOWED, "applied_through")
PROFILES, CLAIMS, EVENTS = "UserStreaks", "IdempotencyKeys", "BPEvents"
PLACE = "free-freeze:"  # of a month's free freezes, not of a command


@dataclass(frozen=True)
class Side:
    """One region's tables, as the return of one of them reads and writes them."""

    region: str
    dynamodb: Any
    tables: Mapping[str, str]  # by their names in the template

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


@dataclass(frozen=True, slots=True)
class Listed:
    """Something that somebody must decide about."""

    store: str  # the table's name in the template
    key: str  # whose, or which; never what it holds
    reason: str


@dataclass(slots=True)
class FoundUnseen:
    """What the old writer has that the new one never saw."""

    # By account: how many entries it has in common, and the unseen ones behind them.
    accounts: dict[str, tuple[int, list[UnseenEntry]]] = field(default_factory=dict)
    # By table: items that the new writer gets unless their key is taken.
    carried: dict[str, list[Item]] = field(default_factory=dict)
    listed: list[Listed] = field(default_factory=list)
    taken: set[tuple[str, ...]] = field(default_factory=set)  # keys that mean another thing in each region

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
    """Finds what is unseen by reading both regions; it writes nothing."""

    old: Side  # the region that returns
    new: Side  # the one that writes
    erased: ErasureCheck  # whose items go nowhere
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
