"""The table Notifications: what was notified, and the lanes in which notifications wait for endpoints.

| holder | place | holds |
|---|---|---|
| ann | told | what Ann's notifications say so far, and when time alone will give another one |
| lead/{id}, question/{id} | told | the same of a lead, and of a question, which ends after a month |
| ann | log/000000000012 | the notifications up to number 12 that one change has led to |
| ann | to/{endpoint} | Ann's lane to an endpoint: what has arrived, and when it is tried again |
| worker/{endpoint}/2 | worker | until when a share of an endpoint is worked for, or is not asked |

OutboxStore writes notifications, with the state that they leave, in one transaction. BacklogStore and
WorkerLeases are for the function that delivers, which DeliveryInvoker wakes.
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
STATE, LOG, BACKLOG = "told", "log/", "to/"
STATE_SHARDS, BACKLOG_SHARDS = 8, 4  # partitions of the index ByDue: of users, and of each endpoint's lanes
LEASE = timedelta(minutes=3)  # longer than a function may run: then its lane is due again
BACKLOGS_READ = 32
LOG_READ = 20
WORKER = "worker"
TEST_HOLDER = "test/"  # and the endpoint: no user id has a slash
EndpointShard = tuple[str, int]  # an endpoint's id, and a shard of its lanes

logger = Logger(service="waking")


@dataclass(frozen=True, slots=True)
class OutboxWrite:
    """What is to be written of a holder."""

    state: NoticeState
    revision: int  # as read
    due: datetime | None  # when time alone gives another notification
    notifications: Sequence[Notification]
    endpoints: Iterable[str]  # that are to get them


@dataclass(frozen=True, slots=True)
class Backlog:
    """A lane: a holder's way to an endpoint, while something waits there."""

    holder: str
    endpoint_id: str
    arrived: int  # number of the newest notification that has arrived
    newest: int  # number of the newest notification
    due_at: str  # a stamp, when it is tried
    failures: int = 0  # in a row
    failing_since: str = ""  # a stamp, the first of them


class OutboxConflict(Exception):
    """Somebody else has written the holder's state since it was read."""


class OutboxStore:
    """Writes notifications, with the state of their holder and the lanes in which they wait."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def get(self, holder: str) -> tuple[NoticeState, int]:
        """Return a holder's state, and its revision; strongly consistent."""
        found = get_all(self._dynamodb, self._table, [{"holder": holder, "place": STATE}])
        return state_from(holder, found[0] if found else None)

    def due(self, now: datetime) -> Iterator[str]:
        """Yield the users of whom time alone gives a notification, by when it was due in each shard."""
        for number in range(STATE_SHARDS):
            for each in query_all(
                self._dynamodb,
                TableName=self._table,
                IndexName="ByDue",
                KeyConditionExpression="due_shard = :shard AND due_at <= :now",
                ExpressionAttributeValues=encode_item({":shard": f"{STATE}#{number}", ":now": stamp(now)}),
            ):
                yield each["holder"]["S"]

    def put(self, holder: str, write: OutboxWrite, now: datetime) -> None:
        """Write a holder's state and notifications; raises OutboxConflict, and what DynamoDB raises."""
        actions = [self._state_action(holder, write, now)]
        if write.notifications:
            actions.append({"Put": {"TableName": self._table, "Item": log_item(write.notifications, now)}})
            first, last = write.notifications[0].number, write.notifications[-1].number
            actions += [self.lane(holder, each, first, last, now) for each in write.endpoints]
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

    def lane(self, holder: str, endpoint_id: str, first: int, last: int, now: datetime) -> dict[str, Any]:
        """Return a transaction's action: notifications wait in a lane, which may have others that wait."""
        names = ("due_at", "due_shard", "arrived")
        begun = ", ".join(f"{each} = if_not_exists({each}, :{each})" for each in names)
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
                "UpdateExpression": f"SET {begun}, newest = :newest, expires_at = :until",
                "ExpressionAttributeValues": encode_item(values),
            }
        }


class BacklogStore:
    """Lanes in which something waits: what has arrived, when it is tried again, and who delivers it."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def due(self, endpoint_id: str, share: int, now: datetime, limit: int = BACKLOGS_READ) -> list[Backlog]:
        """Return lanes of a share of an endpoint that are due, the one that waits longest first."""
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="ByDue",
            KeyConditionExpression="due_shard = :shard AND due_at <= :now",
            ExpressionAttributeValues=encode_item(
                {":shard": backlog_shard(endpoint_id, share), ":now": stamp(now)}
            ),
            Limit=limit,
        )
        users = [each["holder"]["S"] for each in answer["Items"]]
        found = (self.get(each, endpoint_id) for each in users)
        return [each for each in found if each and each.due_at <= stamp(now)]

    def get(self, holder: str, endpoint_id: str) -> Backlog | None:
        """Return a lane in which something waits; strongly consistent."""
        answer = self._dynamodb.get_item(
            TableName=self._table, Key=self._key(holder, endpoint_id), ConsistentRead=True
        )
        return backlog_from(answer["Item"]) if "Item" in answer else None

    def take(self, lane: Backlog, now: datetime) -> Backlog | None:
        """Take a lane for three minutes; None: somebody else has it."""
        return self.wait(lane, now + LEASE)

    def wait(self, lane: Backlog, until: datetime, **changes: Any) -> Backlog | None:
        """Change a lane that is still as it was read, and set when it is due; None: somebody has changed it.

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
                ExpressionAttributeValues=encode_item(values),
                ReturnValues="ALL_NEW",
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return None
        return backlog_from(answer["Attributes"])

    def finish(self, lane: Backlog, arrived: int, now: datetime) -> None:
        """Give back a lane that was taken; it ends if nothing has come in the meantime."""
        try:
            self._dynamodb.delete_item(
                TableName=self._table,
                Key=self._key(lane.holder, lane.endpoint_id),
                ConditionExpression="due_at = :mine AND newest <= :arrived",
                ExpressionAttributeValues=encode_item({":mine": lane.due_at, ":arrived": arrived}),
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            self.wait(lane, now, arrived=arrived, failures=0, failing_since="")

    def log(self, holder: str, after: int) -> Iterator[Notification]:
        """Yield a user's notifications after a number, in order; strongly consistent."""
        for each in query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="holder = :user AND place BETWEEN :after AND :end",
            ExpressionAttributeValues=encode_item(
                {":user": holder, ":after": log_place(after + 1), ":end": log_place(10**15 - 1)}
            ),
            ConsistentRead=True,
            Limit=LOG_READ,
        ):
            yield from (one for one in log_from(each) if one.number > after)

    def go_back(self, holder: str, endpoint_id: str, number: int, newest: int, now: datetime) -> None:
        """Let a lane begin again with a notification that has been tried. Its worker loses the lane."""
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
            return  # it waits already

    @staticmethod
    def _key(holder: str, endpoint_id: str) -> dict[str, Any]:
        return encode_item({"holder": holder, "place": BACKLOG + endpoint_id})


class WorkerLeases:
    """Leases: a share of an endpoint has one worker at most, and none while it is not to be asked."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def begin(self, endpoint_id: str, share: int, now: datetime) -> int | None:
        """Take the lease; returns how many rounds failed in a row. None: another has it, or nobody is to."""
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
    """Messages that test an endpoint: of no user, and on the way that all notifications take."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def put(self, endpoint: Endpoint, now: datetime) -> Notification:
        """Let a test message wait for an endpoint; returns it."""
        number = int(now.timestamp() * 1_000)
        notice = Notice(NoticeType.TEST, {"endpoint_id": endpoint.endpoint_id})
        made = Notification(TEST_HOLDER + endpoint.endpoint_id, number, stamp(now), notice)
        store = OutboxStore(self._dynamodb, self._table)
        self._dynamodb.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": self._table, "Item": log_item([made], now)}},
                store.lane(made.holder, endpoint.endpoint_id, number, number, now),
            ]
        )
        return made


class DeliveryInvoker:
    """Wakes the function that delivers. If that fails or comes too early, the next sweep does it."""

    def __init__(self, functions: Callable[[], Any], name: str) -> None:
        """functions: returns the client of Lambda. name: of the function, which is not waited for."""
        self._functions, self._name = functions, name

    def wake(self, shares: Iterable[EndpointShard]) -> None:
        """Let what waits in shares of endpoints be delivered."""
        for endpoint_id, share in sorted(set(shares)):
            payload = json.dumps({"endpoint_id": endpoint_id, "share": share})
            try:
                self._functions().invoke(FunctionName=self._name, InvocationType="Event", Payload=payload)
            except Unavailable:
                logger.warning("not woken", extra={"endpoint_id": endpoint_id}, exc_info=True)


def endpoint_shard(endpoint_id: str, holder: str) -> EndpointShard:
    """Return the share of an endpoint's lanes that a user's is in."""
    return endpoint_id, shard_of(holder, BACKLOG_SHARDS)


def shard_of(name: str, shards: int) -> int:
    """Return the shard of a holder, for always the same."""
    return zlib.crc32(name.encode()) % shards


def state_shard(holder: str) -> str:
    """Return the partition of the index ByDue for what time alone will change of a user."""
    return f"{STATE}#{shard_of(holder, STATE_SHARDS)}"


def backlog_shard(endpoint_id: str, number: int) -> str:
    """Return the partition of the index ByDue for a share of an endpoint's lanes."""
    return f"{BACKLOG}{endpoint_id}#{number}"


def state_item(holder: str, write: OutboxWrite, now: datetime) -> Item:
    """Return a holder's state as an item. That of a question, which is notified once, expires."""
    state, due = write.state, write.due
    content = _user_content(state) if isinstance(state, UserNoticeState) else {"shown": state.shown}
    until = int((now + KEPT).timestamp()) if holder.startswith(QUESTION) else None
    made = {
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
    return encode_item(made)


def _user_content(state: UserNoticeState) -> dict[str, Any]:
    lost = state.lost and [state.lost.last.isoformat(), state.lost.length]
    holds = [[e.hold_id, e.points, e.reward_id, e.until, e.is_over] for e in state.holds]
    content: dict[str, Any] = {"shown": state.shown, "lost": lost, "warned": state.warned, "holds": holds}
    content |= {"redeemed": state.redeemed, "changes_at": state.changes_at}
    content |= {"achievements": state.achievements, "asked": state.asked}
    return content | {"book": state.book, "looked_at": state.looked_at}


def state_from(holder: str, stored: Item | None) -> tuple[NoticeState, int]:
    """Return the state in an item, and its revision; an empty state and 0 for no item."""
    if stored is None:
        return (UserNoticeState() if is_user(holder) else ItemNoticeState()), 0
    found = decode_item(stored)
    content = json.loads(found["content"])
    if not is_user(holder):
        thing = ItemNoticeState(found["version"], found["number"], found["as_of"], content["shown"])
        return thing, found["revision"]
    lost = content["lost"] and LostStreak(date.fromisoformat(content["lost"][0]), content["lost"][1])
    holds = tuple(HoldState(*each) for each in content["holds"])
    state = UserNoticeState(
        found["version"],
        found["number"],
        found["as_of"],
        content["shown"],
        lost,
        content["warned"],
        holds,
        content["redeemed"],
        content["changes_at"],
        content.get("achievements", {}),
        content.get("asked"),
        content.get("book", 0),
        content.get("looked_at", ""),
    )
    return state, found["revision"]


def log_place(number: int) -> str:
    """Return the place of the notifications up to a number."""
    return f"{LOG}{number:015}"


def log_item(notifications: Sequence[Notification], now: datetime) -> Item:
    """Return the notifications of one change as an item; at least one."""
    last = notifications[-1]
    content = [[each.number, each.at, each.notice.type.value, each.notice.data] for each in notifications]
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode())
    until = int((now + KEPT).timestamp())
    made = encode_item({"holder": last.holder, "place": log_place(last.number), "expires_at": until})
    return {**made, "packed": {"B": packed}}


def log_from(stored: Item) -> list[Notification]:
    """Read the notifications of one change."""
    user: str = stored["holder"]["S"]
    content: list[Any] = json.loads(zlib.decompress(stored["packed"]["B"]))
    return [
        Notification(user, number, at, Notice(NoticeType(kind), data)) for number, at, kind, data in content
    ]


def backlog_from(stored: Item) -> Backlog:
    """Read a lane."""
    found = decode_item(stored)
    return Backlog(
        found["holder"],
        found["place"].removeprefix(BACKLOG),
        found["arrived"],
        found["newest"],
        found["due_at"],
        found.get("failures", 0),
        found.get("failing_since", ""),
    )
