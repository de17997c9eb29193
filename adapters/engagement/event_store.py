"""The table of events, BPEvents ("bp" are bestie points), and the zones in which users' events are dated.

PastEventsFunction finds the events that have left the table in the lake.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import Unprocessed, get_all, put_all, query_all, write_if
from rules.engagement.events import Event, from_item, to_item


class EventStore:
    """Stored engagement events of all users.

    expire: whether an event counts as gone when its time to live is over; if not, when its item is deleted.
    """

    def __init__(self, dynamodb: Any, table: str, expire: bool = True) -> None:
        self._dynamodb, self._table, self._expire = dynamodb, table, expire

    def put(self, events: Sequence[Event]) -> None:
        """Store events; putting the same one again changes nothing."""
        put_all(self._dynamodb, self._table, [encode_item(to_item(event)) for event in events])

    def missing(self, events: Sequence[Event]) -> list[Event]:
        """Return those events that are not stored."""
        keys = [{"user_id": event.user_id, "event_id": event.event_id} for event in events]
        stored = {item["event_id"]["S"] for item in get_all(self._dynamodb, self._table, keys, "event_id")}
        return [event for event in events if event.event_id not in stored]

    def put_new(self, event: Event) -> None:
        """Store an event unless it is stored: for use while another attempt to store it may be under way."""
        write_if(
            self._dynamodb.put_item,
            TableName=self._table,
            Item=encode_item(to_item(event)),
            ConditionExpression="attribute_not_exists(user_id)",
        )

    def get(self, user_id: str, event_id: str) -> Event | None:
        """Return one event, or None."""
        items = get_all(self._dynamodb, self._table, [{"user_id": user_id, "event_id": event_id}])
        return from_item(decode_item(items[0])) if items else None

    def newest(self, user_id: str, since: str, until: str, limit: int, now: datetime) -> list[dict[str, Any]]:
        """Return events with since <= event_id < until, newest first, as table attributes.

        Attributes and not Events, because those of the lake are mixed in (PastEvents). Eventually consistent.
        """
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="user_id = :user AND event_id BETWEEN :since AND :until",
            ExpressionAttributeValues=encode_item({":user": user_id, ":since": since, ":until": until}),
            ScanIndexForward=False,
            Limit=limit + 1,
        )
        rows = (
            row
            for row in map(decode_item, items)
            if row["event_id"] != until and (row["ttl"] > now.timestamp() or not self._expire)
        )
        return list(islice(rows, limit))


@dataclass(frozen=True, slots=True)
class PastPage:
    """A page of events of the lake."""

    rows: list[dict[str, Any]]  # as table attributes, newest first
    reached: str  # all events from this instant on are among them; as event ids begin


class PastEvents:
    """Events that have left their table: PastEventsFunction finds them in the lake.

    functions: returns the client of Lambda.
    """

    def __init__(self, functions: Callable[[], Any], name: str) -> None:
        self._functions, self._name = functions, name

    def newest(self, user_id: str, since: str, until: str, limit: int) -> PastPage:
        """Return events with since <= event_id < until. Raises Unprocessed if the lake did not answer."""
        request = {"user_id": user_id, "since": since, "until": until, "limit": limit}
        answer = self._functions().invoke(FunctionName=self._name, Payload=json.dumps(request))
        text = answer["Payload"].read()
        if answer.get("FunctionError"):
            raise Unprocessed(f"{self._name}: {text[:200]!r}")
        page = json.loads(text)
        return PastPage(page["rows"], page["reached"])


class ZoneStore:
    """The zones in the table of profiles (UserStreaks)."""

    def __init__(self, dynamodb: Any, profiles: str) -> None:
        self._dynamodb, self._profiles = dynamodb, profiles

    def chosen(self, user_ids: Iterable[str]) -> dict[str, str | None]:
        """Return each user's zone; None: the user has set none, or is not known. Raises Unprocessed."""
        users = sorted(set(user_ids))
        keys = [{"user_id": user} for user in users]
        profiles = map(decode_item, get_all(self._dynamodb, self._profiles, keys, "user_id, chosen_zone"))
        zones = {profile["user_id"]: profile.get("chosen_zone") for profile in profiles}
        return {user: zones.get(user) for user in users}
