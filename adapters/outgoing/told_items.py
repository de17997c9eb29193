"""What was told, notifications and lanes, as items of the table Notifications, and back.

| holder | place | holds |
|---|---|---|
| ann | told | what her notifications say so far, and when time alone will give another one |
| lead/{id}, question/{id} | told | the same of a lead, and of a question, which ends after a month |
| ann | log/000000000012 | the notifications up to number 12 that one change has led to |
| ann | to/{endpoint} | her lane to an endpoint: what has arrived, and when it is tried again |
| worker/{endpoint}/2 | worker | until when a share of an endpoint is worked for, or left in peace |
"""

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from adapters.platform.items import Item, item, plain
from rules.days import stamp
from rules.outgoing.derivation import LostRun, ToldHold, ToldState, ToldThing
from rules.outgoing.notices import KEPT, QUESTION, Notice, NoticeType, Notification, is_user

Told = ToldState | ToldThing
TOLD, LOG, LANE = "told", "log/", "to/"
TOLD_SHARDS, LANE_SHARDS = 8, 4  # partitions of the index ByDue: of users, and of each endpoint's lanes


@dataclass(frozen=True, slots=True)
class Telling:
    """What is to be written. revision: as read. due: when time alone gives another notification."""

    told: Told
    revision: int
    due: datetime | None
    notifications: Sequence[Notification]
    endpoints: Iterable[str]


@dataclass(frozen=True, slots=True)
class Lane:
    """A holder's way to an endpoint, while something waits.

    arrived, newest: the numbers of the newest notification that has arrived, and of the newest one. due_at: a
    stamp, when it is tried. failures: in a row; failing_since: a stamp, the first of them.
    """

    holder: str
    endpoint_id: str
    arrived: int
    newest: int
    due_at: str
    failures: int = 0
    failing_since: str = ""


def shard_of(name: str, shards: int) -> int:
    """Return the shard of a holder, for always the same."""
    return zlib.crc32(name.encode()) % shards


def told_shard(holder: str) -> str:
    """Return the partition of the index ByDue for what time alone will change of a user."""
    return f"{TOLD}#{shard_of(holder, TOLD_SHARDS)}"


def lane_shard(endpoint_id: str, number: int) -> str:
    """Return the partition of the index ByDue for a share of an endpoint's lanes."""
    return f"{LANE}{endpoint_id}#{number}"


def told_item(holder: str, telling: Telling, now: datetime) -> Item:
    """Return what is told of a holder as an item. A question is told of once, so that may be forgotten."""
    told, due = telling.told, telling.due
    content = _of_user(told) if isinstance(told, ToldState) else {"shown": told.shown}
    until = int((now + KEPT).timestamp()) if holder.startswith(QUESTION) else None
    made = {
        "holder": holder,
        "place": TOLD,
        "revision": telling.revision + 1,
        "version": told.version,
        "number": told.number,
        "as_of": told.as_of,
        "content": json.dumps(content, separators=(",", ":")),
        "due_at": due and stamp(due),
        "due_shard": told_shard(holder) if due else None,
        "expires_at": until,
    }
    return item(made)


def _of_user(told: ToldState) -> dict[str, Any]:
    lost = told.lost and [told.lost.last.isoformat(), told.lost.length]
    holds = [[e.hold_id, e.points, e.reward_id, e.until, e.is_over] for e in told.holds]
    content: dict[str, Any] = {"shown": told.shown, "lost": lost, "warned": told.warned, "holds": holds}
    content |= {"redeemed": told.redeemed, "changes_at": told.changes_at}
    content |= {"achievements": told.achievements, "asked": told.asked}
    return content | {"book": told.book, "looked_at": told.looked_at}


def told_from(holder: str, stored: Item | None) -> tuple[Told, int]:
    """Read what was told, and its revision; nothing and 0 for no item."""
    if stored is None:
        return (ToldState() if is_user(holder) else ToldThing()), 0
    found = plain(stored)
    content = json.loads(found["content"])
    if not is_user(holder):
        thing = ToldThing(found["version"], found["number"], found["as_of"], content["shown"])
        return thing, found["revision"]
    lost = content["lost"] and LostRun(date.fromisoformat(content["lost"][0]), content["lost"][1])
    holds = tuple(ToldHold(*each) for each in content["holds"])
    told = ToldState(
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
    return told, found["revision"]


def log_place(number: int) -> str:
    """Return the place of the notifications up to a number."""
    return f"{LOG}{number:015}"


def log_item(found: Sequence[Notification], now: datetime) -> Item:
    """Return the notifications of one change as an item; at least one."""
    last = found[-1]
    content = [[each.number, each.at, each.notice.type.value, each.notice.data] for each in found]
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode())
    until = int((now + KEPT).timestamp())
    made = item({"holder": last.holder, "place": log_place(last.number), "expires_at": until})
    return {**made, "packed": {"B": packed}}


def log_from(stored: Item) -> list[Notification]:
    """Read the notifications of one change."""
    user: str = stored["holder"]["S"]
    content: list[Any] = json.loads(zlib.decompress(stored["packed"]["B"]))
    return [
        Notification(user, number, at, Notice(NoticeType(kind), data)) for number, at, kind, data in content
    ]


def lane_from(stored: Item) -> Lane:
    """Read a lane."""
    found = plain(stored)
    return Lane(
        found["holder"],
        found["place"].removeprefix(LANE),
        found["arrived"],
        found["newest"],
        found["due_at"],
        found.get("failures", 0),
        found.get("failing_since", ""),
    )
