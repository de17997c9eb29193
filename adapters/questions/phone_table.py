"""A restore's writes of phones (rule 21): each subscription with its markers, its token, the claims of its
messages and its place in the owner's quota.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from adapters.platform.item_tables import WRITERS, ItemTable
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.limits import OwnerQuota, subscription_slot
from adapters.platform.tables import get_all, scan_all
from adapters.questions.message_claims import UNCONFIRMED
from adapters.questions.subscription_store import (
    KEY,
    SubscriptionStore,
    claim_key,
    delete_action,
    items_of,
    keys_of,
    put_action,
    subscription_from,
    token_key,
)
from rules.days import stamp
from rules.lake.question_entities import SENT_MARK
from rules.lake.table_items import CHANGED, TOKEN
from rules.questions.notifications import claim_expires_at

# The attributes that change with each message.
NOTES = frozenset({"last_notified_at", CHANGED})
NO_LIMIT = 10**6  # whoever had many phones gets them back
POLLS = "poll#"  # how the keys of the places of waiting polls begin


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message that a phone got."""

    key: str
    claimed_at: datetime
    outcome: str
    settled_at: datetime | None
    last: datetime  # the last instant at which it might have been sent


@dataclass(frozen=True, slots=True)
class Phone:
    """A subscription as the lake keeps it."""

    item: Item
    last_notified_at: str  # a stamp
    messages: Sequence[ReceivedMessage] = ()  # may not be sent again

    @property
    def subscription_id(self) -> str:
        """The subscription's id."""
        return str(self.item[KEY]["S"])

    @property
    def owner(self) -> str:
        """Whose phone it is."""
        return str(self.item["owner"]["S"])

    def items(self, now: datetime) -> dict[str, Item]:
        """Return the items that the table must have, by key; raises KeyError, ValueError if damaged."""
        if TOKEN not in self.item:  # the token is dead, and there is nothing but the subscription's own item
            return {self.subscription_id: {**self.item, **encode_item({CHANGED: True})}}
        subscription = subscription_from(decode_item(self.item))
        return items_of(replace(subscription, is_active=True, last_notified_at=self.last_notified_at), now)

    def claims(self) -> Iterator[Item]:
        """Yield the claims of the messages, so that none comes twice."""
        for message in self.messages:
            yield encode_item(
                {
                    KEY: claim_key(self.subscription_id, message.key),
                    "active": UNCONFIRMED if message.outcome == UNCONFIRMED else None,
                    "last_notified_at": stamp(message.claimed_at),
                    "claimed_at": stamp(message.claimed_at),
                    "outcome": message.outcome,
                    "settled_at": stamp(message.settled_at) if message.settled_at else None,
                    "expires_at": claim_expires_at(message.last),
                }
            )


@dataclass(frozen=True, slots=True)
class PutSummary:
    """What a restore of phones wrote."""

    written: int = 0  # how many items
    # The subscriptions that were not put, because another one has the phone by now.
    taken_over: tuple[str, ...] = ()

    def __add__(self, other: "PutSummary") -> "PutSummary":
        """Return the sums of both."""
        return PutSummary(self.written + other.written, (*self.taken_over, *other.taken_over))


class PhoneTable:
    """The table Subscriptions, and the places in Limits by which an erasure finds the phones."""

    def __init__(self, dynamodb: Any, table: str, limits_table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._store, self._quota = SubscriptionStore(dynamodb, table), OwnerQuota(dynamodb, limits_table)
        self._items = ItemTable(dynamodb, table, [KEY])

    def put_missing(self, phones: Iterable[Phone], now: datetime) -> PutSummary:
        """Put subscriptions that the table does not have, each with all its items or with none.

        Raises Unprocessed; it is safe to repeat.
        """
        phones = list(phones)
        stored = {item[KEY]["S"] for item in self._read(phone.subscription_id for phone in phones)}
        missing = [phone for phone in phones if phone.subscription_id not in stored]
        return _sum_in_threads(partial(self._put, now=now), missing)

    def make_equal(self, phones: Iterable[Phone], now: datetime) -> PutSummary:
        """Let each subscription have the items that it must have; when it was notified last stays as it is.

        Raises Unprocessed; it is safe to repeat.
        """
        return _sum_in_threads(partial(self._replace, now=now), phones)

    def remove_others(self, keys: Collection[str]) -> int:
        """Delete the items that have none of these keys; returns how many.

        Claims and the places of polls stay: they expire by themselves.
        """
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
        wanted, claims = phone.items(now), self._put_slot_and_claims(phone, now)
        actions = [put_action(self._table, item) for item in wanted.values()]
        for action in actions:
            key = action["Put"]["Item"][KEY]["S"]
            if key == phone.subscription_id:
                action["Put"] |= {"ConditionExpression": f"attribute_not_exists({KEY})"}
            elif "active" not in action["Put"]["Item"]:  # the token's item, the only one outside of the index
                action["Put"] |= {
                    "ConditionExpression": f"attribute_not_exists({KEY}) OR #of = :subscription",
                    "ExpressionAttributeNames": {"#of": "of"},
                    "ExpressionAttributeValues": encode_item({":subscription": phone.subscription_id}),
                }
        refusals = self._store.refusals(actions)
        if not refusals:
            return PutSummary(len(actions) + claims)
        is_stored = list(wanted).index(phone.subscription_id) in refusals
        return PutSummary(claims, () if is_stored else (phone.subscription_id,))

    def _replace(self, phone: Phone, now: datetime) -> PutSummary:
        wanted, claims = phone.items(now), self._put_slot_and_claims(phone, now)
        (subscription,) = self._read([phone.subscription_id]) or [{}]
        keys = {*wanted, *(_keys(subscription) if subscription else ())}
        stored = {item[KEY]["S"]: item for item in self._read(keys)}
        if _without_notes(stored) == _without_notes(wanted):
            return PutSummary(claims)
        surplus = [key for key in stored if key not in wanted]
        deletions = [delete_action(self._table, key) for key in surplus]
        self._store.refusals([*deletions, *(put_action(self._table, item) for item in wanted.values())])
        return PutSummary(len(wanted) + len(surplus) + claims)

    def _put_slot_and_claims(self, phone: Phone, now: datetime) -> int:
        """Take the phone's slot, and put its missing claims; returns how many claims were put."""
        slot = subscription_slot(phone.owner, phone.subscription_id, now)
        self._quota.take(slot, NO_LIMIT, now, lambda _: {})
        return self._items.put_missing(phone.claims())


def _sum_in_threads(put: Callable[[Phone], PutSummary], phones: Iterable[Phone]) -> PutSummary:
    with ThreadPoolExecutor(WRITERS) as pool:
        return sum(pool.map(put, phones), PutSummary())


def _keys(stored: Item) -> list[str]:
    """Return the keys that a stored subscription may have; if it is damaged, its token's at most."""
    try:
        return keys_of(subscription_from(decode_item(stored)))
    except (KeyError, TypeError, ValueError):
        return [token_key(stored[TOKEN]["S"])] if "S" in stored.get(TOKEN, {}) else []


def _without_notes(items: Mapping[str, Item]) -> dict[str, Item]:
    return {
        key: {name: value for name, value in item.items() if name not in NOTES} for key, item in items.items()
    }
