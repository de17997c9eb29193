"""Writes the phones of a restore (rule 21) into the table Subscriptions.

A phone is a subscription together with the messages that it got. Its items are the subscription's own item,
its markers, its token, and a claim for each message, so that no message is sent again. It also has a slot in
its owner's quota (the table Limits), by which an erasure finds it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from adapters.platform.item_tables import WRITERS, ItemTable
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.limits import OwnerQuota
from adapters.platform.tables import delete_action, get_all, put_action, scan_all
from adapters.questions.message_claims import UNCONFIRMED
from adapters.questions.subscription_store import (
    KEY,
    SubscriptionStore,
    claim_key,
    items_of,
    keys_of,
    subscription_from,
    subscription_slot,
    token_key,
)
from rules.days import key_of_stamp, stamp
from rules.questions.lake_entities import SENT_MARK
from rules.questions.notifications import claim_expires_at
from rules.questions.phone_items import CHANGED, TOKEN

# The attributes that change with each message.
CHANGED_BY_MESSAGES = frozenset({"last_notified_at", CHANGED})
NO_LIMIT = 10**6  # a restore gives owners back all their phones, also more than the quota allows by now
POLLS = "poll#"  # the prefix of the keys of items that limit an agent's waiting polls


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message that a phone got."""

    key: str
    claimed_at: datetime
    outcome: str
    settled_at: datetime | None  # when the outcome was stored; None: nobody knows the outcome
    sendable_until: datetime  # the last instant at which it might have been sent


@dataclass(frozen=True, slots=True)
class Phone:
    """A subscription and its messages, as the lake keeps them."""

    item: Item  # the subscription's own
    last_notified_at: str  # a stamp
    messages: Sequence[ReceivedMessage] = ()  # which may not be sent again

    @property
    def subscription_id(self) -> str:
        """The subscription's id."""
        return str(self.item[KEY]["S"])

    @property
    def owner(self) -> str:
        """The id of the person whose phone it is."""
        return str(self.item["owner"]["S"])

    def items(self, now: datetime) -> dict[str, Item]:
        """Return the items without the claims, by key; raises KeyError or ValueError for a damaged one."""
        if TOKEN not in self.item:  # the token is dead: there are no markers, and no token's item
            return {self.subscription_id: {**self.item, **encode_item({CHANGED: True})}}
        subscription = subscription_from(decode_item(self.item))
        return items_of(replace(subscription, is_active=True, last_notified_at=self.last_notified_at), now)

    def claims(self) -> Iterator[Item]:
        """Yield the items that claim the messages, so that no message is sent again."""
        for message in self.messages:
            yield encode_item(
                {
                    KEY: claim_key(self.subscription_id, message.key),
                    "active": UNCONFIRMED if message.outcome == UNCONFIRMED else None,
                    "last_notified_at": key_of_stamp(stamp(message.claimed_at)),
                    "claimed_at": stamp(message.claimed_at),
                    "outcome": message.outcome,
                    "settled_at": stamp(message.settled_at) if message.settled_at else None,
                    "expires_at": claim_expires_at(message.sendable_until),
                }
            )


@dataclass(frozen=True, slots=True)
class PutSummary:
    """What a restore of phones wrote."""

    written: int = 0  # the number of items
    # Ids of the subscriptions that were not put, because another subscription has their token now.
    taken_over: tuple[str, ...] = ()

    def __add__(self, other: "PutSummary") -> "PutSummary":
        return PutSummary(self.written + other.written, (*self.taken_over, *other.taken_over))


class PhoneTable:
    """The phones in the table Subscriptions, with their slots in the table Limits."""

    def __init__(self, dynamodb: Any, table: str, limits_table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._store, self._quota = SubscriptionStore(dynamodb, table), OwnerQuota(dynamodb, limits_table)
        self._items = ItemTable(dynamodb, table, [KEY])

    def put_missing(self, phones: Iterable[Phone], now: datetime) -> PutSummary:
        """Put the phones that are missing, each with all its items or none; raises Unprocessed."""
        phones = list(phones)
        stored = {item[KEY]["S"] for item in self._read(phone.subscription_id for phone in phones)}
        missing = [phone for phone in phones if phone.subscription_id not in stored]
        return _sum_in_threads(partial(self._put, now=now), missing)

    def make_equal(self, phones: Iterable[Phone], now: datetime) -> PutSummary:
        """Write each phone whose items differ, but for last_notified_at, and delete its other items.

        Raises Unprocessed.
        """
        return _sum_in_threads(partial(self._replace, now=now), phones)

    def remove_others(self, keys: Collection[str]) -> int:
        """Delete all items but these, and what expires by itself; returns how many were deleted."""
        removed = 0
        for item in scan_all(self._dynamodb, TableName=self._table, ConsistentRead=True):
            key = item[KEY]["S"]
            if key not in keys and SENT_MARK not in key and not key.startswith(POLLS):
                self._items.delete(item)
                removed += 1
        return removed

    def _read(self, keys: Iterable[str]) -> list[Item]:
        return get_all(self._dynamodb, self._table, [{KEY: key} for key in dict.fromkeys(keys)])

    def _put(self, phone: Phone, now: datetime) -> PutSummary:
        """Put a phone, on condition that its subscription is missing and no other one has its token."""
        items = phone.items(now)
        claims_written = self._put_slot_and_claims(phone, now)
        is_missing = f"attribute_not_exists({KEY})"
        puts = {key: put_action(self._table, item) for key, item in items.items()}
        puts[phone.subscription_id]["Put"]["ConditionExpression"] = is_missing
        if TOKEN in phone.item:
            puts[token_key(phone.item[TOKEN]["S"])]["Put"] |= {
                "ConditionExpression": f"{is_missing} OR #of = :subscription",
                "ExpressionAttributeNames": {"#of": "of"},
                "ExpressionAttributeValues": encode_item({":subscription": phone.subscription_id}),
            }
        refused = self._store.write_all_or_none(list(puts.values()))
        if not refused:
            return PutSummary(len(puts) + claims_written)
        if list(puts).index(phone.subscription_id) in refused:  # another process has put it meanwhile
            return PutSummary(claims_written)
        return PutSummary(claims_written, taken_over=(phone.subscription_id,))

    def _replace(self, phone: Phone, now: datetime) -> PutSummary:
        """Write all items of a phone if any differs, and delete its stored ones that are not among them."""
        wanted = phone.items(now)
        claims_written = self._put_slot_and_claims(phone, now)
        keys = set(wanted)
        for subscription in self._read([phone.subscription_id]):  # at most one
            keys.update(_keys(subscription))
        stored = {item[KEY]["S"]: item for item in self._read(keys)}
        if _without_message_changes(stored) == _without_message_changes(wanted):
            return PutSummary(claims_written)
        surplus = [key for key in stored if key not in wanted]
        deletions = [delete_action(self._table, {KEY: key}) for key in surplus]
        puts = [put_action(self._table, item) for item in wanted.values()]
        self._store.write_all_or_none([*deletions, *puts])  # no action has a condition, so none is refused
        return PutSummary(len(wanted) + len(surplus) + claims_written)

    def _put_slot_and_claims(self, phone: Phone, now: datetime) -> int:
        """Take the phone's slot, and put its missing claims; returns the number of claims that were put.

        They come first, so that no sender finds a phone before its claims, and an erasure finds every phone.
        """
        slot = subscription_slot(phone.owner, phone.subscription_id, now)
        self._quota.take(slot, NO_LIMIT, now, lambda _: {})
        return self._items.put_missing(phone.claims())


def _sum_in_threads(put: Callable[[Phone], PutSummary], phones: Iterable[Phone]) -> PutSummary:
    with ThreadPoolExecutor(WRITERS) as pool:
        return sum(pool.map(put, phones), PutSummary())


def _keys(stored: Item) -> list[str]:
    """Return the keys of a stored subscription's items; if it is damaged, its token's key or none."""
    try:
        return keys_of(subscription_from(decode_item(stored)))
    except (KeyError, TypeError, ValueError):
        return [token_key(stored[TOKEN]["S"])] if "S" in stored.get(TOKEN, {}) else []


def _without_message_changes(items: Mapping[str, Item]) -> dict[str, Item]:
    return {
        key: {name: value for name, value in item.items() if name not in CHANGED_BY_MESSAGES}
        for key, item in items.items()
    }
