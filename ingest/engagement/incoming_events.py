"""Turns a body that was sent into the event that is stored.

It fixes the user, the activity date (rule 1) and the points (rule 5), and refuses what is too late (rule 3).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from ingest.web.caller import ADMIN, PRODUCERS, Caller
from rules.days import Moment, UnknownZone, date_of, parse_moment, stamp
from rules.engagement import points
from rules.engagement.events import Event, InputRefused, check_age, event_id

PROPERTIES_BYTES_MAX = 65_536


class OutOfTime(InputRefused):
    """The event is too late, or in the future. If it was accepted before, it still is."""

    def __init__(self, refused: InputRefused, event: Event) -> None:
        super().__init__(refused.code, refused.field, refused.reason)
        self.event = event


@dataclass(frozen=True, slots=True)
class Door:
    """What the events of one request have in common.

    zones: user id -> the zone that the user has set. source: for an event that names none.
    """

    caller: Caller
    zones: Mapping[str, str | None]
    now: datetime
    source: str
    boosts: Sequence[points.Boost] = ()


def event_of(body: Mapping[str, Any], door: Door) -> Event:
    """Return the event of a body that the schema accepts; raises InputRefused, and OutOfTime for its age."""
    user = _user_of(body, door.caller)
    moment = _moment_of(body)
    day, zone = _date_of(body, moment, door.zones.get(user))
    event = Event(
        user_id=user,
        event_id=event_id(user, body["idempotency_key"], moment),
        idempotency_key=body["idempotency_key"],
        event_type=body["event_type"],
        occurred_at=body["occurred_at"],
        activity_date=day,
        zone=zone,
        points_awarded=points.points_of(body["event_type"], moment.utc, door.boosts),
        source=body.get("source") or door.source,
        created_at=stamp(door.now),
        timezone=body.get("timezone") or moment.offset,
        properties=_properties(body),
    )
    try:
        check_age(moment, door.now, door.caller.is_server)
    except InputRefused as refused:
        raise OutOfTime(refused, event) from None
    return event


def _user_of(body: Mapping[str, Any], caller: Caller) -> str:
    """Return whose event it is; raises InputRefused if the caller may not send it."""
    user = str(body.get("user_id") or caller.user_id)
    if not user:
        raise InputRefused("invalid_field", "user_id", "is missing")
    if user != caller.user_id and not caller.is_server:
        raise InputRefused("forbidden", "user_id", f"is not the caller's own: needs {PRODUCERS} or {ADMIN}")
    if points.is_servers(body["event_type"]) and not caller.is_server:
        reason = f"{body['event_type']} is for servers to declare: needs {PRODUCERS} or {ADMIN}"
        raise InputRefused("forbidden", "event_type", reason)
    return user


def _moment_of(body: Mapping[str, Any]) -> Moment:
    try:
        return parse_moment(body["occurred_at"])
    except ValueError as error:
        raise InputRefused("invalid_field", "occurred_at", str(error)) from None


def _date_of(body: Mapping[str, Any], moment: Moment, zone_stored: str | None) -> tuple[date, str]:
    try:
        return date_of(moment, body.get("timezone"), zone_stored)
    except UnknownZone as error:
        raise InputRefused("invalid_field", "timezone", str(error)) from None
    except (OverflowError, ValueError):
        raise InputRefused("invalid_field", "occurred_at", "has no date in this zone") from None


def _properties(body: Mapping[str, Any]) -> str | None:
    if not body.get("properties"):
        return None
    text = json.dumps(body["properties"], sort_keys=True, separators=(",", ":"))
    if len(text) > PROPERTIES_BYTES_MAX:
        raise InputRefused("invalid_field", "properties", f"is over {PROPERTIES_BYTES_MAX} bytes as JSON")
    return text
