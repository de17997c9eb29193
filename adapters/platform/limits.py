"""The table Limits: counters that all processes share (SharedCounters), how many things each owner may have
(OwnerQuota), and how many callers may be at work for an owner (OwnerSemaphore).

A user's phones are such things. By the list of them an erasure finds the phones, too.
"""

import ipaddress
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import Unprocessed, get_one, if_unchanged, write_if

ATTEMPTS_MAX = 8
# A function takes a slot, then stores the thing. No function runs for longer than this. So after this time
# the thing is stored, or never will be.
STORED_WITHIN_SECONDS = 60
Presence = Mapping[str, bool]  # by stored thing: whether it still exists, or has ended
NETWORK_BITS = 64  # a sender of IPv6 usually has the whole network of its address
KEY = "counter"


class SharedCounters:
    """Counts events of a minute or a day. A counter is one small item: adding to it costs one write unit."""

    def __init__(self, dynamodb: Callable[[], Any], table: str) -> None:
        """dynamodb: returns the client, once something is added. Most processes never add anything."""
        self._dynamodb, self._table = dynamodb, table

    def add(self, name: str, count: int, now: datetime, kept_seconds: int) -> int:
        """Add to a counter; returns its value afterwards. It expires so many seconds from now."""
        answer = self._dynamodb().update_item(
            TableName=self._table,
            Key=encode_item({KEY: name}),
            UpdateExpression="ADD used :count SET expires_at = :until",
            ExpressionAttributeValues=encode_item(
                {":count": count, ":until": int(now.timestamp()) + kept_seconds},
            ),
            ReturnValues="UPDATED_NEW",
        )
        return int(answer["Attributes"]["used"]["N"])


def network_of(address: str) -> str:
    """Return the network by which a sender is counted: one address of IPv4, or 64 bits of IPv6.

    A text that is no address is returned as it is.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    bits = NETWORK_BITS if ip.version == 6 else ip.max_prefixlen
    return str(ipaddress.ip_network((ip, bits), strict=False))


@dataclass(frozen=True, slots=True)
class QuotaSlot:
    """A slot of an owner's quota, and the thing that takes it."""

    owner: str
    thing: str  # its name
    until: datetime  # when it ends by itself


@dataclass(frozen=True, slots=True)
class _QuotaState:
    """An owner's slots. Instants are epoch seconds."""

    version: int  # 0: nothing is stored
    ends: Mapping[str, int]  # by thing, when its slot ends by itself
    recent_begins: Mapping[str, int]  # by thing, when it took its slot, if that was in the last minute


class OwnerQuota:
    """Lets an owner have at most so many things at once: each has a slot until it ends.

    Most slots are not given back. So when all slots are taken, the slots of things that have ended are
    cleared. A thing that is not stored may be about to be stored. So it keeps its slot for a minute.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def take(
        self,
        slot: QuotaSlot,
        slots_max: int,
        now: datetime,
        presence_of: Callable[[Iterable[str]], Presence],
    ) -> bool:
        """Take a slot; returns whether the thing has one. Safe to repeat.

        slots_max: how many the owner may have. presence_of: returns the Presence of things. The limit is
        exact even if others take slots at the same time. Raises Unprocessed if others write in all attempts.
        """
        second = int(now.timestamp())
        for _ in pauses(ATTEMPTS_MAX):
            state = self._read(slot.owner)
            if slot.thing in state.ends:
                return True
            others = {thing: end for thing, end in state.ends.items() if end > second}
            earliest = second - STORED_WITHIN_SECONDS
            recent = {thing: begin for thing, begin in state.recent_begins.items() if begin > earliest}
            if len(others) >= slots_max:
                presence = presence_of(others)
                others = {thing: end for thing, end in others.items() if presence.get(thing, thing in recent)}
            if len(others) >= slots_max:
                return False
            ends = {**others, slot.thing: int(slot.until.timestamp())}
            begins = {thing: begin for thing, begin in recent.items() if thing in others}
            after = _QuotaState(state.version, ends, {**begins, slot.thing: second})
            if self._write(slot.owner, after, now):
                return True
        raise Unprocessed(f"{self._table}: the slots of an owner kept changing")

    def give_back(self, owner: str, thing: str, now: datetime) -> None:
        """Free the slot of a thing that was removed. If another writer was first, `take` clears it later."""
        state = self._read(owner)
        if thing in state.ends:
            ends = {name: end for name, end in state.ends.items() if name != thing}
            self._write(owner, replace(state, ends=ends), now)

    def _read(self, owner: str) -> _QuotaState:
        fields = decode_item(get_one(self._dynamodb, self._table, {KEY: owner}) or {})
        return _QuotaState(
            int(fields.get("version", 0)), dict(fields.get("held") or {}), dict(fields.get("taken") or {})
        )

    def _write(self, owner: str, changed: _QuotaState, now: datetime) -> bool:
        """Write a state in place of the one that was read; returns False if another is stored now."""
        attributes = {
            KEY: owner,
            "version": changed.version + 1,
            "held": changed.ends,
            "taken": changed.recent_begins,
            "expires_at": max(changed.ends.values(), default=int(now.timestamp())),
        }
        item = encode_item(attributes)
        condition = if_unchanged("version", "version", changed.version or None)
        return write_if(self._dynamodb.put_item, TableName=self._table, Item=item, **condition)


@dataclass(frozen=True, slots=True)
class OwnerSemaphore:
    """Lets each owner have so many callers at work. A caller that dies is forgotten after some seconds."""

    dynamodb: Any
    table: str  # Limits
    most: int  # callers of each owner
    seconds: int  # how long a caller may work

    @contextmanager
    def held(self, owner: str, now: datetime) -> Iterator[bool]:
        """Count a caller while the block runs. Yields whether it may work, False if there are too many."""
        holder = uuid.uuid4().hex
        # Callers begin to look at different slots, so that most find a free one with the first request.
        first = int(holder, 16)
        names = (f"{owner}#{(first + number) % self.most}" for number in range(self.most))
        slot = next((name for name in names if self._take(name, holder, int(now.timestamp()))), None)
        try:
            yield slot is not None
        finally:
            if slot:  # it may have expired, and another caller may have it
                write_if(
                    self.dynamodb.delete_item,
                    TableName=self.table,
                    Key=encode_item({KEY: slot}),
                    ConditionExpression="holder = :holder",
                    ExpressionAttributeValues=encode_item({":holder": holder}),
                )

    def _take(self, name: str, holder: str, now: int) -> bool:
        return write_if(
            self.dynamodb.put_item,
            TableName=self.table,
            Item=encode_item({KEY: name, "holder": holder, "expires_at": now + self.seconds}),
            ConditionExpression="attribute_not_exists(holder) OR expires_at <= :now",
            ExpressionAttributeValues=encode_item({":now": now}),
        )
