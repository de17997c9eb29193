"""Phones that are put back: a subscription with its markers, its token and its owner's place (rule 21)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from adapters.platform.item_tables import WRITERS, ItemTable
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.limits import OwnerQuota, subscription_place
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

# What notes of messages write.
NOTES = frozenset({"last_notified_at", CHANGED})
NO_LIMIT = 10**6  # whoever had many phones gets them back
POLLS = "poll#"


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message that a phone got."""

    key: str
    claimed_at: datetime
    outcome: str
    settled_at: datetime | None
    last: datetime  # until when it might have been sent


@dataclass(frozen=True, slots=True)
class Phone:
    """A subscription as the lake keeps it."""

    kept: Item
    last_notified_at: str  # a stamp
    messages: Sequence[ReceivedMessage] = ()  # may not be sent again

    @property
    def own(self) -> str:
        """The subscription's id."""
        return str(self.kept[KEY]["S"])

    @property
    def owner(self) -> str:
        """Whose phone it is."""
        return str(self.kept["owner"]["S"])

    def items(self, now: datetime) -> dict[str, Item]:
        """Return its items by key. One whose token is dead has no others. Raises KeyError, ValueError."""
        if TOKEN not in self.kept:
            return {self.own: {**self.kept, **encode_item({CHANGED: True})}}
        found = subscription_from(decode_item(self.kept))
        return items_of(replace(found, is_active=True, last_notified_at=self.last_notified_at), now)

    def claims(self) -> Iterator[Item]:
        """Yield the claims of the messages, so that none comes twice."""
        for message in self.messages:
            yield encode_item(
                {
                    KEY: claim_key(self.own, message.key),
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
    elsewhere: tuple[str, ...] = ()  # subscriptions whose phone has another one by now

    def __add__(self, other: "PutSummary") -> "PutSummary":
        """Return both together."""
        return PutSummary(self.written + other.written, (*self.elsewhere, *other.elsewhere))


class PhoneTable:
    """The table Subscriptions, and the places in Limits."""

    def __init__(self, dynamodb: Any, table: str, limits_table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._store, self._places = SubscriptionStore(dynamodb, table), OwnerQuota(dynamodb, limits_table)
        self._items = ItemTable(dynamodb, table, [KEY])

    def put_missing(self, phones: Iterable[Phone], now: datetime) -> PutSummary:
        """Put subscriptions that the table does not have, each with all its items or with none.

        Raises Unprocessed; it is safe to repeat.
        """
        listed = list(phones)
        there = {each[KEY]["S"] for each in self._read(each.own for each in listed)}
        return self._each(partial(self._put, now=now), [each for each in listed if each.own not in there])

    def make_equal(self, phones: Iterable[Phone], now: datetime) -> PutSummary:
        """Let each subscription have the items that it must have; when it was notified last stays as it is.

        Raises Unprocessed; it is safe to repeat.
        """
        return self._each(partial(self._replace, now=now), list(phones))

    def remove_others(self, keys: Collection[str]) -> int:
        """Delete what has none of these keys, but for claims and places of polls; returns how many."""
        gone = 0
        for each in scan_all(self._dynamodb, TableName=self._table, ConsistentRead=True):
            key = each[KEY]["S"]
            if key not in keys and SENT_MARK not in key and not key.startswith(POLLS):
                self._items.delete(each)
                gone += 1
        return gone

    def _each(self, put: Any, phones: Sequence[Phone]) -> PutSummary:
        with ThreadPoolExecutor(WRITERS) as pool:
            return sum(pool.map(put, phones), PutSummary())

    def _read(self, keys: Iterable[str]) -> list[Item]:
        return get_all(self._dynamodb, self._table, [{KEY: key} for key in dict.fromkeys(keys)])

    def _before(self, phone: Phone, now: datetime) -> int:
        """Take the place, by which an erasure finds the phone, and put the claims; returns how many."""
        self._places.take(subscription_place(phone.owner, phone.own, now), NO_LIMIT, now, lambda _: {})
        return self._items.put_missing(phone.claims())

    def _put(self, phone: Phone, now: datetime) -> PutSummary:
        wanted, claims = phone.items(now), self._before(phone, now)
        actions = [put_action(self._table, each) for each in wanted.values()]
        for action in actions:
            key = action["Put"]["Item"][KEY]["S"]
            if key == phone.own:
                action["Put"] |= {"ConditionExpression": f"attribute_not_exists({KEY})"}
            elif "active" not in action["Put"]["Item"]:  # the token's
                action["Put"] |= {
                    "ConditionExpression": f"attribute_not_exists({KEY}) OR #of = :own",
                    "ExpressionAttributeNames": {"#of": "of"},
                    "ExpressionAttributeValues": encode_item({":own": phone.own}),
                }
        refused = self._store.refusals(actions)
        if not refused:
            return PutSummary(len(actions) + claims)
        is_there = list(wanted).index(phone.own) in refused
        return PutSummary(claims, () if is_there else (phone.own,))

    def _replace(self, phone: Phone, now: datetime) -> PutSummary:
        wanted, claims = phone.items(now), self._before(phone, now)
        (stored,) = self._read([phone.own]) or [{}]
        asked = {*wanted, *(_keys(stored) if stored else ())}
        found = {each[KEY]["S"]: each for each in self._read(asked)}
        if {key: _without_notes(each) for key, each in found.items()} == {
            key: _without_notes(each) for key, each in wanted.items()
        }:
            return PutSummary(claims)
        gone = [key for key in found if key not in wanted]
        actions = [delete_action(self._table, key) for key in gone]
        self._store.refusals([*actions, *(put_action(self._table, each) for each in wanted.values())])
        return PutSummary(len(wanted) + len(gone) + claims)


def _keys(stored: Item) -> list[str]:
    """Return the keys that a stored subscription may have; those that can be read, if it is damaged."""
    try:
        return keys_of(subscription_from(decode_item(stored)))
    except (KeyError, TypeError, ValueError):
        return [token_key(stored[TOKEN]["S"])] if "S" in stored.get(TOKEN, {}) else []


def _without_notes(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in stored.items() if name not in NOTES}
