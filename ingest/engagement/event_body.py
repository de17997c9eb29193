"""What the body of an event says: user, activity date and points (docs/rules.md, rules 1, 3 and 5).

The JSON Schema here checks each body, and the OpenAPI document shows it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ingest.web.caller import ADMIN, PRODUCERS, Caller
from ingest.web.json_schema import (
    ANY,
    KEY,
    SHORT,
    TEXT,
    closed_object,
    list_of,
    one_of,
    text,
    text_or_null,
    user_id,
    whole,
)
from ingest.web.validate import first_problem
from rules.book.book import TYPE_NAME, Books, Declarer, Terms, Version, terms_of
from rules.days import Moment, UnknownZone, date_of, parse_moment, stamp
from rules.engagement.events import (
    NO_SKEW,
    Event,
    InputRefused,
    check_age,
    corrected_time,
    event_id,
    is_late,
)
from rules.engagement.offline import OfflineProof
from rules.user_ids import new_user_problem
from rules.zone_names import find_zone

EVENTS_MAX = 100
EVENT = closed_object(
    {
        "idempotency_key": KEY,
        "event_type": text(
            "a type of the book of rules (GET /v1/rules); some only servers may declare:"
            " streakline/producers or streakline/admin",
            pattern=TYPE_NAME,
        ),
        "occurred_at": text(
            "RFC 3339 with Z or an offset; at most 72 hours ago (with a receipt more;"
            " admins, producers: any time from 1970 on), at most 5 minutes ahead",
            maxLength=40,
        ),
        "timezone?": text_or_null(
            "IANA name or offset (-07:00), also as devices spell them (GMT+03:00,"
            " posix/Europe/Berlin); decides the activity date. In place of one that is unknown, the offset"
            " of occurred_at does; without that the event is refused",
            maxLength=256,
        ),
        "source?": text(pattern=SHORT),
        "user_id?": user_id("admins and producers; else the caller's own"),
        "properties?": {
            "type": "object",
            "description": "anything, up to 64 KB as JSON in ASCII: `ü` counts six bytes",
        },
    },
    example={
        "idempotency_key": "3f1c",
        "event_type": "LESSON_COMPLETED",
        "occurred_at": "2026-11-20T23:30:00-05:00",
        "timezone": "America/New_York",
    },
)
EVENTS = closed_object(
    {
        "events": {
            "type": "array",
            "minItems": 1,
            "maxItems": EVENTS_MAX,
            "items": {"$ref": "#/components/schemas/Event"},
            "description": "each is checked by itself: a bad one never spoils its neighbours",
        },
        "sent_at?": text(
            "when the batch is sent, by the clock that `occurred_at` is read from (RFC 3339)."
            " Where that clock is more than two minutes wrong, the times of the events are corrected",
            maxLength=40,
        ),
        "receipt?": text(
            "the time receipt (Streakline-Time-Receipt of an earlier answer) that the device"
            " had when the oldest of these events happened. With it events of more than 72 hours ago count"
            " that waited in a device without a network. The request names the device, as the one that was"
            " answered did (Streakline-Device)",
            maxLength=128,
        ),
    }
)

# The answer to a batch of events.
RESULT: dict[str, Any] = {
    "idempotency_key": text_or_null(),
    "status": one_of(["accepted", "duplicate", "conflict", "rejected"]),
    "event_id?": TEXT,
    "error?": ANY | {"description": "code, message, field; details: all fields, if several are faulty"},
}
COUNTS: dict[str, Any] = {
    "accepted": whole(),
    "duplicates": whole(),
    "rejected": whole("conflicts included"),
}
RESULTS = closed_object({**COUNTS, "results": list_of(closed_object(RESULT))})

PROPERTIES_BYTES_MAX = 65_535  # what a column of Redshift takes
# For an event of a type that no book has: it is refused.
NO_TERMS = Terms(0, 0, None, keeps_streak=True, declared_by=Declarer.ANYBODY)


class RefusedIfNew(InputRefused):
    """The event is refused if it comes for the first time. If it was accepted before, it is a duplicate."""

    def __init__(self, refused: InputRefused, event: Event) -> None:
        super().__init__(refused.code, refused.field, refused.reason)
        self.event = event  # by the rules of now; those that it was accepted by are in the claim of its key


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What the events of one request have in common."""

    caller: Caller
    zones: Mapping[str, str | None]  # user id -> the zone that the user has set
    now: datetime
    source: str  # for an event that names none
    books: Books  # all versions of the rules that are known
    skew: timedelta = NO_SKEW  # of the clock of the device that sends
    proof: OfflineProof | None = None  # of the time that the device was offline; None: there is no receipt


def event_of(body: Mapping[str, Any], request: RequestContext) -> Event:
    """Return the event of a body that the schema accepts; raises InputRefused, and RefusedIfNew.

    It fixes the user, the date that the event claims (rule 1) and its points before the cap (rule 5), and
    refuses what is too late (rule 3). RefusedIfNew has the event all the same: if its key has a claim with
    this body, it was accepted before, and the caller answers "duplicate".
    """
    occurred_at, moment = occurred_at_of(body, request.skew)
    user = _user_of(body, request.caller)
    terms, refusal = _terms_and_refusal(body, moment, request)
    event_zone = _zone_of(body, moment)
    try:
        day, zone = date_of(moment, event_zone, request.zones.get(user), request.books.day_starts)
    except (OverflowError, ValueError):
        raise InputRefused("invalid_field", "occurred_at", "has no date in this zone") from None
    event = Event(
        user_id=user,
        event_id=event_id(user, body["idempotency_key"], moment),
        idempotency_key=body["idempotency_key"],
        event_type=body["event_type"],
        occurred_at=occurred_at,
        activity_date=day,
        zone=zone,
        points_awarded=terms.points,
        source=body.get("source") or request.source,
        created_at=stamp(request.now),
        rules_version=terms.version,
        cap=terms.cap,
        is_passive=not terms.keeps_streak,
        expiry=terms.expiry,
        by_server=terms.declared_by is Declarer.SERVER,
        measures=terms.measures,
        device_time=body["occurred_at"] if request.skew else None,
        timezone=event_zone or moment.offset,
        properties=_properties(body),
    )
    may_backfill, proof = request.caller.is_server, request.proof
    try:
        check_age(moment, request.now, may_backfill or proof is not None)
        if proof and not may_backfill and is_late(moment.utc, request.now):
            event = replace(event, offline_since=proof.check(moment.utc, terms.offline))
    except InputRefused as refused:
        # What is wrong with type, properties or sender is said before what is wrong with the time.
        refusal = refusal or refused
    if refusal:
        raise RefusedIfNew(refusal, event)
    return event


def occurred_at_of(body: Mapping[str, Any], skew: timedelta) -> tuple[str, Moment]:
    """Return when the event happened, by a right clock, as a text and as it is read; raises InputRefused."""
    occurred_at = str(body["occurred_at"])
    try:
        if skew:
            occurred_at = corrected_time(occurred_at, skew)
        return occurred_at, parse_moment(occurred_at)
    except ValueError as error:
        raise InputRefused("invalid_field", "occurred_at", str(error)) from None


def _user_of(body: Mapping[str, Any], caller: Caller) -> str:
    """Return whose event it is; raises InputRefused if the caller may not send it."""
    user = str(body.get("user_id") or caller.user_id)
    if problem := new_user_problem(user):
        raise InputRefused("invalid_field", "user_id", problem)
    if user != caller.user_id and not caller.is_server:
        raise InputRefused("forbidden", "user_id", f"is not the caller's own: needs {PRODUCERS} or {ADMIN}")
    return user


def _terms_and_refusal(
    body: Mapping[str, Any], moment: Moment, request: RequestContext
) -> tuple[Terms, InputRefused | None]:
    """Return what an event is judged by, and why its type, properties or sender are refused, if so.

    A sender may have kept the event while the book changed. So several versions may judge it (Books.judging),
    and the first one does whose contract it keeps.
    """
    event_type = body["event_type"]
    first_refusal = None
    for version in request.books.judging(event_type, moment.utc, request.now):
        refusal = _contract_refusal(version, body)
        if refusal is None:
            terms = terms_of(version, event_type, moment.utc, body.get("properties"))
            if terms.declared_by is not Declarer.SERVER or request.caller.is_server:
                return terms, None
            reason = f"{event_type} is for servers to declare: needs {PRODUCERS} or {ADMIN}"
            return terms, InputRefused("forbidden", "event_type", reason)
        first_refusal = first_refusal or refusal
    reason = f"{event_type} is in no book of rules up to version {request.books.newest.number}"
    return NO_TERMS, first_refusal or InputRefused("unknown_type", "event_type", reason)


def _contract_refusal(version: Version, body: Mapping[str, Any]) -> InputRefused | None:
    """Return how an event's properties break its type's data contract, if they do."""
    contract = version.book.event_types[body["event_type"]].properties
    if not contract:
        return None
    problem = first_problem({"type": "object", **contract}, body.get("properties") or {})
    if problem is None:
        return None
    path, reason = problem
    field = "properties" if path == "body" else f"properties.{path}"
    reason = f"{reason} (data contract of {body['event_type']}, version {version.number})"
    return InputRefused("contract_broken", field, reason)


def _zone_of(body: Mapping[str, Any], moment: Moment) -> str | None:
    """Return the zone that an event names; None if it names none that is known, and has an offset instead.

    Raises InputRefused where nothing says the offset: devices send names that only their vendors know.
    """
    name = (body.get("timezone") or "").strip()
    try:
        return find_zone(name) if name else None
    except UnknownZone as error:
        if moment.offset is None:
            reason = f"{error}, and occurred_at has no offset in its place"
            raise InputRefused("invalid_field", "timezone", reason) from None
        return None


def _properties(body: Mapping[str, Any]) -> str | None:
    if not body.get("properties"):
        return None
    properties = json.dumps(body["properties"], sort_keys=True, separators=(",", ":"))
    if len(properties) > PROPERTIES_BYTES_MAX:  # the text is ASCII: a character is a byte
        raise InputRefused("invalid_field", "properties", f"is over {PROPERTIES_BYTES_MAX} bytes as JSON")
    return properties


def time_problems(body: Any, skew: timedelta, problems: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what is wrong with a body's time, as (field, reason): the schema takes any short text for it.

    problems: what the schema finds wrong with the body. If the time is among that, nothing is added.
    """
    is_text = isinstance(body, dict) and isinstance(body.get("occurred_at"), str)
    if not is_text or any(field == "occurred_at" for field, _ in problems):
        return []
    try:
        occurred_at_of(body, skew)
    except InputRefused as refused:
        return [(refused.field, refused.reason)]
    return []
