"""The table Notifications: its keys and items, and the store that writes them.

| holder | place | content |
|---|---|---|
| ann | state | the state that Ann's notifications have reported; when the next one is due by time alone |
| lead/{id}, question/{id} | state | the same for a lead, or another thing, whose item ends after a month |
| ann | log/000000000000012 | the notifications of one change, the last of which has number 12 |
| ann | to/{endpoint} | Ann's lane to an endpoint: the newest delivered number, and when it is tried next |
| bob | named/000000000000012/ann | the notifications of Ann up to number 12 name Bob: for his erasure alone |
| worker/{endpoint}/2 | worker | until when a share of an endpoint has a worker, or a pause |

One transaction of OutboxStore writes the notifications of a change, their holder's state after them, and the
lanes in which they wait. LaneStore and WorkerLeases are for the function that delivers them.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import get_all, if_unchanged, query_all, transact
from rules.days import key_of_stamp, stamp
from rules.outgoing.derivation import HoldState, ItemNoticeState, LostStreak, UserNoticeState
from rules.outgoing.notices import (
    BOARD,
    FRIEND,
    KEPT,
    KINDS_OF_PARTS,
    Endpoint,
    Notice,
    NoticeType,
    Notification,
    is_user,
)
from rules.user_ids import user_holder

NoticeState = UserNoticeState | ItemNoticeState
STATE_SHARDS = 8  # the users for whom a notification is due by time alone have this many partitions of ByDue
# What holders that are notified once begin with
ONCE = (BOARD, *(kind.holder for kind in KINDS_OF_PARTS.values() if kind.is_last))
TEST_HOLDER = "test/"  # with an endpoint's id: the holder of its test messages
STATE = "state"  # the sort key of the state that a holder's notifications have led to
# Prefixes of the sort keys of notifications, of lanes, and of where others' notifications name the holder
LOG, LANE, NAMED = "log/", "to/", "named/"
LANE_SHARDS = 4  # the lanes of an endpoint have this many partitions in the index ByDue
# Longer than a function may run. So after this time the lane of a worker that died is due again.
LEASE = timedelta(minutes=3)
NUMBER_MAX = 10**15 - 1  # of notifications: their sort keys have 15 digits
EndpointShare = tuple[str, int]  # an endpoint's id, and the number of a share of its lanes

logger = Logger(service="waking")


def endpoint_share(endpoint_id: str, holder: str) -> EndpointShare:
    """Return the share of an endpoint's lanes that a holder's lane is in."""
    return endpoint_id, shard_of(holder, LANE_SHARDS)


def shard_of(name: str, shards: int) -> int:
    """Return the number of the shard that a name is in, from 0. It never changes."""
    return zlib.crc32(name.encode()) % shards


def lane_shard(endpoint_id: str, number: int) -> str:
    """Return the partition of the index ByDue for a share of an endpoint's lanes."""
    return f"{LANE}{endpoint_id}#{number}"


def log_key(number: int) -> str:
    """Return the sort key of the notifications of one change, the last of which has this number."""
    return f"{LOG}{number:015}"


def log_item(notifications: Sequence[Notification], now: datetime) -> Item:
    """Return the notifications of one change as an item; at least one."""
    last = notifications[-1]
    content = [
        [notification.number, notification.at, str(notification.notice.type), notification.notice.data]
        for notification in notifications
    ]
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode())
    until = int((now + KEPT).timestamp())
    fields = encode_item({"holder": last.holder, "place": log_key(last.number), "expires_at": until})
    return {**fields, "packed": {"B": packed}}


def log_from(stored: Item) -> list[Notification]:
    """Read what log_item wrote: the notifications of one change."""
    holder: str = stored["holder"]["S"]
    content: list[Any] = json.loads(zlib.decompress(stored["packed"]["B"]))
    return [
        Notification(holder, number, at, Notice(notice_type, data))
        for number, at, notice_type, data in content
    ]


def name_items(notifications: Sequence[Notification], now: datetime) -> Iterator[Item]:
    """Yield an item for each other user whom the notifications of a change name."""
    until = int((now + KEPT).timestamp())
    for key in _name_keys(notifications):
        yield encode_item({**key, "expires_at": until})


def _name_keys(notifications: Sequence[Notification]) -> Iterator[dict[str, str]]:
    last = notifications[-1]
    of_friends = (each.notice.data for each in notifications if FRIEND in each.notice.data)
    users = {str(data[FRIEND]) for data in of_friends}
    for user in sorted(users):
        yield {"holder": user_holder(user), "place": f"{NAMED}{last.number:015}/{last.holder}"}


def keys_beside(stored: Iterable[Item]) -> Iterator[Item]:
    """Yield the keys of others' items that belong to a user's: names in notifications, and where they are."""
    for item in stored:
        place = item["place"]["S"]
        if place.startswith(NAMED):
            number, _, holder = place.removeprefix(NAMED).partition("/")
            yield encode_item({"holder": holder, "place": LOG + number})
        elif place.startswith(LOG):
            yield from map(encode_item, _name_keys(log_from(item)))


@dataclass(frozen=True, slots=True)
class OutboxWrite:
    """What a change leads to: a holder's new state, and the notifications of the change."""

    state: NoticeState
    revision: int  # of the state that was read
    due: datetime | None  # when another notification is due by time alone; None: never
    notifications: Sequence[Notification]
    endpoints: Iterable[str]  # the ids of the endpoints that get the notifications


class OutboxConflict(Exception):
    """Another process has written the holder's state since it was read."""


class OutboxStore:
    """Writes notifications of all holders, and reads the holders' states."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def get(self, holder: str) -> tuple[NoticeState, int]:
        """Return a holder's state and its revision, strongly consistent."""
        items = get_all(self._dynamodb, self._table, [{"holder": holder, "place": STATE}])
        return state_from(holder, items[0] if items else None)

    def due(self, now: datetime) -> Iterator[str]:
        """Yield the users for whom a notification is due by time alone; in each shard the earliest first."""
        for number in range(STATE_SHARDS):
            for item in query_all(
                self._dynamodb,
                TableName=self._table,
                IndexName="ByDue",
                KeyConditionExpression="due_shard = :shard AND due_at <= :now",
                ExpressionAttributeValues=encode_item(
                    {":shard": f"{STATE}#{number}", ":now": key_of_stamp(stamp(now))}
                ),
            ):
                yield item["holder"]["S"]

    def put(self, holder: str, write: OutboxWrite, now: datetime) -> None:
        """Write a holder's state and notifications; raises OutboxConflict, and what DynamoDB raises."""
        actions = [self._state_action(holder, write, now)]
        if write.notifications:
            actions.append({"Put": {"TableName": self._table, "Item": log_item(write.notifications, now)}})
            first, last = write.notifications[0].number, write.notifications[-1].number
            actions += [
                {"Put": {"TableName": self._table, "Item": item}}
                for item in name_items(write.notifications, now)
            ]
            actions += [self._lane_action(holder, endpoint, first, last, now) for endpoint in write.endpoints]
        if transact(self._dynamodb, actions):
            raise OutboxConflict(holder)

    def put_test(self, endpoint: Endpoint, now: datetime) -> Notification:
        """Add a test message to the endpoint's lane; returns it.

        It has a holder of its own, so that it waits for no other message. It is delivered like all others.
        """
        number = int(now.timestamp() * 1_000)
        notice = Notice(NoticeType.TEST, {"endpoint_id": endpoint.endpoint_id})
        notification = Notification(TEST_HOLDER + endpoint.endpoint_id, number, stamp(now), notice)
        self._dynamodb.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": self._table, "Item": log_item([notification], now)}},
                self._lane_action(notification.holder, endpoint.endpoint_id, number, number, now),
            ]
        )
        return notification

    def _state_action(self, holder: str, write: OutboxWrite, now: datetime) -> dict[str, Any]:
        condition = if_unchanged("holder", "revision", write.revision or None)
        return {"Put": {"TableName": self._table, "Item": state_item(holder, write, now), **condition}}

    def _lane_action(
        self, holder: str, endpoint_id: str, first: int, last: int, now: datetime
    ) -> dict[str, Any]:
        """Return a transaction's action that adds the notifications from `first` to `last` to a lane.

        The lane is due at once. But if other notifications wait in it, its due time stays, because the lane
        may have a pause after a failure.
        """
        names = ("due_at", "due_shard", "arrived")
        new_lane = ", ".join(f"{name} = if_not_exists({name}, :{name})" for name in names)
        values = {
            ":due_at": key_of_stamp(stamp(now)),
            ":due_shard": lane_shard(endpoint_id, shard_of(holder, LANE_SHARDS)),
            ":arrived": first - 1,
            ":newest": last,
            ":until": int((now + KEPT).timestamp()),
        }
        return {
            "Update": {
                "TableName": self._table,
                "Key": encode_item({"holder": holder, "place": LANE + endpoint_id}),
                "UpdateExpression": f"SET {new_lane}, newest = :newest, expires_at = :until",
                "ExpressionAttributeValues": encode_item(values),
            }
        }


def state_item(holder: str, write: OutboxWrite, now: datetime) -> Item:
    """Return a holder's state as an item. That of a part's thing expires, because it is notified once."""
    state, due = write.state, write.due
    content = _user_content(state) if isinstance(state, UserNoticeState) else {"shown": state.shown}
    until = int((now + KEPT).timestamp()) if holder.startswith(ONCE) else None
    fields = {
        "holder": holder,
        "place": STATE,
        "revision": write.revision + 1,
        "version": state.version,
        "number": state.number,
        "as_of": state.as_of,
        "content": json.dumps(content, separators=(",", ":")),
        "due_at": due and key_of_stamp(stamp(due)),
        "due_shard": f"{STATE}#{shard_of(holder, STATE_SHARDS)}" if due else None,
        "expires_at": until,
    }
    return encode_item(fields)


def _user_content(state: UserNoticeState) -> dict[str, Any]:
    return {
        "shown": state.shown,
        "lost": state.lost and [state.lost.last.isoformat(), state.lost.length],
        "warned": state.warned_lapse,
        "holds": [
            [hold.hold_id, hold.points, hold.reward_id, hold.until, hold.is_over] for hold in state.holds
        ],
        "redeemed": state.newest_redemption,
        **({"tie": state.newest_tie} if state.newest_tie else {}),
        "changes_at": state.changes_at,
        "achievements": state.achievements,
        "asked": None if state.seen_forms is None else sorted(state.seen_forms),
        "book": state.book,
        "looked_at": state.looked_at,
        "league": state.league_week,
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
        warned_lapse=content["warned"],
        holds=tuple(HoldState(*values) for values in content["holds"]),
        newest_redemption=content["redeemed"],
        newest_tie=content.get("tie", ""),
        changes_at=content["changes_at"],
        achievements=content.get("achievements", {}),
        seen_forms=frozenset(asked) if (asked := content.get("asked")) is not None else None,
        book=content.get("book", 0),
        looked_at=content.get("looked_at", ""),
        league_week=content.get("league", ""),
    )
    return state, fields["revision"]


class DeliveryInvoker:
    """Wakes the function that delivers. If a call fails, the next sweep delivers."""

    def __init__(self, functions: Callable[[], Any], name: str) -> None:
        """functions: returns the client of Lambda. name: the function's."""
        self._functions, self._name = functions, name

    def wake(self, shares: Iterable[EndpointShare]) -> None:
        """Let the lanes of these shares of endpoints be delivered now, without waiting for that."""
        for endpoint_id, share in sorted(set(shares)):
            payload = json.dumps({"endpoint_id": endpoint_id, "share": share})
            try:
                self._functions().invoke(FunctionName=self._name, InvocationType="Event", Payload=payload)
            except Unavailable:
                logger.warning("not woken", extra={"endpoint_id": endpoint_id}, exc_info=True)
