"""The stretches that a user was offline: one item beside the user's claims, and what contradicts them.

Only a batch with a receipt and events of more than 72 hours ago reads the item. Only one that begins a
stretch writes it, and looks for events that came meanwhile.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import Unprocessed, get_all, query_all
from rules.days import EPOCH, stamp, unstamp
from rules.engagement.earnings import instant_of
from rules.engagement.events import FUTURE_MAX, LATE_MAX
from rules.engagement.offline import YEAR, Stretch, recent_stretches, stretch_from_text, stretch_text

# No client's key has a control character (ingest.web.json_schema.KEY).
KEY = "\x1foffline"
ATTEMPTS_MAX = 8
# Of a user who sent so much in a fortnight that its first events are not even looked at.
LOOKED_AT_MAX = 5_000


@dataclass(frozen=True, slots=True)
class UsedStretches:
    """A user's stretches, oldest first. version: counts the writes; 0: none."""

    stretches: tuple[Stretch, ...] = ()
    version: int = 0


class StretchStore:
    """The table IdempotencyKeys, and events of BPEvents."""

    def __init__(self, dynamodb: Any, claims_table: str, events_table: str) -> None:
        self._dynamodb, self._claims, self._events = dynamodb, claims_table, events_table

    def of(
        self,
        user_id: str,
        begin: Callable[[Sequence[Stretch]], tuple[Stretch, bool]],
        now: datetime,
    ) -> tuple[Stretch, tuple[Stretch, ...]]:
        """Return what `begin` makes of the user's stretches, and all of them; keeps it if it is new.

        begin: returns a stretch, and whether it is new. It is asked again if somebody else was faster. Its
        exceptions go on. Raises Unprocessed if others kept writing.
        """
        for _ in pauses(ATTEMPTS_MAX):
            known = self._read(user_id)
            stretch, is_new = begin(known.stretches)
            if not is_new:
                return stretch, known.stretches
            every = (*recent_stretches(known.stretches, now), stretch)
            if self._write(user_id, UsedStretches(every, known.version), now):
                return stretch, every
        raise Unprocessed(f"{self._claims}: the stretches of a user kept changing")

    def contacts(self, user_id: str, since: datetime, now: datetime) -> list[datetime]:
        """Return when the user sent events after `since`: the last time of over 72 hours ago, and all later.

        What only servers declare is no sign of the user, nor is what came more than 72 hours late.
        """
        found: list[datetime] = []
        newest, occurred = EPOCH, now
        between = self._between(user_id, since - LATE_MAX, now + FUTURE_MAX)
        for count, each in enumerate(between, 1):
            occurred, arrived = instant_of(each["event_id"]), unstamp(each["created_at"])
            if occurred < newest - LATE_MAX:
                break  # whatever is older came before
            if count == LOOKED_AT_MAX:
                return [*found, occurred]
            if not each.get("by_server") and arrived - occurred <= LATE_MAX and since < arrived:
                found.append(arrived)
                newest = max(newest, arrived) if arrived <= now - LATE_MAX else newest
        return found

    def keys_of(self, user_id: str, stretch: Stretch) -> set[str]:
        """Return the keys of the events that came with the batch that ended a stretch."""
        between = self._between(user_id, stretch.receipt_at - FUTURE_MAX, stretch.until + FUTURE_MAX)
        return {each["idempotency_key"] for each in between if each["created_at"] == stamp(stretch.until)}

    def _between(self, user_id: str, first: datetime, last: datetime) -> Any:
        names = {":user": user_id, ":first": stamp(first), ":last": stamp(last)}
        found = query_all(
            self._dynamodb,
            TableName=self._events,
            KeyConditionExpression="user_id = :user AND event_id BETWEEN :first AND :last",
            ExpressionAttributeValues=encode_item(names),
            ProjectionExpression="event_id, created_at, by_server, idempotency_key",
            ScanIndexForward=False,
            Limit=500,
        )
        return map(decode_item, islice(found, LOOKED_AT_MAX))

    def _read(self, user_id: str) -> UsedStretches:
        keys = [{"user_id": user_id, "idempotency_key": KEY}]
        found = [decode_item(each) for each in get_all(self._dynamodb, self._claims, keys)]
        if not found:
            return UsedStretches()
        return UsedStretches(tuple(map(stretch_from_text, found[0]["stretches"])), found[0]["version"])

    def _write(self, user_id: str, changed: UsedStretches, now: datetime) -> bool:
        attributes = {
            "user_id": user_id,
            "idempotency_key": KEY,
            "stretches": [stretch_text(each) for each in changed.stretches],
            "version": changed.version + 1,
            "created_at": stamp(now),
            "ttl": int((now + YEAR).timestamp()),
        }
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(user_id)"}
        if changed.version:
            condition = {
                "ConditionExpression": "#version = :read",
                "ExpressionAttributeNames": {"#version": "version"},
                "ExpressionAttributeValues": encode_item({":read": changed.version}),
            }
        try:
            self._dynamodb.put_item(TableName=self._claims, Item=encode_item(attributes), **condition)
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True
