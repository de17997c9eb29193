"""The stretches that a user's devices were offline (rule 16), and the contacts that contradict them.

Stretches are one item beside the user's claims. Contacts are events that arrived meanwhile. Only a batch with
a receipt and with events of more than 72 hours ago reads the item. If it begins a stretch, it also reads the
events, and writes the item.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import Unprocessed, get_one, if_unchanged, query_all, write_if
from rules.days import EPOCH, key_of_stamp, stamp, unstamp
from rules.engagement.events import FUTURE_MAX, LATE_MAX, instant_of
from rules.engagement.offline import YEAR, Stretch, recent_stretches

# The item's key. No client's key has a control character (ingest.web.json_schema.KEY).
KEY = "\x1foffline"
ATTEMPTS_MAX = 8
# At most this many events are read. If there are more, the oldest one read counts as a contact. Then a
# receipt proves less than it might, never more.
EVENTS_READ_MAX = 5_000


class StretchStore:
    """Stretches in the table IdempotencyKeys, and events of BPEvents."""

    def __init__(self, dynamodb: Any, claims_table: str, events_table: str) -> None:
        self._dynamodb, self._claims, self._events = dynamodb, claims_table, events_table

    def find_or_begin(
        self, user_id: str, choose: Callable[[Sequence[Stretch]], Stretch], now: datetime
    ) -> tuple[Stretch, tuple[Stretch, ...]]:
        """Return the stretch that `choose` returns, and all stretches of the user; stores a new one.

        choose: takes the user's stretches; returns one of them, or a new one. It is called again if another
        process has written meanwhile, and may raise. Raises Unprocessed if others write in all attempts.
        """
        for _ in pauses(ATTEMPTS_MAX):
            before, version = self._read(user_id)
            stretch = choose(before)
            if stretch in before:
                return stretch, before
            stretches = (*recent_stretches(before, now), stretch)
            if self._write(user_id, stretches, version, now):
                return stretch, stretches
        raise Unprocessed(f"{self._claims}: the stretches of a user kept changing")

    def contacts(self, user_id: str, since: datetime, now: datetime) -> list[datetime]:
        """Return when the user was in touch after `since`: when events arrived.

        All contacts of the last 72 hours are among them, and the newest older one; others may be missing. An
        event that only servers declare is no contact, nor is one that arrived more than 72 hours late.
        """
        # Events are read in the order in which they occurred, the newest first. An event that arrived in time
        # after the newest old contact occurred at most 72 hours before that contact. So reading stops there.
        # It also stops after EVENTS_READ_MAX events; then the time of the oldest one counts as a contact.
        contacts: list[datetime] = []
        newest_old = EPOCH  # the newest contact that is older than 72 hours
        events = self._newest_events(user_id, since - LATE_MAX, now + FUTURE_MAX)
        for count, event in enumerate(events, 1):
            occurred, arrived = instant_of(event["event_id"]), unstamp(event["created_at"])
            if occurred < newest_old - LATE_MAX:
                break
            if count == EVENTS_READ_MAX:
                return [*contacts, occurred]
            is_in_time = arrived - occurred <= LATE_MAX
            if is_in_time and arrived > since and not event.get("by_server"):
                contacts.append(arrived)
                if arrived <= now - LATE_MAX:
                    newest_old = max(newest_old, arrived)
        return contacts

    def keys_of(self, user_id: str, stretch: Stretch) -> set[str]:
        """Return the idempotency keys of the events that came with the batch that ended a stretch."""
        events = self._newest_events(user_id, stretch.receipt_at - FUTURE_MAX, stretch.until + FUTURE_MAX)
        ended_at = stamp(stretch.until)
        return {event["idempotency_key"] for event in events if event["created_at"] == ended_at}

    def _newest_events(self, user_id: str, first: datetime, last: datetime) -> Iterator[dict[str, Any]]:
        """Yield at most EVENTS_READ_MAX events that occurred in a span, the newest first."""
        bounds = {":first": key_of_stamp(stamp(first)), ":last": key_of_stamp(stamp(last))}
        events = query_all(
            self._dynamodb,
            TableName=self._events,
            KeyConditionExpression="user_id = :user AND event_id BETWEEN :first AND :last",
            ExpressionAttributeValues=encode_item({":user": user_id, **bounds}),
            ProjectionExpression="event_id, created_at, by_server, idempotency_key",
            ScanIndexForward=False,
            Limit=500,
        )
        return map(decode_item, islice(events, EVENTS_READ_MAX))

    def _read(self, user_id: str) -> tuple[tuple[Stretch, ...], int]:
        """Return a user's stretches, oldest first, and how often their item was written; 0: there is none."""
        item = get_one(self._dynamodb, self._claims, {"user_id": user_id, "idempotency_key": KEY})
        if item is None:
            return (), 0
        fields = decode_item(item)
        return tuple(map(Stretch.of, fields["stretches"])), fields["version"]

    def _write(self, user_id: str, stretches: Sequence[Stretch], version: int, now: datetime) -> bool:
        """Write stretches in place of the version that was read; returns False if another is stored now."""
        attributes = {
            "user_id": user_id,
            "idempotency_key": KEY,
            "stretches": [stretch.text for stretch in stretches],
            "version": version + 1,
            "created_at": stamp(now),
            "ttl": int((now + YEAR).timestamp()),
        }
        item, condition = encode_item(attributes), if_unchanged("user_id", "version", version or None)
        return write_if(self._dynamodb.put_item, TableName=self._claims, Item=item, **condition)
