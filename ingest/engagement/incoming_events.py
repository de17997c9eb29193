"""Turns a body that was sent into the event that is stored.

It fixes the user, the activity date (rule 1) and the points (rule 5), and refuses what is too late (rule 3).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from ingest.web.caller import ADMIN, PRODUCERS, Caller
from ingest.web.validate import first_problem
from rules.book.book import Books, Declarer, Terms, Version, terms_of
from rules.days import Moment, UnknownZone, date_of, parse_moment, stamp
from rules.engagement.events import (
    RIGHT,
    DeviceClock,
    Event,
    InputRefused,
    check_age,
    corrected,
    event_id,
    is_late,
    measures_of,
)
from rules.engagement.offline import NO_PROOF, Proof
from rules.zone_names import zone_named

PROPERTIES_BYTES_MAX = 65_535  # what a column of Redshift takes
UNJUDGED = Terms(0, 0, None, keeps_streak=True, declared_by=Declarer.ANYBODY)


class RefusedNow(InputRefused):
    """The event is refused by its time or the rules of now. If it was accepted before, it still is.

    event: what its sender says. What the rules said of it is in the claim of its key, if there is one.
    """

    def __init__(self, refused: InputRefused, event: Event) -> None:
        super().__init__(refused.code, refused.field, refused.reason)
        self.event = event


@dataclass(frozen=True, slots=True)
class Door:
    """What the events of one request have in common.

    zones: user id -> the zone that the user has set. source: for an event that names none. books: all
    versions of the rules that are known. clock: of the device that sends. proof: that it was offline.
    """

    caller: Caller
    zones: Mapping[str, str | None]
    now: datetime
    source: str
    books: Books
    clock: DeviceClock = RIGHT
    proof: Proof = NO_PROOF


def event_of(body: Mapping[str, Any], door: Door) -> Event:
    """Return the event of a body that the schema accepts; raises InputRefused, and RefusedNow."""
    occurred_at, user = occurred_at_of(body, door.clock), _user_of(body, door.caller)
    moment = parse_moment(occurred_at)
    terms, refusal = _judged(body, moment, door)
    named = _zone_of(body, moment)
    day, zone = _date_of(named, moment, door.zones.get(user))
    event = Event(
        user_id=user,
        event_id=event_id(user, body["idempotency_key"], moment),
        idempotency_key=body["idempotency_key"],
        event_type=body["event_type"],
        occurred_at=occurred_at,
        activity_date=day,
        zone=zone,
        points_awarded=terms.points,
        source=body.get("source") or door.source,
        created_at=stamp(door.now),
        rules_version=terms.version,
        cap=terms.cap,
        is_passive=not terms.keeps_streak,
        expiry=terms.expiry,
        by_server=terms.declared_by is Declarer.SERVER,
        measures=measures_of(body.get("properties"), terms.measured),
        device_time=body["occurred_at"] if door.clock.skew else None,
        timezone=named or moment.offset,
        properties=_properties(body),
    )
    try:
        offline_since = _offline_since(moment, door, terms)
    except InputRefused as refused:
        raise RefusedNow(refusal or refused, event) from None
    if refusal:
        raise RefusedNow(refusal, event)
    return replace(event, offline_since=offline_since) if offline_since else event


def _offline_since(moment: Moment, door: Door, terms: Terms) -> str | None:
    """Return since when the device of a late event was offline, None for one that is not late.

    Raises InputRefused for an event that is too old, or in the future.
    """
    may_backfill = door.caller.is_server
    check_age(moment, door.now, may_backfill or door.proof != NO_PROOF)
    is_proof_needed = is_late(moment.utc, door.now) and not may_backfill
    return door.proof.check(moment.utc, terms.offline) if is_proof_needed else None


def _judged(body: Mapping[str, Any], moment: Moment, door: Door) -> tuple[Terms, InputRefused | None]:
    """Return what judges an event, and why it is refused: its type, its properties, or who sends it."""
    event_type = body["event_type"]
    refusal = None
    for version in door.books.judging(event_type, moment.utc, door.now):
        broken = _broken_contract(version, body)
        if broken is None:
            terms = terms_of(version, event_type, moment.utc)
            return terms, _forbidden(event_type, terms, door.caller)
        refusal = refusal or broken
    reason = f"{event_type} is in no book of rules up to version {door.books.newest.number}"
    return UNJUDGED, refusal or InputRefused("unknown_type", "event_type", reason)


def _forbidden(event_type: str, terms: Terms, caller: Caller) -> InputRefused | None:
    if terms.declared_by is not Declarer.SERVER or caller.is_server:
        return None
    reason = f"{event_type} is for servers to declare: needs {PRODUCERS} or {ADMIN}"
    return InputRefused("forbidden", "event_type", reason)


def _broken_contract(version: Version, body: Mapping[str, Any]) -> InputRefused | None:
    """Return how an event's properties break its type's data contract, if they do."""
    contract = version.book.event_types[body["event_type"]].properties
    problem = (
        first_problem({"type": "object", **contract}, body.get("properties") or {}) if contract else None
    )
    if problem is None:
        return None
    field = "properties" if problem[0] == "body" else f"properties.{problem[0]}"
    reason = f"{problem[1]} (data contract of {body['event_type']}, version {version.number})"
    return InputRefused("contract_broken", field, reason)


def _user_of(body: Mapping[str, Any], caller: Caller) -> str:
    """Return whose event it is; raises InputRefused if the caller may not send it."""
    user = str(body.get("user_id") or caller.user_id)
    if not user:
        raise InputRefused("invalid_field", "user_id", "is missing")
    if user != caller.user_id and not caller.is_server:
        raise InputRefused("forbidden", "user_id", f"is not the caller's own: needs {PRODUCERS} or {ADMIN}")
    return user


def occurred_at_of(body: Mapping[str, Any], clock: DeviceClock) -> str:
    """Return when the event happened, by a right clock."""
    try:
        parse_moment(said := str(body["occurred_at"]))
        return corrected(said, clock.skew) if clock.skew else said
    except ValueError as error:
        raise InputRefused("invalid_field", "occurred_at", str(error)) from None


def time_problems(
    body: Any, clock: DeviceClock, problems: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return what is wrong with the time of a body that has other problems: the schema takes any text."""
    if not isinstance(body, dict) or not isinstance(body.get("occurred_at"), str):
        return []
    if any(field == "occurred_at" for field, _ in problems):
        return []
    try:
        occurred_at_of(body, clock)
    except InputRefused as refused:
        return [(refused.field, refused.reason)]
    return []


def _zone_of(body: Mapping[str, Any], moment: Moment) -> str | None:
    """Return the zone that an event names; None if it names none that is known, and has an offset instead.

    Raises InputRefused where nothing says the offset: devices send names that only their vendors know.
    """
    said = (body.get("timezone") or "").strip()
    try:
        return zone_named(said) if said else None
    except UnknownZone as error:
        if moment.offset is None:
            reason = f"{error}, and occurred_at has no offset in its place"
            raise InputRefused("invalid_field", "timezone", reason) from None
        return None


def _date_of(named: str | None, moment: Moment, zone_stored: str | None) -> tuple[date, str]:
    try:
        return date_of(moment, named, zone_stored)
    except (OverflowError, ValueError):
        raise InputRefused("invalid_field", "occurred_at", "has no date in this zone") from None


def _properties(body: Mapping[str, Any]) -> str | None:
    if not body.get("properties"):
        return None
    text = json.dumps(body["properties"], sort_keys=True, separators=(",", ":"))
    if len(text) > PROPERTIES_BYTES_MAX:
        raise InputRefused("invalid_field", "properties", f"is over {PROPERTIES_BYTES_MAX} bytes as JSON")
    return text
