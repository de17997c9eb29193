"""The BPEvents table, and the bucket that takes properties too large for an item."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from adapters.platform.batches import get_all, put_all, query_all
from adapters.platform.items import item, plain
from rules.engagement.events import Event, from_item, to_item

# Leaves room for the other attributes in the 1 KB that a write unit covers.
INLINE_PROPERTIES_BYTES_MAX = 400


class EventStore:
    """Stored engagement events of all users."""

    def __init__(self, dynamodb: Any, table: str, expire: bool = True) -> None:
        """expire: whether events are gone when their time to live is over; if not, when they leave."""
        self._dynamodb, self._table, self._expire = dynamodb, table, expire

    def put(self, events: Sequence[Event]) -> None:
        """Store events; putting the same one again changes nothing."""
        put_all(self._dynamodb, self._table, [item(to_item(event)) for event in events])

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
                Item=item(to_item(event)),
                ConditionExpression="attribute_not_exists(user_id)",
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return

    def get(self, user_id: str, event_id: str) -> Event | None:
        """Return one event, or None."""
        found = get_all(self._dynamodb, self._table, [{"user_id": user_id, "event_id": event_id}])
        return from_item(plain(found[0])) if found else None

    def newest(self, user_id: str, since: str, until: str, limit: int, now: datetime) -> list[dict[str, Any]]:
        """Return events with since <= event_id < until, newest first, as table attributes.

        Eventually consistent.
        """
        found = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="user_id = :user AND event_id BETWEEN :since AND :until",
            ExpressionAttributeValues=item({":user": user_id, ":since": since, ":until": until}),
            ScanIndexForward=False,
            Limit=limit + 1,
        )
        alive = (
            each
            for each in map(plain, found)
            if each["event_id"] != until and (each["ttl"] > now.timestamp() or not self._expire)
        )
        return list(islice(alive, limit))


class Payloads:
    """Properties that do not fit into an item."""

    def __init__(self, s3: Callable[[], Any], bucket: str) -> None:
        """s3: returns the client; most requests never call it."""
        self._s3, self._bucket = s3, bucket

    def offload(self, event: Event) -> Event:
        """Move large properties to the bucket; a repeated attempt writes the same key."""
        if event.properties is None or len(event.properties.encode()) <= INLINE_PROPERTIES_BYTES_MAX:
            return event
        key = f"properties/{event.user_id}/{event.event_id}.json"
        self._s3().put_object(
            Bucket=self._bucket, Key=key, Body=event.properties.encode(), ContentType="application/json"
        )
        return replace(event, properties=None, properties_ref=f"s3://{self._bucket}/{key}")
