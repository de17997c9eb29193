"""The lanes in which notifications wait for endpoints, and the leases of the workers that deliver them.

A lane is due at an instant. A worker takes a due lane by moving this instant on, so that no other worker
finds it. Each further change by the worker has the condition that the instant is still what the worker wrote.
Only a replay (go_back) changes a lane without taking it. It writes another instant, so the next write of the
lane's worker fails.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from adapters.outgoing.outbox_store import (
    LANE,
    LANE_SHARDS,
    LEASE,
    NUMBER_MAX,
    lane_shard,
    log_from,
    log_key,
    shard_of,
)
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import get_one, query_all, update_if, write_if
from rules.days import key_of_stamp, stamp, stamp_of_key, unstamp
from rules.outgoing.notices import KEPT, Notification

WORKER = "worker"
LANES_READ = 32  # lanes that one query reads
LOG_READ = 20  # items that one request reads: many lanes wait for a few notifications alone


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane: a holder's notifications that wait for an endpoint."""

    holder: str
    endpoint_id: str
    # The number of the newest notification that the endpoint has accepted, did not want, or did not accept in
    # time. All later ones wait.
    delivered: int
    newest: int  # the number of the newest notification
    due_at: str  # a stamp, when the next delivery is tried
    failures: int = 0  # deliveries in a row that failed
    failing_since: str = ""  # a stamp, of the first of these failures; "": the last delivery did not fail


class LaneStore:
    """All lanes, and the notifications in them."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def due(self, endpoint_id: str, share: int, now: datetime, limit: int = LANES_READ) -> list[Lane]:
        """Return at most `limit` due lanes of a share of an endpoint, the one that waits longest first."""
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="ByDue",
            KeyConditionExpression="due_shard = :shard AND due_at <= :now",
            ExpressionAttributeValues=encode_item(
                {":shard": lane_shard(endpoint_id, share), ":now": key_of_stamp(stamp(now))}
            ),
            Limit=limit,
        )
        # The index may be behind the table, so each lane is read again.
        lanes = (self.get(item["holder"]["S"], endpoint_id) for item in answer["Items"])
        return [lane for lane in lanes if lane and lane.due_at <= stamp(now)]

    def next_due(self, endpoint_id: str, share: int, now: datetime, until: datetime) -> datetime | None:
        """Return when the next lane of a share is due between two instants; None if none is."""
        values = {
            ":shard": lane_shard(endpoint_id, share),
            ":now": key_of_stamp(stamp(now)),
            ":until": key_of_stamp(stamp(until)),
        }
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="ByDue",
            KeyConditionExpression="due_shard = :shard AND due_at BETWEEN :now AND :until",
            ExpressionAttributeValues=encode_item(values),
            Limit=1,
        )
        due = [stamp_of_key(decode_item(item)["due_at"]) for item in answer["Items"]]
        return unstamp(due[0]) if due else None

    def get(self, holder: str, endpoint_id: str) -> Lane | None:
        """Return a lane; None if nothing waits in it. Strongly consistent."""
        item = get_one(self._dynamodb, self._table, {"holder": holder, "place": LANE + endpoint_id})
        return lane_from(item) if item else None

    def take(self, lane: Lane, now: datetime) -> Lane | None:
        """Take a lane for three minutes; returns None if another worker has it."""
        return self.wait(lane, now + LEASE)

    def wait(self, lane: Lane, until: datetime, **changes: Any) -> Lane | None:
        """Change a lane, and set when it is due; returns None if another worker has changed it.

        changes: new values of delivered, failures, failing_since.
        """
        after = replace(lane, **changes)
        values: dict[str, Any] = {
            ":due_before": key_of_stamp(lane.due_at),
            ":due": key_of_stamp(stamp(until)),
        }
        values |= {":delivered": after.delivered, ":failures": after.failures, ":since": after.failing_since}
        item = update_if(
            self._dynamodb,
            TableName=self._table,
            Key=self._key(lane.holder, lane.endpoint_id),
            UpdateExpression="SET due_at = :due, arrived = :delivered, failures = :failures,"
            " failing_since = :since",
            ConditionExpression="due_at = :due_before",
            ExpressionAttributeValues=encode_item(values),
        )
        return lane_from(item) if item else None

    def finish(self, lane: Lane, delivered: int, now: datetime) -> None:
        """Give back a lane whose notifications are delivered: delete it, or if new ones wait, make it due."""
        if not write_if(
            self._dynamodb.delete_item,
            TableName=self._table,
            Key=self._key(lane.holder, lane.endpoint_id),
            ConditionExpression="due_at = :due AND newest <= :delivered",
            ExpressionAttributeValues=encode_item(
                {":due": key_of_stamp(lane.due_at), ":delivered": delivered}
            ),
        ):
            self.wait(lane, now, delivered=delivered, failures=0, failing_since="")

    def log(self, holder: str, after: int) -> Iterator[Notification]:
        """Yield a holder's notifications after a number, in order; strongly consistent."""
        for item in query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="holder = :holder AND place BETWEEN :after AND :end",
            ExpressionAttributeValues=encode_item(
                {":holder": holder, ":after": log_key(after + 1), ":end": log_key(NUMBER_MAX)}
            ),
            ConsistentRead=True,
            Limit=LOG_READ,
        ):
            yield from (notification for notification in log_from(item) if notification.number > after)

    def go_back(self, holder: str, endpoint_id: str, number: int, newest: int, now: datetime) -> None:
        """Move a lane back to an earlier notification, for a replay. A worker that has the lane loses it."""
        values = {
            ":before": number - 1,
            ":newest": newest,
            ":now": key_of_stamp(stamp(now)),
            ":shard": lane_shard(endpoint_id, shard_of(holder, LANE_SHARDS)),
            ":until": int((now + KEPT).timestamp()),
            ":none": 0,
            ":never": "",
        }
        write_if(  # if not, the notification waits already
            self._dynamodb.update_item,
            TableName=self._table,
            Key=self._key(holder, endpoint_id),
            UpdateExpression="SET arrived = :before, newest = :newest, due_at = :now, due_shard = :shard,"
            " failures = :none, failing_since = :never, expires_at = :until",
            ConditionExpression="attribute_not_exists(arrived) OR arrived > :before",
            ExpressionAttributeValues=encode_item(values),
        )

    @staticmethod
    def _key(holder: str, endpoint_id: str) -> dict[str, Any]:
        return encode_item({"holder": holder, "place": LANE + endpoint_id})


class WorkerLeases:
    """Leases of shares of endpoints: a share has at most one worker at a time, and none during a pause.

    A share is a part of an endpoint's lanes. A share that has failed has a pause before the next worker may
    begin.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def begin(self, endpoint_id: str, share: int, now: datetime) -> int | None:
        """Take a share's lease for three minutes; returns how many of its rounds failed in a row.

        None: another worker has the share, or the share has a pause.
        """
        values = {":now": stamp(now), ":until": stamp(now + LEASE)}
        item = update_if(
            self._dynamodb,
            TableName=self._table,
            Key=self._worker_key(endpoint_id, share),
            UpdateExpression="SET busy_until = :until",
            ConditionExpression="attribute_not_exists(busy_until) OR busy_until <= :now",
            ExpressionAttributeValues=encode_item(values),
        )
        return int(decode_item(item).get("failures", 0)) if item else None

    def end(self, endpoint_id: str, share: int, failures: int, until: datetime) -> None:
        """Give a share's lease back. The next worker may begin at `until`.

        failures: how many rounds failed in a row.
        """
        self._dynamodb.update_item(
            TableName=self._table,
            Key=self._worker_key(endpoint_id, share),
            UpdateExpression="SET busy_until = :until, failures = :failures",
            ExpressionAttributeValues=encode_item({":until": stamp(until), ":failures": failures}),
        )

    @staticmethod
    def _worker_key(endpoint_id: str, share: int) -> dict[str, Any]:
        return encode_item({"holder": f"{WORKER}/{endpoint_id}/{share}", "place": WORKER})


def lane_from(stored: Item) -> Lane:
    """Read a lane's item."""
    fields = decode_item(stored)
    return Lane(
        holder=fields["holder"],
        endpoint_id=fields["place"].removeprefix(LANE),
        delivered=fields["arrived"],
        newest=fields["newest"],
        due_at=stamp_of_key(fields["due_at"]),
        failures=fields.get("failures", 0),
        failing_since=fields.get("failing_since", ""),
    )
