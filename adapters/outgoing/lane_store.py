"""Lanes: who may deliver one, what has arrived, when it is tried again; and who works for an endpoint."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from adapters.outgoing.told_items import (
    LANE,
    LANE_SHARDS,
    Lane,
    lane_from,
    lane_shard,
    log_from,
    log_place,
    shard_of,
)
from adapters.platform.items import item, plain
from adapters.platform.tables import query_all
from rules.days import stamp
from rules.outgoing.notices import KEPT, Notification

LEASE = timedelta(minutes=3)  # longer than a function may run: then its lane is due again
LANES_READ = 32
LOG_READ = 20
WORKER = "worker"


class LaneStore:
    """The table Notifications, for those who deliver."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def due(self, endpoint_id: str, share: int, now: datetime, limit: int = LANES_READ) -> list[Lane]:
        """Return lanes of a share of an endpoint that are due, the one that waits longest first."""
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="ByDue",
            KeyConditionExpression="due_shard = :shard AND due_at <= :now",
            ExpressionAttributeValues=item({":shard": lane_shard(endpoint_id, share), ":now": stamp(now)}),
            Limit=limit,
        )
        users = [each["holder"]["S"] for each in answer["Items"]]
        found = (self.get(each, endpoint_id) for each in users)
        return [each for each in found if each and each.due_at <= stamp(now)]

    def get(self, holder: str, endpoint_id: str) -> Lane | None:
        """Return a lane in which something waits; strongly consistent."""
        answer = self._dynamodb.get_item(
            TableName=self._table, Key=self._key(holder, endpoint_id), ConsistentRead=True
        )
        return lane_from(answer["Item"]) if "Item" in answer else None

    def take(self, lane: Lane, now: datetime) -> Lane | None:
        """Take a lane for three minutes; None: somebody else has it."""
        return self.wait(lane, now + LEASE)

    def wait(self, lane: Lane, until: datetime, **changes: Any) -> Lane | None:
        """Change a lane that is still as one knows it, and say when it is due; None: it is not.

        changes: of arrived, failures, failing_since.
        """
        after = replace(lane, **changes)
        values = {":was": lane.due_at, ":due": stamp(until), ":arrived": after.arrived}
        values |= {":failures": after.failures, ":since": after.failing_since}
        try:
            answer = self._dynamodb.update_item(
                TableName=self._table,
                Key=self._key(lane.holder, lane.endpoint_id),
                UpdateExpression="SET due_at = :due, arrived = :arrived, failures = :failures,"
                " failing_since = :since",
                ConditionExpression="due_at = :was",
                ExpressionAttributeValues=item(values),
                ReturnValues="ALL_NEW",
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return None
        return lane_from(answer["Attributes"])

    def finish(self, lane: Lane, arrived: int, now: datetime) -> None:
        """Give back a lane that one has taken; it ends if nothing has come in the meantime."""
        try:
            self._dynamodb.delete_item(
                TableName=self._table,
                Key=self._key(lane.holder, lane.endpoint_id),
                ConditionExpression="due_at = :mine AND newest <= :arrived",
                ExpressionAttributeValues=item({":mine": lane.due_at, ":arrived": arrived}),
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            self.wait(lane, now, arrived=arrived, failures=0, failing_since="")

    def log(self, holder: str, after: int) -> Iterator[Notification]:
        """Yield a user's notifications after a number, in order; strongly consistent."""
        for each in query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="holder = :user AND place BETWEEN :after AND :end",
            ExpressionAttributeValues=item(
                {":user": holder, ":after": log_place(after + 1), ":end": log_place(10**15 - 1)}
            ),
            ConsistentRead=True,
            Limit=LOG_READ,
        ):
            yield from (one for one in log_from(each) if one.number > after)

    def go_back(self, holder: str, endpoint_id: str, number: int, newest: int, now: datetime) -> None:
        """Let a lane begin again with a notification that has been tried. Whoever has the lane loses it."""
        until = int((now + KEPT).timestamp())
        shard = lane_shard(endpoint_id, shard_of(holder, LANE_SHARDS))
        values = {
            ":before": number - 1,
            ":newest": newest,
            ":now": stamp(now),
            ":shard": shard,
            ":until": until,
        }
        try:
            self._dynamodb.update_item(
                TableName=self._table,
                Key=self._key(holder, endpoint_id),
                UpdateExpression="SET arrived = :before, newest = :newest, due_at = :now, due_shard = :shard,"
                " failures = :none, failing_since = :never, expires_at = :until",
                ConditionExpression="attribute_not_exists(arrived) OR arrived > :before",
                ExpressionAttributeValues=item({**values, ":none": 0, ":never": ""}),
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return  # it waits already

    @staticmethod
    def _key(holder: str, endpoint_id: str) -> dict[str, Any]:
        return item({"holder": holder, "place": LANE + endpoint_id})


class WorkerStore:
    """The table Notifications: a share of an endpoint has one worker at most, and in times of peace none."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def begin(self, endpoint_id: str, share: int, now: datetime) -> int | None:
        """Become the worker; returns how many rounds failed in a row. None: another one works, or peace."""
        values = {":now": stamp(now), ":until": stamp(now + LEASE)}
        try:
            answer = self._dynamodb.update_item(
                TableName=self._table,
                Key=_worker(endpoint_id, share),
                UpdateExpression="SET busy_until = :until",
                ConditionExpression="attribute_not_exists(busy_until) OR busy_until <= :now",
                ExpressionAttributeValues=item(values),
                ReturnValues="ALL_NEW",
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return None
        return int(plain(answer["Attributes"]).get("failures", 0))

    def end(self, endpoint_id: str, share: int, failures: int, until: datetime) -> None:
        """Let others work from an instant on. failures: rounds in a row that failed."""
        self._dynamodb.update_item(
            TableName=self._table,
            Key=_worker(endpoint_id, share),
            UpdateExpression="SET busy_until = :until, failures = :failures",
            ExpressionAttributeValues=item({":until": stamp(until), ":failures": failures}),
        )


def _worker(endpoint_id: str, share: int) -> dict[str, Any]:
    return item({"holder": f"{WORKER}/{endpoint_id}/{share}", "place": WORKER})
