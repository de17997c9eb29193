"""What was told of users: read, and changed in one transaction with the notifications and their lanes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.outgoing.told_items import (
    LANE,
    LANE_SHARDS,
    TOLD,
    TOLD_SHARDS,
    lane_shard,
    log_item,
    shard_of,
    told_from,
    told_item,
)
from adapters.platform.batches import get_all, query_all
from adapters.platform.items import item
from adapters.platform.transactions import reasons_of
from rules.days import stamp
from rules.outgoing.derive import ToldState
from rules.outgoing.notices import Notification
from rules.outgoing.retries import KEPT


class ToldMeanwhile(Exception):
    """Somebody else has told of the user since it was read."""


@dataclass(frozen=True, slots=True)
class Telling:
    """What is to be written of a user. revision: as read. due: when time alone gives another notification."""

    told: ToldState
    revision: int
    due: datetime | None
    notifications: Sequence[Notification]
    endpoints: Iterable[str]


class ToldStore:
    """The table Notifications, for those who write notifications."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def get(self, users: Iterable[str]) -> dict[str, tuple[ToldState, int]]:
        """Return what was told of each user, and its revision; strongly consistent."""
        wanted = list(dict.fromkeys(users))
        keys = [{"holder": each, "place": TOLD} for each in wanted]
        found = {each["holder"]["S"]: each for each in get_all(self._dynamodb, self._table, keys)}
        return {each: told_from(found.get(each)) for each in wanted}

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

    def put(self, user_id: str, telling: Telling, now: datetime) -> None:
        """Write what is told of a user now; raises ToldMeanwhile, and what DynamoDB raises."""
        actions = [self._told(user_id, telling)]
        if telling.notifications:
            actions.append({"Put": {"TableName": self._table, "Item": log_item(telling.notifications, now)}})
            first, last = telling.notifications[0].number, telling.notifications[-1].number
            actions += [self.lane(user_id, each, first, last, now) for each in telling.endpoints]
        try:
            self._dynamodb.transact_write_items(TransactItems=actions)
        except self._dynamodb.exceptions.TransactionCanceledException as error:
            reasons_of(error, len(actions))
            raise ToldMeanwhile(user_id) from None

    def _told(self, user_id: str, telling: Telling) -> dict[str, Any]:
        before = telling.revision
        put: dict[str, Any] = {
            "TableName": self._table,
            "Item": told_item(user_id, telling.told, before + 1, telling.due),
            "ConditionExpression": "revision = :before" if before else "attribute_not_exists(holder)",
        }
        if before:
            put["ExpressionAttributeValues"] = item({":before": before})
        return {"Put": put}

    def lane(self, user_id: str, endpoint_id: str, first: int, last: int, now: datetime) -> dict[str, Any]:
        """Return a transaction's action: notifications wait in a lane, which may have others that wait."""
        names = ("due_at", "due_shard", "arrived")
        begun = ", ".join(f"{each} = if_not_exists({each}, :{each})" for each in names)
        values = {
            ":due_at": stamp(now),
            ":due_shard": lane_shard(endpoint_id, shard_of(user_id, LANE_SHARDS)),
            ":arrived": first - 1,
            ":newest": last,
            ":until": int((now + KEPT).timestamp()),
        }
        return {
            "Update": {
                "TableName": self._table,
                "Key": item({"holder": user_id, "place": LANE + endpoint_id}),
                "UpdateExpression": f"SET {begun}, newest = :newest, expires_at = :until",
                "ExpressionAttributeValues": item(values),
            }
        }
