"""The table Limits: counters that all processes share, and which things hold one of an owner's places."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.batches import Unprocessed
from adapters.platform.items import item, plain

ATTEMPTS_MAX = 8
KEPT_SECONDS = 120


class SharedCounters:
    """Counts events of a minute. A counter is one small item: adding to it costs one write unit."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def add(self, name: str, count: int, now: datetime) -> int:
        """Add to a counter; returns its value afterwards. It expires two minutes from now."""
        answer = self._dynamodb.update_item(
            TableName=self._table,
            Key=item({"counter": name}),
            UpdateExpression="ADD used :count SET expires_at = :until",
            ExpressionAttributeValues=item(
                {":count": count, ":until": int(now.timestamp()) + KEPT_SECONDS},
            ),
            ReturnValues="UPDATED_NEW",
        )
        return int(answer["Attributes"]["used"]["N"])


@dataclass(frozen=True, slots=True)
class WantedPlace:
    """What somebody has one more of. until: when it ends by itself."""

    owner: str
    thing: str
    until: datetime


class HeldPlaces:
    """Lets an owner have at most so many things at once: each holds a place until it ends.

    Nobody gives a place back. When all are taken, those whose thing has ended are found and cleared.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def take(
        self,
        wanted: WantedPlace,
        places: int,
        now: datetime,
        still_there: Callable[[Iterable[str]], set[str]],
    ) -> bool:
        """Take a place; returns whether the thing has one. Safe to repeat.

        places: how many the owner has. still_there: returns those of some things that have not ended. Exact,
        whoever else takes places at the same time. Raises Unprocessed if others kept taking them.
        """
        owner, thing = wanted.owner, wanted.thing
        for _ in pauses(ATTEMPTS_MAX):
            version, held = self._read(owner)
            if thing in held:
                return True
            kept = {name: end for name, end in held.items() if end > now.timestamp()}
            if len(kept) >= places:
                there = still_there(kept)
                kept = {name: end for name, end in kept.items() if name in there}
            if len(kept) >= places:
                return False
            if self._write(owner, version, {**kept, thing: int(wanted.until.timestamp())}):
                return True
        raise Unprocessed(f"{self._table}: the places of {owner} kept changing")

    def _read(self, owner: str) -> tuple[int, dict[str, int]]:
        key = item({"counter": owner})
        answer = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        found = plain(answer.get("Item") or {})
        return int(found.get("version", 0)), dict(found.get("held") or {})

    def _write(self, owner: str, version: int, held: dict[str, int]) -> bool:
        attributes = {
            "counter": owner,
            "version": version + 1,
            "held": held,
            "expires_at": max(held.values()),
        }
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(version)"}
        if version:
            condition = {
                "ConditionExpression": "version = :read",
                "ExpressionAttributeValues": item({":read": version}),
            }
        try:
            self._dynamodb.put_item(TableName=self._table, Item=item(attributes), **condition)
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True
