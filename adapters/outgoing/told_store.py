"""What was told: read, and changed in one transaction with the notifications and their lanes."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from adapters.outgoing.told_items import (
    LANE,
    LANE_SHARDS,
    TOLD,
    TOLD_SHARDS,
    Telling,
    Told,
    lane_shard,
    log_item,
    shard_of,
    told_from,
    told_item,
)
from adapters.platform.items import item
from adapters.platform.tables import get_all, query_all, reasons_of
from rules.days import stamp
from rules.outgoing.notices import KEPT


class ToldMeanwhile(Exception):
    """Somebody else has told of the holder since it was read."""


class ToldStore:
    """The table Notifications, for those who write notifications."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def get(self, holder: str) -> tuple[Told, int]:
        """Return what was told of a holder, and its revision; strongly consistent."""
        found = get_all(self._dynamodb, self._table, [{"holder": holder, "place": TOLD}])
        return told_from(holder, found[0] if found else None)

    def due(self, now: datetime) -> Iterator[str]:
        """Yield the users of whom time alone gives something to tell, by when it was due in each shard."""
        for number in range(TOLD_SHARDS):
            for each in query_all(
                self._dynamodb,
                TableName=self._table,
                IndexName="ByDue",
                KeyConditionExpression="due_shard = :shard AND due_at <= :now",
                ExpressionAttributeValues=item({":shard": f"{TOLD}#{number}", ":now": stamp(now)}),
            ):
                yield each["holder"]["S"]

    def put(self, holder: str, telling: Telling, now: datetime) -> None:
        """Write what is told of a holder now; raises ToldMeanwhile, and what DynamoDB raises."""
        actions = [self._told(holder, telling, now)]
        if telling.notifications:
            actions.append({"Put": {"TableName": self._table, "Item": log_item(telling.notifications, now)}})
            first, last = telling.notifications[0].number, telling.notifications[-1].number
            actions += [self.lane(holder, each, first, last, now) for each in telling.endpoints]
        try:
            self._dynamodb.transact_write_items(TransactItems=actions)
        except self._dynamodb.exceptions.TransactionCanceledException as error:
            reasons_of(error, len(actions))
            raise ToldMeanwhile(holder) from None

    def _told(self, holder: str, telling: Telling, now: datetime) -> dict[str, Any]:
        before = telling.revision
        put: dict[str, Any] = {
            "TableName": self._table,
            "Item": told_item(holder, telling, now),
            "ConditionExpression": "revision = :before" if before else "attribute_not_exists(holder)",
        }
        if before:
            put["ExpressionAttributeValues"] = item({":before": before})
        return {"Put": put}

    def lane(self, holder: str, endpoint_id: str, first: int, last: int, now: datetime) -> dict[str, Any]:
        """Return a transaction's action: notifications wait in a lane, which may have others that wait."""
        names = ("due_at", "due_shard", "arrived")
        begun = ", ".join(f"{each} = if_not_exists({each}, :{each})" for each in names)
        values = {
            ":due_at": stamp(now),
            ":due_shard": lane_shard(endpoint_id, shard_of(holder, LANE_SHARDS)),
            ":arrived": first - 1,
            ":newest": last,
            ":until": int((now + KEPT).timestamp()),
        }
        return {
            "Update": {
                "TableName": self._table,
                "Key": item({"holder": holder, "place": LANE + endpoint_id}),
                "UpdateExpression": f"SET {begun}, newest = :newest, expires_at = :until",
                "ExpressionAttributeValues": item(values),
            }
        }
