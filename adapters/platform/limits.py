"""The table Limits: counters that all processes share, and places of which each owner has a few; among them
those of a user's phones, by which an erasure finds the phones, too.
"""

import ipaddress
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import Unprocessed

ATTEMPTS_MAX = 8
# Longer than any function that takes a place runs: by then its thing is stored, or will never be.
STORED_WITHIN_SECONDS = 60
AreThere = Mapping[str, bool]
# Whoever has one address of IPv6 has the whole network around it.
NETWORK_BITS = 64
KEY = "counter"
# A place ends with its subscription, and never by itself.
PLACE_KEPT = timedelta(days=36_500)


class SharedCounters:
    """Counts events of a minute or a day. A counter is one small item: adding to it costs one write unit."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def add(self, name: str, count: int, now: datetime, kept_seconds: int) -> int:
        """Add to a counter; returns its value afterwards. It expires so many seconds from now."""
        answer = self._dynamodb.update_item(
            TableName=self._table,
            Key=encode_item({"counter": name}),
            UpdateExpression="ADD used :count SET expires_at = :until",
            ExpressionAttributeValues=encode_item(
                {":count": count, ":until": int(now.timestamp()) + kept_seconds},
            ),
            ReturnValues="UPDATED_NEW",
        )
        return int(answer["Attributes"]["used"]["N"])


def network_of(address: str) -> str:
    """Return by what a sender is counted: the address of IPv4, the network of IPv6, or what else it is."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    bits = NETWORK_BITS if known.version == 6 else known.max_prefixlen
    return str(ipaddress.ip_network((known, bits), strict=False))


@dataclass(frozen=True, slots=True)
class QuotaPlace:
    """What somebody has one more of."""

    owner: str
    thing: str
    until: datetime  # when it ends by itself


@dataclass(frozen=True, slots=True)
class _QuotaState:
    """An owner's places."""

    version: int
    held: Mapping[str, int]  # thing -> its end
    taken: Mapping[str, int]  # when it took its place; both in epoch seconds


class OwnerQuota:
    """Lets an owner have at most so many things at once: each holds a place until it ends.

    Few places are given back. When all are taken, those whose thing has ended are found and cleared. A thing
    that nobody knows may be about to be stored, so it keeps its place for a minute.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def take(
        self, wanted: QuotaPlace, places: int, now: datetime, are_there: Callable[[Iterable[str]], AreThere]
    ) -> bool:
        """Take a place; returns whether the thing has one. Safe to repeat.

        places: how many the owner has. are_there: returns for each known thing whether it has not ended.
        Exact, whoever else takes places at the same time. Raises Unprocessed if others kept taking them.
        """
        second = int(now.timestamp())
        for _ in pauses(ATTEMPTS_MAX):
            found = self._read(wanted.owner)
            if wanted.thing in found.held:
                return True
            kept = {name: end for name, end in found.held.items() if end > second}
            fresh = {name for name, taken in found.taken.items() if taken > second - STORED_WITHIN_SECONDS}
            if len(kept) >= places:
                there = are_there(kept)
                kept = {name: end for name, end in kept.items() if there.get(name, name in fresh)}
            if len(kept) >= places:
                return False
            held = {**kept, wanted.thing: int(wanted.until.timestamp())}
            taken = {name: found.taken[name] for name in fresh & kept.keys()} | {wanted.thing: second}
            if self._write(wanted.owner, _QuotaState(found.version, held, taken), now):
                return True
        raise Unprocessed(f"{self._table}: the places of an owner kept changing")

    def give_back(self, owner: str, thing: str, now: datetime) -> None:
        """Free the place of what has been removed. If others are in the way, it is cleared later."""
        found = self._read(owner)
        if thing in found.held:
            held = {name: end for name, end in found.held.items() if name != thing}
            self._write(owner, _QuotaState(found.version, held, found.taken), now)

    def _read(self, owner: str) -> _QuotaState:
        key = encode_item({"counter": owner})
        answer = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        found = decode_item(answer.get("Item") or {})
        return _QuotaState(
            int(found.get("version", 0)), dict(found.get("held") or {}), dict(found.get("taken") or {})
        )

    def _write(self, owner: str, changed: _QuotaState, now: datetime) -> bool:
        attributes = {
            "counter": owner,
            "version": changed.version + 1,
            "held": changed.held,
            "taken": changed.taken,
            "expires_at": max(changed.held.values(), default=int(now.timestamp())),
        }
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(version)"}
        if changed.version:
            condition = {
                "ConditionExpression": "version = :read",
                "ExpressionAttributeValues": encode_item({":read": changed.version}),
            }
        try:
            self._dynamodb.put_item(TableName=self._table, Item=encode_item(attributes), **condition)
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True


@dataclass(frozen=True, slots=True)
class OwnerSemaphore:
    """Gives each owner so many places. One expires by itself if its holder dies."""

    dynamodb: Any
    table: str  # Limits
    most: int  # places of each owner
    seconds: int  # how long one is held at most

    @contextmanager
    def held(self, owner: str, now: datetime) -> Iterator[bool]:
        """Hold a place while the block runs; False: the owner has none left."""
        holder, place = uuid.uuid4().hex, None
        # Holders begin to look at different places, so that most find one with the first request.
        first = int(holder, 16)
        for number in range(self.most):
            name = f"{owner}#{(first + number) % self.most}"
            if self._take(name, holder, int(now.timestamp())):
                place = name
                break
        try:
            yield place is not None
        finally:
            if place:
                self._free(place, holder)

    def _take(self, name: str, holder: str, now: int) -> bool:
        try:
            self.dynamodb.put_item(
                TableName=self.table,
                Item=encode_item({KEY: name, "holder": holder, "expires_at": now + self.seconds}),
                ConditionExpression="attribute_not_exists(holder) OR expires_at <= :now",
                ExpressionAttributeValues=encode_item({":now": now}),
            )
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def _free(self, name: str, holder: str) -> None:
        try:
            self.dynamodb.delete_item(
                TableName=self.table,
                Key=encode_item({KEY: name}),
                ConditionExpression="holder = :holder",
                ExpressionAttributeValues=encode_item({":holder": holder}),
            )
        except self.dynamodb.exceptions.ConditionalCheckFailedException:
            return  # it has expired, and somebody else holds it


def subscription_counter(owner: str) -> str:
    """Return the counter that lists a user's subscriptions."""
    return f"subscriptions#{owner}"


def subscription_place(owner: str, subscription_id: str, now: datetime) -> QuotaPlace:
    """Return the place of one subscription."""
    return QuotaPlace(subscription_counter(owner), subscription_id, now + PLACE_KEPT)
