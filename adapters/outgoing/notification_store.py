"""The table Notifications: notifications, and the lanes in which they wait for endpoints.

| holder | place | content |
|---|---|---|
| ann | told | the state that Ann's notifications have reported; when the next one is due by time alone |
| lead/{id}, question/{id} | told | the same for a lead or a question; a question's item ends after a month |
| ann | log/000000000012 | the notifications of one change, the last of which has number 12 |
| ann | to/{endpoint} | Ann's lane to an endpoint: the newest delivered number, and when it is tried next |
| worker/{endpoint}/2 | worker | until when a share of an endpoint has a worker, or a pause |

A writer has OutboxStore, which writes notifications and the state after them in one transaction. The function
that delivers has BacklogStore, the lanes, and WorkerLeases. DeliveryInvoker wakes it.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import cancellation_reasons, get_all, query_all
from rules.days import stamp
from rules.outgoing.derivation import HoldState, ItemNoticeState, LostStreak, UserNoticeState
from rules.outgoing.notices import KEPT, QUESTION, Endpoint, Notice, NoticeType, Notification, is_user

NoticeState = UserNoticeState | ItemNoticeState
STATE, LOG, BACKLOG = "told", "log/", "to/"  # of sort keys: the first is one, the others begin some
STATE_SHARDS, BACKLOG_SHARDS = 8, 4  # partitions of the index ByDue: of users, and of each endpoint's lanes
LEASE = timedelta(
    minutes=3
)  # longer than a function may run; then the lane of a worker that died is due again
BACKLOGS_READ = 32  # lanes in a query
LOG_READ = 20  # items in a page of a query
WORKER = "worker"
TEST_HOLDER = "test/"  # the endpoint's id follows; no user id has a slash
EndpointShard = tuple[str, int]  # an endpoint's id, and a shard of its lanes

logger = Logger(service="waking")


@dataclass(frozen=True, slots=True)
class OutboxWrite:
    """A holder's new state, and the notifications that lead to it."""

    state: NoticeState
    revision: int  # of the state that was read
    due: datetime | None  # when time alone gives another notification
    notifications: Sequence[Notification]
    endpoints: Iterable[str]  # the ids of the endpoints that get the notifications


@dataclass(frozen=True, slots=True)
class Backlog:
    """A lane: a holder's notifications that wait for an endpoint."""

    holder: str
    endpoint_id: str
    arrived: int  # number of the newest notification that has arrived
    newest: int  # number of the newest notification
    due_at: str  # a stamp, when the next delivery is tried
    failures: int = 0  # in a row
    failing_since: str = ""  # a stamp, of the first of these failures


class OutboxConflict(Exception):
    """Another process has written the holder's state since it was read."""


class OutboxStore:
    """Writes notifications, with the state of their holder and the lanes in which they wait."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def get(self, holder: str) -> tuple[NoticeState, int]:
        """Return a holder's state, and its revision; strongly consistent."""
        items = get_all(self._dynamodb, self._table, [{"holder": holder, "place": STATE}])
        return state_from(holder, items[0] if items else None)

    def due(self, now: datetime) -> Iterator[str]:
        """Yield the users for whom time alone gives a notification now, in each shard the earliest first."""
        for number in range(STATE_SHARDS):
            for item in query_all(
                self._dynamodb,
                TableName=self._table,
                IndexName="ByDue",
                KeyConditionExpression="due_shard = :shard AND due_at <= :now",
                ExpressionAttributeValues=encode_item({":shard": f"{STATE}#{number}", ":now": stamp(now)}),
            ):
                yield item["holder"]["S"]

    def put(self, holder: str, write: OutboxWrite, now: datetime) -> None:
        """Write a holder's state and notifications; raises OutboxConflict, and what DynamoDB raises."""
        actions = [self._state_action(holder, write, now)]
        if write.notifications:
            actions.append({"Put": {"TableName": self._table, "Item": log_item(write.notifications, now)}})
            first, last = write.notifications[0].number, write.notifications[-1].number
            actions += [self.lane_action(holder, endpoint, first, last, now) for endpoint in write.endpoints]
        try:
            self._dynamodb.transact_write_items(TransactItems=actions)
        except self._dynamodb.exceptions.TransactionCanceledException as error:
            cancellation_reasons(error, len(actions))
            raise OutboxConflict(holder) from None

    def _state_action(self, holder: str, write: OutboxWrite, now: datetime) -> dict[str, Any]:
        before = write.revision
        put: dict[str, Any] = {
            "TableName": self._table,
            "Item": state_item(holder, write, now),
            "ConditionExpression": "revision = :before" if before else "attribute_not_exists(holder)",
        }
        if before:
            put["ExpressionAttributeValues"] = encode_item({":before": before})
        return {"Put": put}

    def lane_action(
        self, holder: str, endpoint_id: str, first: int, last: int, now: datetime
    ) -> dict[str, Any]:
        """Return a transaction's action that adds notifications to a lane, which is due at once.

        If other notifications wait in the lane, its due time does not change: it may be in a pause.
        """
        names = ("due_at", "due_shard", "arrived")
        new_lane = ", ".join(f"{name} = if_not_exists({name}, :{name})" for name in names)
        values = {
            ":due_at": stamp(now),
            ":due_shard": backlog_shard(endpoint_id, shard_of(holder, BACKLOG_SHARDS)),
            ":arrived": first - 1,
            ":newest": last,
            ":until": int((now + KEPT).timestamp()),
        }
        return {
            "Update": {
                "TableName": self._table,
                "Key": encode_item({"holder": holder, "place": BACKLOG + endpoint_id}),
                "UpdateExpression": f"SET {new_lane}, newest = :newest, expires_at = :until",
                "ExpressionAttributeValues": encode_item(values),
            }
        }


class BacklogStore:
    """The lanes, for the function that delivers the notifications in them."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def due(self, endpoint_id: str, share: int, now: datetime, limit: int = BACKLOGS_READ) -> list[Backlog]:
        """Return the lanes of a share of an endpoint that are due, the one that waits longest first."""
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="ByDue",
            KeyConditionExpression="due_shard = :shard AND due_at <= :now",
            ExpressionAttributeValues=encode_item(
                {":shard": backlog_shard(endpoint_id, share), ":now": stamp(now)}
            ),
            Limit=limit,
        )
        # The index may be behind the table, so each lane is read again.
        lanes = (self.get(item["holder"]["S"], endpoint_id) for item in answer["Items"])
        return [lane for lane in lanes if lane and lane.due_at <= stamp(now)]

    def get(self, holder: str, endpoint_id: str) -> Backlog | None:
        """Return a lane; None if nothing waits in it. Strongly consistent."""
        answer = self._dynamodb.get_item(
            TableName=self._table, Key=self._key(holder, endpoint_id), ConsistentRead=True
        )
        return backlog_from(answer["Item"]) if "Item" in answer else None

    def take(self, lane: Backlog, now: datetime) -> Backlog | None:
        """Take a lane for three minutes; returns None if another worker has it."""
        return self.wait(lane, now + LEASE)

    def wait(self, lane: Backlog, until: datetime, **changes: Any) -> Backlog | None:
        """Change a lane, and set when it is due; returns None if another worker has changed it.

        changes: new values of arrived, failures, failing_since.
        """
        after = replace(lane, **changes)
        values = {":due_before": lane.due_at, ":due": stamp(until), ":arrived": after.arrived}
        values |= {":failures": after.failures, ":since": after.failing_since}
        try:
            answer = self._dynamodb.update_item(
                TableName=self._table,
                Key=self._key(lane.holder, lane.endpoint_id),
                UpdateExpression="SET due_at = :due, arrived = :arrived, failures = :failures,"
                " failing_since = :since",
                ConditionExpression="due_at = :due_before",
                ExpressionAttributeValues=encode_item(values),
                ReturnValues="ALL_NEW",
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return None
        return backlog_from(answer["Attributes"])

    def finish(self, lane: Backlog, arrived: int, now: datetime) -> None:
        """Give back a lane whose notifications have arrived: delete it, or if new ones wait, make it due."""
        try:
            self._dynamodb.delete_item(
                TableName=self._table,
                Key=self._key(lane.holder, lane.endpoint_id),
                ConditionExpression="due_at = :due AND newest <= :arrived",
                ExpressionAttributeValues=encode_item({":due": lane.due_at, ":arrived": arrived}),
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            self.wait(lane, now, arrived=arrived, failures=0, failing_since="")

    def log(self, holder: str, after: int) -> Iterator[Notification]:
        """Yield a user's notifications after a number, in order; strongly consistent."""
        for item in query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="holder = :user AND place BETWEEN :after AND :end",
            ExpressionAttributeValues=encode_item(
                {":user": holder, ":after": log_key(after + 1), ":end": log_key(10**15 - 1)}
            ),
            ConsistentRead=True,
            Limit=LOG_READ,
        ):
            yield from (notification for notification in log_from(item) if notification.number > after)

    def go_back(self, holder: str, endpoint_id: str, number: int, newest: int, now: datetime) -> None:
        """Move a lane back to an earlier notification, for a replay. A worker that has the lane loses it."""
        until = int((now + KEPT).timestamp())
        shard = backlog_shard(endpoint_id, shard_of(holder, BACKLOG_SHARDS))
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
                ExpressionAttributeValues=encode_item({**values, ":none": 0, ":never": ""}),
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return  # the notification waits already

    @staticmethod
    def _key(holder: str, endpoint_id: str) -> dict[str, Any]:
        return encode_item({"holder": holder, "place": BACKLOG + endpoint_id})


class WorkerLeases:
    """Leases: a share of an endpoint has at most one worker, and none during a pause after failures."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def begin(self, endpoint_id: str, share: int, now: datetime) -> int | None:
        """Take the lease; returns how many rounds failed in a row. None: another worker or a pause has it."""
        values = {":now": stamp(now), ":until": stamp(now + LEASE)}
        try:
            answer = self._dynamodb.update_item(
                TableName=self._table,
                Key=_worker_key(endpoint_id, share),
                UpdateExpression="SET busy_until = :until",
                ConditionExpression="attribute_not_exists(busy_until) OR busy_until <= :now",
                ExpressionAttributeValues=encode_item(values),
                ReturnValues="ALL_NEW",
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return None
        return int(decode_item(answer["Attributes"]).get("failures", 0))

    def end(self, endpoint_id: str, share: int, failures: int, until: datetime) -> None:
        """Give the lease back; the next one begins at `until`. failures: rounds in a row that failed."""
        self._dynamodb.update_item(
            TableName=self._table,
            Key=_worker_key(endpoint_id, share),
            UpdateExpression="SET busy_until = :until, failures = :failures",
            ExpressionAttributeValues=encode_item({":until": stamp(until), ":failures": failures}),
        )


def _worker_key(endpoint_id: str, share: int) -> dict[str, Any]:
    return encode_item({"holder": f"{WORKER}/{endpoint_id}/{share}", "place": WORKER})


class TrialMessages:
    """Messages that test an endpoint. They have a holder of their own, and are delivered like all others."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def put(self, endpoint: Endpoint, now: datetime) -> Notification:
        """Add a test message to the endpoint's lane; returns it."""
        number = int(now.timestamp() * 1_000)
        notice = Notice(NoticeType.TEST, {"endpoint_id": endpoint.endpoint_id})
        notification = Notification(TEST_HOLDER + endpoint.endpoint_id, number, stamp(now), notice)
        store = OutboxStore(self._dynamodb, self._table)
        self._dynamodb.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": self._table, "Item": log_item([notification], now)}},
                store.lane_action(notification.holder, endpoint.endpoint_id, number, number, now),
            ]
        )
        return notification


class DeliveryInvoker:
    """Wakes the function that delivers. If a call fails, the next sweep delivers."""

    def __init__(self, functions: Callable[[], Any], name: str) -> None:
        """functions: returns the client of Lambda. name: of the function. Its answer is not waited for."""
        self._functions, self._name = functions, name

    def wake(self, shares: Iterable[EndpointShard]) -> None:
        """Have the lanes of these shares of endpoints delivered now."""
        for endpoint_id, share in sorted(set(shares)):
            payload = json.dumps({"endpoint_id": endpoint_id, "share": share})
            try:
                self._functions().invoke(FunctionName=self._name, InvocationType="Event", Payload=payload)
            except Unavailable:
                logger.warning("not woken", extra={"endpoint_id": endpoint_id}, exc_info=True)


def endpoint_shard(endpoint_id: str, holder: str) -> EndpointShard:
    """Return the share of an endpoint's lanes that a holder's lane is in."""
    return endpoint_id, shard_of(holder, BACKLOG_SHARDS)


def shard_of(name: str, shards: int) -> int:
    """Return the number of a name's shard, which never changes."""
    return zlib.crc32(name.encode()) % shards


def state_shard(holder: str) -> str:
    """Return a user's partition in the index ByDue, for notifications that are due by time alone."""
    return f"{STATE}#{shard_of(holder, STATE_SHARDS)}"


def backlog_shard(endpoint_id: str, number: int) -> str:
    """Return the partition of the index ByDue for a share of an endpoint's lanes."""
    return f"{BACKLOG}{endpoint_id}#{number}"


def state_item(holder: str, write: OutboxWrite, now: datetime) -> Item:
    """Return a holder's state as an item. A question's item expires, because a question is notified once."""
    state, due = write.state, write.due
    content = _user_content(state) if isinstance(state, UserNoticeState) else {"shown": state.shown}
    until = int((now + KEPT).timestamp()) if holder.startswith(QUESTION) else None
    fields = {
        "holder": holder,
        "place": STATE,
        "revision": write.revision + 1,
        "version": state.version,
        "number": state.number,
        "as_of": state.as_of,
        "content": json.dumps(content, separators=(",", ":")),
        "due_at": due and stamp(due),
        "due_shard": state_shard(holder) if due else None,
        "expires_at": until,
    }
    return encode_item(fields)


def _user_content(state: UserNoticeState) -> dict[str, Any]:
    return {
        "shown": state.shown,
        "lost": state.lost and [state.lost.last.isoformat(), state.lost.length],
        "warned": state.warned,
        "holds": [
            [hold.hold_id, hold.points, hold.reward_id, hold.until, hold.is_over] for hold in state.holds
        ],
        "redeemed": state.redeemed,
        "changes_at": state.changes_at,
        "achievements": state.achievements,
        "asked": state.asked,
        "book": state.book,
        "looked_at": state.looked_at,
    }


def state_from(holder: str, stored: Item | None) -> tuple[NoticeState, int]:
    """Return the state in an item, and its revision; an empty state and 0 for no item."""
    if stored is None:
        return (UserNoticeState() if is_user(holder) else ItemNoticeState()), 0
    fields = decode_item(stored)
    content = json.loads(fields["content"])
    if not is_user(holder):
        item_state = ItemNoticeState(fields["version"], fields["number"], fields["as_of"], content["shown"])
        return item_state, fields["revision"]
    lost = None
    if content["lost"]:
        last, length = content["lost"]
        lost = LostStreak(date.fromisoformat(last), length)
    state = UserNoticeState(
        version=fields["version"],
        number=fields["number"],
        as_of=fields["as_of"],
        shown=content["shown"],
        lost=lost,
        warned=content["warned"],
        holds=tuple(HoldState(*values) for values in content["holds"]),
        redeemed=content["redeemed"],
        changes_at=content["changes_at"],
        achievements=content.get("achievements", {}),
        asked=content.get("asked"),
        book=content.get("book", 0),
        looked_at=content.get("looked_at", ""),
    )
    return state, fields["revision"]


def log_key(number: int) -> str:
    """Return the sort key of the notifications of one change, the last of which has this number."""
    return f"{LOG}{number:015}"


def log_item(notifications: Sequence[Notification], now: datetime) -> Item:
    """Return the notifications of one change as an item; at least one."""
    last = notifications[-1]
    content = [
        [notification.number, notification.at, notification.notice.type.value, notification.notice.data]
        for notification in notifications
    ]
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode())
    until = int((now + KEPT).timestamp())
    fields = encode_item({"holder": last.holder, "place": log_key(last.number), "expires_at": until})
    return {**fields, "packed": {"B": packed}}


def log_from(stored: Item) -> list[Notification]:
    """Read the notifications of one change."""
    holder: str = stored["holder"]["S"]
    content: list[Any] = json.loads(zlib.decompress(stored["packed"]["B"]))
    return [
        Notification(holder, number, at, Notice(NoticeType(notice_type), data))
        for number, at, notice_type, data in content
    ]


def backlog_from(stored: Item) -> Backlog:
    """Read a lane's item."""
    fields = decode_item(stored)
    return Backlog(
        holder=fields["holder"],
        endpoint_id=fields["place"].removeprefix(BACKLOG),
        arrived=fields["arrived"],
        newest=fields["newest"],
        due_at=fields["due_at"],
        failures=fields.get("failures", 0),
        failing_since=fields.get("failing_since", ""),
    )
