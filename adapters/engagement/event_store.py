"""The BPEvents table. Properties are stored inline, not as an S3 reference, since no consumer resolves one.
Events that have left their table are found in the lake, by the function PastEventsFunction.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import Unprocessed, get_all, put_all, query_all
from rules.engagement.events import Event, from_item, to_item


class EventStore:
    """Stored engagement events of all users."""

    def __init__(self, dynamodb: Any, table: str, expire: bool = True) -> None:
        """expire: whether events are gone when their time to live is over; if not, when they leave."""
        self._dynamodb, self._table, self._expire = dynamodb, table, expire

    def put(self, events: Sequence[Event]) -> None:
        """Store events; putting the same one again changes nothing."""
        put_all(self._dynamodb, self._table, [encode_item(to_item(event)) for event in events])

    def missing(self, events: Sequence[Event]) -> list[Event]:
        """Return those events that are not stored."""
        keys = [{"user_id": event.user_id, "event_id": event.event_id} for event in events]
        found = {each["event_id"]["S"] for each in get_all(self._dynamodb, self._table, keys, "event_id")}
        return [event for event in events if event.event_id not in found]

    def put_new(self, event: Event) -> None:
        """Store an event unless it is stored: for use while another attempt to store it may be under way."""
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item=encode_item(to_item(event)),
                ConditionExpression="attribute_not_exists(user_id)",
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return

    def get(self, user_id: str, event_id: str) -> Event | None:
        """Return one event, or None."""
        found = get_all(self._dynamodb, self._table, [{"user_id": user_id, "event_id": event_id}])
        return from_item(decode_item(found[0])) if found else None

    def newest(self, user_id: str, since: str, until: str, limit: int, now: datetime) -> list[dict[str, Any]]:
        """Return events with since <= event_id < until, newest first, as table attributes.

        Eventually consistent.
        """
        found = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="user_id = :user AND event_id BETWEEN :since AND :until",
            ExpressionAttributeValues=encode_item({":user": user_id, ":since": since, ":until": until}),
            ScanIndexForward=False,
            Limit=limit + 1,
        )
        alive = (
            each
            for each in map(decode_item, found)
            if each["event_id"] != until and (each["ttl"] > now.timestamp() or not self._expire)
        )
        return list(islice(alive, limit))


@dataclass(frozen=True, slots=True)
class PastPage:
    """A page of events of the lake."""

    rows: list[dict[str, Any]]  # as table attributes, newest first
    reached: str  # all events from this stamp on are among them


class PastEvents:
    """Events that have left their table: PastEventsFunction finds them in the lake.

    functions: returns the client of Lambda.
    """

    def __init__(self, functions: Callable[[], Any], name: str) -> None:
        self._functions, self._name = functions, name

    def newest(self, user_id: str, since: str, until: str, limit: int) -> PastPage:
        """Return events with since <= event_id < until. Raises Unprocessed if the lake did not answer."""
        asked = {"user_id": user_id, "since": since, "until": until, "limit": limit}
        answer = self._functions().invoke(FunctionName=self._name, Payload=json.dumps(asked))
        text = answer["Payload"].read()
        if answer.get("FunctionError"):
            raise Unprocessed(f"{self._name}: {text[:200]!r}")
        found = json.loads(text)
        return PastPage(found["rows"], found["reached"])
