"""The table Notifications: its keys, and the items of notifications.

| holder | place | content |
|---|---|---|
| ann | told | the state that Ann's notifications have reported; when the next one is due by time alone |
| lead/{id}, question/{id} | told | the same for a lead or a question; a question's item ends after a month |
| ann | log/000000000012 | the notifications of one change, the last of which has number 12 |
| ann | to/{endpoint} | Ann's lane to an endpoint: the newest delivered number, and when it is tried next |
| worker/{endpoint}/2 | worker | until when a share of an endpoint has a worker, or a pause |

OutboxStore writes notifications. The function that delivers them has LaneStore, for the lanes, and
WorkerLeases. DeliveryInvoker wakes this function.
"""

import json
import zlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.items import Item, encode_item
from rules.outgoing.notices import KEPT, Notice, NoticeType, Notification

STATE = "told"  # the sort key of a holder's state
LOG, LANE = "log/", "to/"  # prefixes of the sort keys of notifications and of lanes
LANE_SHARDS = 4  # the lanes of an endpoint have this many partitions in the index ByDue
# Longer than a function may run. So after this time the lane of a worker that died is due again.
LEASE = timedelta(minutes=3)
NUMBER_MAX = 10**15 - 1  # of notifications: their sort keys have 15 digits
EndpointShare = tuple[str, int]  # an endpoint's id, and the number of a share of its lanes


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
        [notification.number, notification.at, notification.notice.type.value, notification.notice.data]
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
        Notification(holder, number, at, Notice(NoticeType(notice_type), data))
        for number, at, notice_type, data in content
    ]
