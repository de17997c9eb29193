"""The usual design and the cost of its event path, on tables of its own.

It is as a careful engineer would write it: boto3's resources, one write per record and table.

It saves what is easily saved: it reads the profile only for the first event of a date. It can do less than
ours: it has no daily caps, freezes, late events, or repair after a crash.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import boto3
import botocore.session
from boto3.dynamodb.conditions import Key
from boto3.dynamodb.types import TypeDeserializer

from bench.counting.desk import Desk, PathCosts, Units, attach
from bench.counting.dynamodb_units import shape_of
from bench.counting.requests import POINTS, Body, Record, bodies, record
from bench.units.engagement import DAY, HOUR, USER_ID
from tests.support.dynamodb_engine import Definition, table_definition

TABLES = ("UserStreaks", "BPEvents", "DailyActivity", "RewardsLedger")
RETENTION = timedelta(days=90)
PREFIX = "Naive"
EVENT_COUNTS = (1, 5)  # each further event costs the same


def definitions(prefix: str) -> Iterator[Definition]:
    """Yield CreateTable's arguments, with template.yaml's keys and indexes; indexes have all attributes."""
    for logical_id in TABLES:
        table = table_definition(logical_id, prefix + logical_id, CreateIdempotencyIndex="true")
        for index in table.get("GlobalSecondaryIndexes", ()):
            index["Projection"] = {"ProjectionType": "ALL"}
        yield table


class Naive:
    """The usual design's handler. dynamodb: boto3's resource. prefix: of its tables' names."""

    def __init__(self, dynamodb: Any, prefix: str) -> None:
        self._dynamodb = dynamodb
        self._profiles, self._events, self._days, self._ledger = (
            dynamodb.Table(prefix + logical_id) for logical_id in TABLES
        )

    def ingest(self, body: Body, now: datetime) -> str:
        """Store an event; returns its event_id."""
        occurred = datetime.fromisoformat(body["occurred_at"])
        event_id = f"{occurred.astimezone(UTC).isoformat()}#{uuid4()}"
        values = {
            "idempotency_key": body["idempotency_key"],
            "event_type": body["event_type"],
            "occurred_at": body["occurred_at"],
            "activity_date": occurred.astimezone(ZoneInfo(body["timezone"])).date().isoformat(),
            "points_awarded": POINTS,
            "source": body["source"],
            "properties": body["properties"],
            "created_at": now.isoformat(),
            "ttl": int((now + RETENTION).timestamp()),
        }
        self._events.update_item(
            Key={"user_id": body["user_id"], "event_id": event_id},
            UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
            ConditionExpression="attribute_not_exists(user_id)",
            ExpressionAttributeNames={f"#{name}": name for name in values},
            ExpressionAttributeValues={f":{name}": value for name, value in values.items()},
        )
        return event_id

    def handler(self, event: Mapping[str, Any]) -> None:
        """Apply a batch of the events' stream, record by record."""
        deserialize = TypeDeserializer().deserialize
        for change in event["Records"]:
            image = change["dynamodb"]["NewImage"]
            self._apply({name: deserialize(value) for name, value in image.items()})

    def _apply(self, event: Mapping[str, Any]) -> None:
        now = datetime.now(UTC)
        self._earn(event, now)
        if self._count_event(event, now) == 1:
            self._extend(event, now)
        else:
            self._add_points(event, now)

    def _count_event(self, event: Mapping[str, Any], now: datetime) -> int:
        """Add an event to its date; returns the number of the date's events so far."""
        answer = self._days.update_item(
            Key={"user_id": event["user_id"], "activity_date": event["activity_date"]},
            UpdateExpression="SET first_event_id = if_not_exists(first_event_id, :event),"
            " created_at = if_not_exists(created_at, :now) ADD events_count :one, points_earned :points",
            ExpressionAttributeValues={
                ":event": event["event_id"],
                ":now": now.isoformat(),
                ":one": 1,
                ":points": event["points_awarded"],
            },
            ReturnValues="UPDATED_NEW",
        )
        return int(answer["Attributes"]["events_count"])

    def _extend(self, event: Mapping[str, Any], now: datetime) -> None:
        """Continue the streak, or start a new one, at the first event of a date."""
        table, key = self._profiles, {"user_id": event["user_id"]}
        profile = table.get_item(Key=key, ConsistentRead=True).get("Item", {})
        yesterday = date.fromisoformat(event["activity_date"]) - timedelta(days=1)
        is_continued = profile.get("last_activity_date") == yesterday.isoformat()
        streak = int(profile.get("current_streak", 0)) + 1 if is_continued else 1
        table.update_item(
            Key=key,
            UpdateExpression="SET current_streak = :streak, longest_streak = :longest,"
            " last_activity_date = :date, leaderboard_partition = :region, #zone = :zone,"
            " streak_updated_at = :now ADD total_bestie_points :points, version :one",
            ExpressionAttributeNames={"#zone": "timezone"},
            ExpressionAttributeValues={
                ":streak": streak,
                ":longest": max(streak, int(profile.get("longest_streak", 0))),
                ":date": event["activity_date"],
                ":region": "europe",
                ":zone": "Europe/Berlin",
                ":now": now.isoformat(),
                ":points": event["points_awarded"],
                ":one": 1,
            },
        )

    def _add_points(self, event: Mapping[str, Any], now: datetime) -> None:
        self._profiles.update_item(
            Key={"user_id": event["user_id"]},
            UpdateExpression="SET streak_updated_at = :now ADD total_bestie_points :points, version :one",
            ExpressionAttributeValues={
                ":now": now.isoformat(),
                ":points": event["points_awarded"],
                ":one": 1,
            },
        )

    def _earn(self, event: Mapping[str, Any], now: datetime) -> None:
        """Append a ledger entry: put the new head and deactivate the old one, in one transaction."""
        table, account = self._ledger, event["user_id"]
        newest = table.query(
            KeyConditionExpression=Key("account_id").eq(account),
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=1,
        )["Items"]
        entry = {
            "account_id": account,
            "created_at": now.isoformat(),
            "kind": "EARN",
            "points": event["points_awarded"],
            "balance": (newest[0]["balance"] if newest else 0) + event["points_awarded"],
            "event_id": event["event_id"],
            "event_type": event["event_type"],
            "activity_date": event["activity_date"],
            "active": True,
        }
        actions = [{"Put": {"TableName": table.name, "Item": entry}}]
        if newest:
            actions.append({"Update": _deactivation(table.name, newest[0])})
        self._dynamodb.meta.client.transact_write_items(TransactItems=actions)


def _deactivation(table: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "TableName": table,
        "Key": {"account_id": entry["account_id"], "created_at": entry["created_at"]},
        "UpdateExpression": "SET active = :no",
        "ConditionExpression": "active = :yes",
        "ExpressionAttributeValues": {":no": False, ":yes": True},
    }


def naive_at(desk: Desk) -> Naive:
    """Return the usual design, with its tables on a desk."""
    for definition in definitions(PREFIX):
        shape = shape_of(definition)
        desk.meter.shapes[shape.name] = shape
        desk.tables.create(definition)
    session = botocore.session.get_session()  # boto3's resources change the session that they are made of
    attach(session, desk.services, desk.meter)
    resource: Any = boto3.Session(botocore_session=session).resource("dynamodb")
    return Naive(resource, PREFIX)


def ingest_as_records(desk: Desk, naive: Naive, events: Sequence[Body]) -> list[Record]:
    """Let the usual design store events; returns the records of its table's stream."""
    records = []
    for number, body in enumerate(events):
        event_id = naive.ingest(body, desk.now)
        key = {"user_id": {"S": body["user_id"]}, "event_id": {"S": event_id}}
        records.append(record(number, desk.tables.read(f"{PREFIX}BPEvents", key) or {}))
    return records


def naive_paths(desk: Desk) -> PathCosts:
    """Yield posts of a user with an account, the first of a date. Its indexes hold all attributes."""
    naive = naive_at(desk)
    for number, count in enumerate(EVENT_COUNTS):
        user = USER_ID.format(2 * 10**6 + number)
        desk.tick(DAY)
        _cost_of_events(desk, naive, user, 1)
        desk.tick(DAY)
        yield f"naive.next.{count}", _cost_of_events(desk, naive, user, count)


def _cost_of_events(desk: Desk, naive: Naive, user: str, count: int) -> dict[str, Units]:
    desk.start_path()
    records = ingest_as_records(desk, naive, bodies([user], count, desk.now - HOUR))
    _add_cost(desk, "NaiveDoor", count)
    naive.handler({"Records": records})
    _add_cost(desk, "NaiveProcessor", 1)
    return desk.take_costs()


def _add_cost(desk: Desk, function: str, invocations: int) -> None:
    """Add what the meter has counted, under the names that our tables have."""
    counts = {name.replace(PREFIX, "", 1): count for name, count in desk.meter.take_counts().items()}
    desk.add_cost(function, {"invocations": invocations, **counts})
