"""Finds what the old writer's region has that the new writer never saw (rule 23), by reading both regions.

The *old region* is the one that returns. The *new writer* writes meanwhile. Tables are named as in the
template.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from adapters.engagement.account_items import entry_from, entry_key
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.item_tables import ItemTable
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import BEFORE_ALL, READ_MAX, chunks, get_all, query_all, scan_all
from adapters.privacy.tombstones import ErasureCheck, subject_of
from ingest.engagement.points.commands import COMMAND, FREE_FREEZE
from rules.days import key_of_stamp
from rules.engagement.ledger import Entry
from rules.regions.changes import DELETED_PREFIX, FOLLOWED, KEYS, LEDGER
from rules.regions.followed_tables import UnseenPolicy
from rules.regions.standby import (
    UNSEEN_POLICIES,
    UnseenEntry,
    settings_unseen,
    tables_in_order,
    unseen_entries,
)

# Attributes that only one region knows: by which change an item was followed, and its stream's position.
REGIONAL_ATTRIBUTES = (FOLLOWED, "applied_through")
PROFILES, CLAIMS, EVENTS = "UserStreaks", "IdempotencyKeys", "BPEvents"


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

    def store(self, table: str) -> ItemTable:
        """Return what writes to a table."""
        return ItemTable(self.dynamodb, self.tables[table], KEYS[table])

    def items(self, table: str) -> Iterator[Item]:
        """Yield all items of a table, strongly consistent."""
        return scan_all(self.dynamodb, TableName=self.tables[table], ConsistentRead=True)

    def ledger_items(self, account_id: str) -> list[Item]:
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
        items = scan_all(
            self.dynamodb,
            TableName=self.tables[LEDGER],
            FilterExpression="attribute_exists(active)",
            ConsistentRead=True,
        )
        return map(entry_from, items)

    def with_counterparts(self, table: str, items: Iterable[Item]) -> Iterator[tuple[Item, Item | None]]:
        """Yield each of the other side's items with the item that this side has under its key, or None."""
        for chunk in chunks(items, READ_MAX):
            keys = (decode_item({name: item[name] for name in KEYS[table]}) for item in chunk)
            item_by_key = {
                key_of(table, item): item for item in get_all(self.dynamodb, self.tables[table], keys)
            }
            for item in chunk:
                yield item, item_by_key.get(key_of(table, item))

    def lacking(self, table: str, items: Iterable[Item]) -> Iterator[Item]:
        """Yield those of the other side's items whose keys this side has not, without marks of deletions."""
        pairs = self.with_counterparts(table, items)
        return (item for item, own in pairs if own is None and not is_deletion_mark(table, item))


def key_of(table: str, stored: Item) -> tuple[str, ...]:
    """Return the key of an item of a table: the texts of its key attributes."""
    return tuple(str(next(iter(stored[name].values()))) for name in KEYS[table])


def shared_fields(stored: Item | None) -> Item:
    """Return an item without its REGIONAL_ATTRIBUTES; {} for no item."""
    return {name: value for name, value in (stored or {}).items() if name not in REGIONAL_ATTRIBUTES}


def is_deletion_mark(table: str, stored: Item) -> bool:
    """Whether an item notes that a followed item was deleted. Each region has its own, among the claims."""
    return table == CLAIMS and stored["user_id"]["S"].startswith(DELETED_PREFIX)


def stands_for_event(target: object) -> bool:
    """Whether a claim's target is an event's id, TIME#UUID. Otherwise it is the place of an entry, TIME."""
    return "#" in str(target)


@dataclass(frozen=True, slots=True)
class ListedItem:
    """Something that somebody must decide about."""

    store: str  # its table
    key: str  # the item's key, or the user; never what the item holds
    reason: str


@dataclass(slots=True)
class FoundUnseen:
    """What the old writer has that the new one never saw."""

    entries: dict[str, list[UnseenEntry]] = field(default_factory=dict)  # by account, oldest first
    carried: dict[str, list[Item]] = field(default_factory=dict)  # by table: see items_to_put
    listed: list[ListedItem] = field(default_factory=list)
    taken_keys: set[tuple[str, ...]] = field(default_factory=set)  # claims that differ between the regions

    def items_to_put(self, table: str) -> list[Item]:
        """Return the items of a table to put, without events whose key is taken: they would count twice."""
        items = self.carried.get(table, [])
        return [item for item in items if table != EVENTS or key_of(CLAIMS, item) not in self.taken_keys]

    def compare_claims(self, old_item: Item, new_item: Item) -> None:
        """List a key whose claim stands for one thing in the old region, and for another in the new one."""
        old_claim, new_claim = decode_item(old_item), decode_item(new_item)
        old_target, new_target = old_claim.get("target"), new_claim.get("target")
        if old_target == new_target:
            return
        self.taken_keys.add(key_of(CLAIMS, old_item))
        if old_claim.get("body_hash") != new_claim.get("body_hash"):
            reason = "another body in each region"
        elif stands_for_event(old_target):
            reason = "one event under two ids, the new writer's counts"
        else:
            reason = "carried out in both regions"
        reason += f": {old_target} and {new_target}"
        self.listed.append(ListedItem(CLAIMS, _label(CLAIMS, old_item), reason))


@dataclass(frozen=True, slots=True)
class UnseenFinder:
    """Finds what is unseen by reading both regions; it writes nothing."""

    old: Side  # the region that returns
    new: Side  # the one that writes
    erased: ErasureCheck  # items of erased persons are left out
    now: datetime

    def find(self) -> FoundUnseen:
        """Return what the new writer never saw; no one may write to the old region meanwhile."""
        found = FoundUnseen()
        for account_id in self._diverged_accounts():
            old_entries, new_entries = self.old.entries(account_id), self.new.entries(account_id)
            unseen = unseen_entries(old_entries, new_entries, self._command_keys(account_id))
            found.entries[account_id] = unseen
        for table in tables_in_order(self.old.tables.keys() & UNSEEN_POLICIES.keys()):
            self._compare_items(table, found)
        self._compare_settings(found)
        return found

    def _diverged_accounts(self) -> Iterator[str]:
        """Yield the accounts whose newest entry in the old region the new writer does not have.

        Of every other account it has the whole ledger, because entries are followed in order.
        """
        heads = (_head_key(entry) for entry in self.old.heads())
        for old_head, new_head in self.new.with_counterparts(LEDGER, heads):
            if new_head is None:
                yield old_head["account_id"]["S"]

    def _command_keys(self, account_id: str) -> dict[str, str]:
        """Return the idempotency keys of a user's commands, by the `created_at` of their entries."""
        claims = query_all(
            self.old.dynamodb,
            TableName=self.old.tables[CLAIMS],
            KeyConditionExpression="user_id = :user AND begins_with(idempotency_key, :command)",
            ExpressionAttributeValues={":user": {"S": account_id}, ":command": {"S": COMMAND}},
            ConsistentRead=True,
        )
        keys = {}
        for claim in map(decode_item, claims):
            key = claim["idempotency_key"].removeprefix(COMMAND)
            if not key.startswith(FREE_FREEZE):  # it counts a month's free freezes; no client has sent it
                keys[claim["target"]] = key
        return keys

    def _compare_items(self, table: str, found: FoundUnseen) -> None:
        """Add a table's items to what is carried or listed, by the table's policy.

        CARRIED: the new writer gets the items that it lacks. LISTED: a report names the items that it lacks,
        and those that both regions have changed.
        """
        policy = UNSEEN_POLICIES[table]
        if policy is UnseenPolicy.DERIVED:
            return
        for old_item, new_item in self.new.with_counterparts(table, self.old.items(table)):
            if shared_fields(old_item) == shared_fields(new_item) or self._is_left_out(table, old_item):
                continue
            if policy is UnseenPolicy.LISTED:
                _list_changed(table, old_item, new_item, found)
            elif new_item is not None:
                if table == CLAIMS:
                    found.compare_claims(old_item, new_item)
            elif not (table == CLAIMS and self._is_claim_of_unseen_entry(old_item)):
                found.carried.setdefault(table, []).append(shared_fields(old_item))

    def _is_claim_of_unseen_entry(self, claim: Item) -> bool:
        """Whether a claim is of a command whose entry the new writer lacks.

        It comes with the entry, if that is carried out there. Alone it would refuse the key for good.
        """
        if not claim["idempotency_key"]["S"].startswith(COMMAND):
            return False
        place = {"S": key_of_stamp(claim["target"]["S"])}
        key = {"account_id": claim["user_id"], "created_at": place}
        return all(entry is None for _, entry in self.new.with_counterparts(LEDGER, [key]))

    def _is_left_out(self, table: str, old_item: Item) -> bool:
        """Whether an item has expired, is a region's own mark, or is of a person who was erased."""
        if is_deletion_mark(table, old_item):
            return True
        expires = decode_item(old_item).get("ttl")
        if isinstance(expires, int) and expires <= self.now.timestamp():
            return True
        subject = subject_of(old_item) if table != "Erasures" else None  # an erasure itself must not be lost
        return bool(subject and (erasure := self.erased.of(subject)) and erasure.stands)

    def _compare_settings(self, found: FoundUnseen) -> None:
        for old_item, new_item in self.new.with_counterparts(PROFILES, self.old.items(PROFILES)):
            if FOLLOWED in old_item or shared_fields(old_item) == shared_fields(new_item):
                continue  # a profile that was followed last has no setting of the old region's own
            settings = settings_unseen(decode_item(old_item), decode_item(new_item or {}))
            if settings:
                reason = f"{', '.join(settings)}: other than the new writer has"
                found.listed.append(ListedItem(PROFILES, old_item["user_id"]["S"], reason))


def _list_changed(table: str, old_item: Item, new_item: Item | None, found: FoundUnseen) -> None:
    if new_item is not None and FOLLOWED in old_item:
        return  # an item that was followed last has no change of the old region's own
    reason = "the new writer lacks it" if new_item is None else "both regions have changed it"
    found.listed.append(ListedItem(table, _label(table, old_item), reason))


def _head_key(entry: Entry) -> Item:
    return encode_item(entry_key(entry.account_id, entry.created_at))


def _label(table: str, stored: Item) -> str:
    """Return an item's key as the report has it: a client's key without the prefix of commands."""
    return "/".join(key_of(table, stored)).replace(COMMAND, "")
