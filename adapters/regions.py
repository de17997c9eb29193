"""A standby's tables take over the writer's changes, which may come late, twice and in any order (rule 23).

Of each item the newest change wins, but entries are appended to the ledger in their order. Follower goes
through a batch of changes in five steps:

1. Deletions.
2. Items that name no ledger entry, with the claims of events.
3. Events whose claims are stored.
4. New ledger entries whose events are stored.
5. Items that name an entry which is stored: days, profiles after their days, claims of commands.

A change waits if it needs an item that is not stored yet.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from adapters.engagement.account_items import entry_from
from adapters.engagement.ledger_store import HeadMoved, LedgerStore
from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import BEFORE_ALL, get_all, get_one, write_if
from rules.engagement.carriers import unfold_carrier
from rules.engagement.ledger import Entry
from rules.regions.changes import (
    DELETED_KEY,
    DELETED_PREFIX,
    FOLLOWED,
    KEYS,
    LEDGER,
    ItemChange,
    claim_needed,
    days_needed,
    events_needed,
    place_needed,
)
from rules.regions.standby import LedgerContradiction, follow_entry

CLAIMS, EVENTS, PROFILES, DAYS = "IdempotencyKeys", "BPEvents", "UserStreaks", "DailyActivity"
ATTEMPTS_MAX = 6
# A late change must find the mark of its item's deletion. It is under way for less time: at most 7 days in a
# stream, 14 in a queue and 14 in a failure queue.
MARK_KEPT = timedelta(days=60)
IS_NEWER = f"attribute_not_exists({FOLLOWED}) OR {FOLLOWED} < :number"
Keys = set[tuple[str, str]]  # (owner, sort key) of items of one table


class FollowedItems:
    """Items of a standby's tables, without the ledger. Of each item the newest change wins.

    An item keeps the number of the change that it is from (`followed`). A deletion leaves a mark among the
    claims:

    | user_id | idempotency_key | holds |
    |---|---|---|
    | gone/DIGEST of table and key | gone | followed: the deletion's number; ttl |

    The mark is written before the item is deleted. `put` looks for a mark after it has put an item where
    there was none. So of a late put and a deletion, the second one always finds what the first has written.
    tables: by name in the template.
    """

    def __init__(self, dynamodb: Any, tables: Mapping[str, str]) -> None:
        self._dynamodb, self._tables = dynamodb, tables

    def put(self, change: ItemChange) -> bool:
        """Put a changed item if it is newer than the stored one; returns whether it was."""
        number = {":number": {"S": change.number}}
        image = {name: dict(value) for name, value in (change.image or {}).items()}
        image.pop("applied_through", None)  # a place in the writer's stream, which means nothing here
        try:
            before = self._dynamodb.put_item(
                TableName=self._tables[change.table],
                Item={**image, FOLLOWED: {"S": change.number}},
                ConditionExpression=IS_NEWER,
                ExpressionAttributeValues=number,
                ReturnValues="ALL_OLD",
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        if "Attributes" not in before and change.number <= self._newest_deletion(change):
            self._delete(change, f"{FOLLOWED} = :number")
            return False
        return True

    def delete(self, change: ItemChange, now: datetime) -> None:
        """Leave the mark of a deletion, and delete the item unless it is newer than the deletion."""
        mark = {FOLLOWED: change.number, "ttl": int((now + MARK_KEPT).timestamp())}
        write_if(
            self._dynamodb.put_item,
            TableName=self._tables[CLAIMS],
            Item=encode_item(mark_key(change) | mark),
            ConditionExpression=IS_NEWER,
            ExpressionAttributeValues={":number": {"S": change.number}},
        )
        self._delete(change, IS_NEWER)

    def _newest_deletion(self, change: ItemChange) -> str:
        """Return the number of the newest deletion of an item; "" if there is none."""
        item = get_one(self._dynamodb, self._tables[CLAIMS], mark_key(change))
        return str(item[FOLLOWED]["S"]) if item else ""

    def _delete(self, change: ItemChange, condition: str) -> None:
        write_if(
            self._dynamodb.delete_item,
            TableName=self._tables[change.table],
            Key={name: dict(change.key[name]) for name in KEYS[change.table]},
            ConditionExpression=condition,
            ExpressionAttributeValues={":number": {"S": change.number}},
        )


class FollowedDays:
    """The days of a standby. A profile says that its days are written, so they must come before it.

    tables: by name in the template.
    """

    def __init__(self, dynamodb: Any, tables: Mapping[str, str], ledger: LedgerStore) -> None:
        self._dynamodb, self._tables, self._ledger = dynamodb, tables, ledger

    def prepare_profile(self, change: ItemChange) -> bool:
        """Store missing entries that a changed profile counts in; returns whether the profile may be put.

        It may not if the stored days lack some of its entries: then nothing is stored. It may if it is older
        than the stored one, because its change is without effect. The ledger must have its newest entry.
        """
        stored = decode_item(get_one(self._dynamodb, self._tables[PROFILES], {"user_id": change.owner}) or {})
        if stored.get(FOLLOWED, "") >= change.number:
            return True
        head = decode_item(change.image or {}).get("ledger_head", "")
        since = stored.get("ledger_head") or BEFORE_ALL
        if head <= since:
            return True
        entries, missing = self._ledger.after(change.owner, since)
        if not self._are_counted([entry for entry in entries if entry.created_at <= head]):
            return False
        # A process that followed a carrier may have died before it stored the entries that the carrier names.
        # They are stored now, because no writer looks for missing entries before the profile's newest one.
        self._ledger.store_new(missing)
        return True

    def _are_counted(self, entries: list[Entry]) -> bool:
        needed = days_needed(entries)
        if not needed:
            return True
        keys = [{"user_id": entries[0].account_id, "activity_date": day} for day in sorted(needed)]
        items = get_all(self._dynamodb, self._tables[DAYS], keys, "activity_date, ledger_head")
        head_of_day = {day["activity_date"]: day["ledger_head"] for day in map(decode_item, items)}
        return all(head_of_day.get(day, "") >= place for day, place in needed.items())


@dataclass(slots=True)
class FollowedBatch:
    """What became of the changes of a batch."""

    followed: int = 0  # how many changes were taken over
    waiting: list[ItemChange] = field(default_factory=list)  # changes that need an item not stored yet
    wrong: list[tuple[ItemChange, str]] = field(default_factory=list)  # contradictions, each with the reason


class Follower:
    """Takes changes over into a standby's tables.

    dynamodb: a client that the fence lets through while this region follows. tables: by name in the template.
    """

    def __init__(self, dynamodb: Any, tables: Mapping[str, str]) -> None:
        self._dynamodb, self._tables = dynamodb, tables
        self._ledger = LedgerStore(dynamodb, tables[LEDGER])
        self._items = FollowedItems(dynamodb, tables)
        self._days = FollowedDays(dynamodb, tables, self._ledger)

    def follow(self, changes: Sequence[ItemChange], now: datetime) -> FollowedBatch:
        """Take over changes, whatever their order: each after what it needs (rules.regions.changes).

        Raises what DynamoDB raises; then the changes must come again.
        """
        outcome = FollowedBatch()
        puts = [change for change in changes if change.image is not None]
        others = [change for change in puts if change.table not in {LEDGER, EVENTS}]
        # 1. Deletions
        for change in changes:
            if change.image is None:
                self._items.delete(change, now)
                outcome.followed += 1
        # 2. Items that name no ledger entry
        for change in others:
            if not place_needed(change.table, change.image or {}):
                self._put(change, outcome)
        # 3. Events
        events = [(change, claims_of(change, now)) for change in puts if change.table == EVENTS]
        for change in self._split_by_stored(CLAIMS, events, outcome):
            self._put(change, outcome)
        # 4. New entries. Later changes of an entry only set marks, which this region's ledger sets itself.
        entries = [
            (change, events_of(change, now)) for change in puts if change.table == LEDGER and change.is_new
        ]
        ready = self._split_by_stored(EVENTS, entries, outcome)
        for change in sorted(ready, key=lambda entry: (entry.owner, _seq(entry))):
            self._follow_entry(change, outcome)
        # 5. Items that name an entry
        heads: dict[str, str] = {}
        for change in others:
            if place_needed(change.table, change.image or {}):
                self._follow_dependent(change, heads, outcome)
        return outcome

    def _split_by_stored(
        self, table: str, changes_and_keys: Sequence[tuple[ItemChange, Keys]], outcome: FollowedBatch
    ) -> list[ItemChange]:
        """Return the changes whose needed items of a table are stored; the others wait."""
        partition_key, sort_key = KEYS[table]
        item_keys = [
            {partition_key: owner, sort_key: key}
            for owner, key in sorted({pair for _, keys in changes_and_keys for pair in keys})
        ]
        items = get_all(self._dynamodb, self._tables[table], item_keys, f"{partition_key}, {sort_key}")
        stored = {(item[partition_key], item[sort_key]) for item in map(decode_item, items)}
        outcome.waiting += [change for change, keys in changes_and_keys if not keys <= stored]
        return [change for change, keys in changes_and_keys if keys <= stored]

    def _follow_entry(self, change: ItemChange, outcome: FollowedBatch) -> None:
        """Append an entry to the standby's ledger, if it is the next one; else the change waits."""
        *_, entry = _entries_of(change)
        for _ in pauses(ATTEMPTS_MAX):
            newest = self._ledger.newest(entry.account_id)
            head = newest.head if newest else None
            try:
                step = follow_entry(head, entry)
            except LedgerContradiction as error:
                outcome.wrong.append((change, str(error)))
                return
            if step is None:  # entries before it are missing
                break
            with suppress(HeadMoved):
                if step.carrier:
                    self._ledger.follow(head, step.carrier, step.carried)
                else:
                    self._ledger.store_new(step.carried)
                outcome.followed += 1
                return
        outcome.waiting.append(change)

    def _follow_dependent(self, change: ItemChange, heads: dict[str, str], outcome: FollowedBatch) -> None:
        """Put an item that names a ledger entry, if the entry is stored; else the change waits.

        heads: by owner, the place of the newest entry, as far as it was read.
        """
        entry_place = place_needed(change.table, change.image or {})
        if entry_place > heads.get(change.owner, ""):
            newest = self._ledger.newest(change.owner)
            heads[change.owner] = newest.created_at if newest else ""
            if entry_place > heads[change.owner]:
                outcome.waiting.append(change)
                return
        if change.table == PROFILES and not self._days.prepare_profile(change):
            outcome.waiting.append(change)
            return
        self._put(change, outcome)

    def _put(self, change: ItemChange, outcome: FollowedBatch) -> None:
        self._items.put(change)
        outcome.followed += 1  # also if the stored item is newer


def mark_key(change: ItemChange) -> dict[str, str]:
    """Return the key of the mark of an item's deletion, which reveals to nobody whose item it was."""
    values = [change.table, *(list(change.key[name].items()) for name in KEYS[change.table])]
    digest = hashlib.sha256(json.dumps(values).encode()).hexdigest()
    return {"user_id": DELETED_PREFIX + digest, "idempotency_key": DELETED_KEY}


def claims_of(event: ItemChange, now: datetime) -> Keys:
    """Return the key of the claim that a changed event needs, if it needs one."""
    key = claim_needed(event.image or {}, now)
    return {(event.owner, key)} if key else set()


def events_of(entry: ItemChange, now: datetime) -> Keys:
    """Return the keys of the events that a new entry and those that it names need."""
    return {(entry.owner, event_id) for event_id in events_needed(_entries_of(entry), now)}


def _entries_of(change: ItemChange) -> list[Entry]:
    """Return the entries that a changed entry names, and last the entry itself."""
    stored: Item = {name: dict(value) for name, value in (change.image or {}).items()}
    entry = entry_from(stored)
    return [*unfold_carrier(entry), entry]


def _seq(change: ItemChange) -> int:
    return int((change.image or {})["seq"]["N"])
