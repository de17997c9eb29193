"""An engagement event as it is stored: ingest writes this shape, and processors read it.

In this order: what an event's measures add to its day (docs/rules.md, rule 14); the event, its id and its
age; its table attributes; positions in the table's stream; clocks of devices (rule 16).
"""

import hashlib
import json
import re
import unicodedata
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import reduce
from typing import Any

from rules.book.measures import sums_of
from rules.book.point_rules import Cap, lot_date
from rules.days import Moment, key_of_stamp, parse_moment, sent_zone, stamp, stamp_of_key, unstamp

FUTURE_MAX = timedelta(minutes=5)
LATE_MAX = timedelta(hours=72)
# The source of an imported event, unless its file names another.
IMPORTED = "import"
RETENTION = timedelta(days=90)
FRACTION = re.compile(r"\.(\d*?)0*(?=\D|$)")  # of a second, without the zeros at its end
NAMESPACE = uuid.UUID("6a2b54b8-92f6-5c51-9d3e-0c6a6d0f7f8e")  # of the UUIDs in event ids
# A request takes seconds, and on a bad network a minute. Such a delay is no fault of the clock.
STEADY = timedelta(minutes=2)
# The source of an event that an app sends over HTTP and that names no other: it has a device's clock.
APPS = "api"
UTC_OFFSET = "+00:00"
# Fields of an event that its table and the lake store without a change.
REQUIRED_TEXTS = (
    *("user_id", "event_id", "idempotency_key", "event_type"),
    *("occurred_at", "zone", "source", "created_at"),
)
NUMBERS = ("points_awarded", "rules_version")
OPTIONAL = ("expiry", "measures", "device_time", "offline_since", "timezone", "properties")


def day_key(event_type: str, summed: str | None = None) -> str:
    """Return the key of a type's number of events, or of the sum of a property, in a day's measures."""
    return f"{event_type} {summed}" if summed else event_type


def amounts(event_type: str, measures: str) -> dict[str, int]:
    """Return the amounts that an event adds to its day, by day_key: `{"READ": 1, "READ minutes": 30500}`.

    Raises ValueError for a text that measures_of did not write.
    """
    sums = {day_key(event_type, name): amount for name, amount in sums_of(measures).items()}
    return {day_key(event_type): 1, **sums}


def with_measures(
    day: Mapping[str, int], event_type: str, measures: str | None, times: int = 1
) -> Mapping[str, int]:
    """Return a day's measures with those of one more event. times: -1 for one that is reversed."""
    if measures is None:
        return day
    added = amounts(event_type, measures)
    return {**day, **{key: day.get(key, 0) + times * amount for key, amount in added.items()}}


class InputRefused(ValueError):
    """The service refuses an input: a code, the field at fault, and a reason for the sender."""

    def __init__(self, code: str, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.code, self.field, self.reason = code, field, reason


class MalformedItem(ValueError):
    """A stored item lacks an attribute, or has a bad value in one."""


@dataclass(frozen=True, slots=True)
class Event:
    """One stored event.

    A stored event never changes. Its ledger entry has its effect: the date that it counts for (rule 8), and
    the points that the cap allowed (rule 5).
    """

    user_id: str
    # `2026-03-02T23:58:00Z#ac815fe5-...`: when the event occurred, in UTC, as a sort key has it
    # (key_of_stamp: a fraction comes behind the Z), and a uuid made of user and idempotency key
    event_id: str
    idempotency_key: str
    event_type: str
    occurred_at: str
    activity_date: date  # the date that it claims; after assign_dates, the date that it earns
    zone: str  # the zone that this date was read in
    points_awarded: int  # by the version of the book that judges it, before the cap
    source: str
    created_at: str
    rules_version: int = 1  # the version of the book that judges it
    cap: Cap | None = None  # by that version
    is_passive: bool = False  # whether it makes no date an active one
    expiry: str | None = None  # the rule by which its points expire (rule 11)
    by_server: bool = False  # whether only a server may declare it
    measures: str | None = None  # how much the book counts and sums of it (rules/book/measures.py)
    device_time: str | None = None  # when it occurred by its device's clock, if that was wrong (rule 16)
    # A stamp: since when the device was offline, if the event is late and a receipt proves it (rule 16)
    offline_since: str | None = None
    timezone: str | None = None  # the zone that the event itself named, if any
    properties: str | None = None
    stream_position: str = ""  # in its table's stream (newer_position), if read there; it is not stored


def event_id(user_id: str, idempotency_key: str, occurred: Moment) -> str:
    """Return an event's id: every attempt to store the event computes the same one."""
    unique = uuid.uuid5(NAMESPACE, f"{user_id}\x00{idempotency_key}")
    return f"{key_of_stamp(stamp(occurred.utc))}#{unique}"


def stamp_of(event_id: str) -> str:
    """Return when an event occurred, which its id begins with, as a stamp."""
    return stamp_of_key(event_id.partition("#")[0])


def instant_of(event_id: str) -> datetime:
    """Return when an event occurred, which its id begins with."""
    return unstamp(stamp_of(event_id))


def body_hash(body: Mapping[str, Any]) -> str:
    """Return a digest that tells whether two bodies under one idempotency key are the same (rule 4).

    The user and the key are left out: they are the scope. Libraries write the same value differently, and the
    digest is then the same: 1 and 1.0, a letter as one or two code points, a time with zeros as its fraction
    and without.
    """
    sent = {key: value for key, value in body.items() if key not in ("idempotency_key", "user_id")}
    if isinstance(at := sent.get("occurred_at"), str):
        sent["occurred_at"] = FRACTION.sub(lambda match: match[1] and f".{match[1]}", at.upper())
    text = json.dumps(_plain(sent), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {_plain(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def is_late(occurred: datetime, now: datetime) -> bool:
    """Whether an event is so late that it needs a receipt, or a sender who may backfill (rule 3)."""
    return occurred < now - LATE_MAX


def is_old_import(event: Event) -> bool:
    """Whether an event is old and was imported with a history. Nobody is notified of it (rule 20)."""
    return event.source == IMPORTED and is_late(instant_of(event.event_id), unstamp(event.created_at))


def check_age(occurred: Moment, now: datetime, may_backfill: bool) -> None:
    """Raise InputRefused for an event in the future, before 1970, or too late to send (rule 3).

    may_backfill: whether the sender may send events that are more than 72 hours old.
    """
    if occurred.utc > now + FUTURE_MAX:
        raise InputRefused("in_the_future", "occurred_at", "is more than 5 minutes in the future")
    if occurred.utc.year < 1970:
        raise InputRefused("too_old", "occurred_at", "is before 1970")
    if not may_backfill and is_late(occurred.utc, now):
        raise InputRefused(
            "backfill_forbidden",
            "occurred_at",
            "is more than 72 hours ago: needs a receipt, streakline/producers or streakline/admin",
        )


def to_item(event: Event) -> dict[str, Any]:
    """Return the event as table attributes."""
    item = {
        **{name: getattr(event, name) for name in (*REQUIRED_TEXTS, *NUMBERS, *OPTIONAL)},
        "activity_date": event.activity_date.isoformat(),
        "cap": event.cap and event.cap.text,
        "is_passive": event.is_passive or None,
        "by_server": event.by_server or None,
        "ttl": int((unstamp(event.created_at) + RETENTION).timestamp()),
    }
    return {name: value for name, value in item.items() if value is not None}


def from_item(item: Mapping[str, Any], stream_position: str = "") -> Event:
    """Read a stored event; raises MalformedItem, with the attribute and the reason."""
    try:
        plain: dict[str, Any] = {name: text_of(item, name) for name in REQUIRED_TEXTS}
        plain |= {name: count_of(item, name) for name in NUMBERS}
        plain |= {name: item.get(name) for name in OPTIONAL}
        event = Event(
            **plain,
            activity_date=date.fromisoformat(text_of(item, "activity_date")),
            cap=Cap.of(item.get("cap")),
            is_passive=bool(item.get("is_passive")),
            by_server=bool(item.get("by_server")),
            stream_position=stream_position,
        )
        unstamp(event.created_at)
        if event.expiry is not None:
            lot_date(text_of(item, "expiry"), event.activity_date, event.cap)
        if event.measures is not None:
            amounts(event.event_type, text_of(item, "measures"))
    except MalformedItem:
        raise
    except ValueError as error:
        raise MalformedItem(f"the stored event has a bad date, cap, expiry or measure: {error}") from None
    return event


def text_of(item: Mapping[str, Any], name: str) -> str:
    """Return a stored attribute that must be a text; raises MalformedItem, with name and reason."""
    value = item.get(name)
    if not isinstance(value, str) or not value:
        raise MalformedItem(f"{name} is {'missing' if value is None else 'no text'}")
    return value


def count_of(item: Mapping[str, Any], name: str) -> int:
    """Return a stored attribute that must be a whole number from 0; raises MalformedItem."""
    value = item.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise MalformedItem(f"{name} is {'missing' if value is None else 'no whole number from 0'}")
    return value


def newer_position(one: str, other: str) -> str:
    """Return the newer of two positions in a table's stream.

    A position is the stream's label, which is the time when it was made, and a record's sequence number, such
    as `2026-03-01T00:00:00.000/300000000000000499659`. "" is an unknown position, and is older than all.
    """
    return max(one, other, key=_position_key)


NOTHING_APPLIED = "/0"  # a position that is older than all others


def newest_position(positions: Sequence[str]) -> str:
    """Return the newest of some positions; "" if one of them is unknown."""
    return reduce(newer_position, positions) if all(positions) else ""


def is_beyond(position: str, other: str) -> bool:
    """Whether a position is newer than another one of the same stream."""
    label, number = _position_key(position)
    other_label, other_number = _position_key(other)
    return bool(position) and label == other_label and number > other_number


def _position_key(position: str) -> tuple[str, int]:
    label, _, number = position.partition("/")
    return label, int(number or 0)


NO_SKEW = timedelta()  # of a clock that is right


def skew_of(sent_at: Moment, now: datetime) -> timedelta:
    """Return the time to add to a device's times: 0 for a clock that is right within STEADY (rule 16).

    sent_at: when a batch was sent, by the device's clock. now: when it arrived. The difference is taken as
    that of all its events.
    """
    skew = now - sent_at.utc
    return skew if abs(skew) > STEADY else NO_SKEW


def corrected_time(device_time: str, skew: timedelta) -> str:
    """Return a device's time by a right clock, as an RFC 3339 text with the offset of the original.

    Raises ValueError, with the reason.
    """
    moment = parse_moment(device_time)
    try:
        right = (moment.utc + skew).astimezone(sent_zone(moment.offset or UTC_OFFSET))
        return right.isoformat() if moment.offset else right.replace(tzinfo=None).isoformat() + "Z"
    except OverflowError:
        raise ValueError("is not a time that exists by a right clock") from None
