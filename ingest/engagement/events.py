"""Takes events that were sent over HTTP or Kinesis, and stores each once (rules 1, 3, 4 and 5).

The JSON Schema here checks each body, and the OpenAPI document shows it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from adapters.book import BookStore
from adapters.engagement.account_indexes import ZoneStore
from adapters.engagement.claims import ClaimStore, IdempotencyClaim, claimed_event, derived_fields
from adapters.engagement.event_store import EventStore
from adapters.platform.aws import client
from adapters.platform.fence import fence_writer
from adapters.platform.tables import Unprocessed
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck, tombstones_of
from adapters.settings.event_intake import EventsApiSettings, EventsStreamSettings
from ingest.web.caller import ADMIN, PRODUCERS, Caller
from ingest.web.json_schema import (
    ANY,
    KEY,
    SHORT,
    TEXT,
    USER_ID,
    closed_object,
    list_of,
    one_of,
    text_or_null,
    whole,
)
from ingest.web.validate import body_problems, first_problem
from rules.book.book import TYPE_NAME, Books, Declarer, Terms, Version, terms_of
from rules.days import Moment, UnknownZone, date_of, parse_moment, stamp
from rules.engagement.events import (
    APPS,
    RIGHT_CLOCK,
    DeviceClock,
    Event,
    InputRefused,
    body_hash,
    check_age,
    corrected_time,
    event_id,
    is_late,
    measures_of,
)
from rules.engagement.offline import NO_PROOF, OfflineProof
from rules.json_values import BadValue, check_strict
from rules.privacy.tombstones import user_subject
from rules.zone_names import find_zone

EVENTS_MAX = 100
EVENT = closed_object(
    {
        "idempotency_key": KEY,
        "event_type": {
            "type": "string",
            "pattern": TYPE_NAME,
            "description": "a type of the book of rules (GET /v1/rules); some only servers may declare:"
            " streakline/producers or streakline/admin",
        },
        "occurred_at": {
            "type": "string",
            "maxLength": 40,
            "description": "RFC 3339 with Z or an offset; at most 72 hours ago (with a receipt more;"
            " admins, producers: any time from 1970 on), at most 5 minutes ahead",
        },
        "timezone?": {
            "type": ["string", "null"],
            "maxLength": 256,
            "description": "IANA name or offset (-07:00), also as devices spell them (GMT+03:00,"
            " posix/Europe/Berlin); decides the activity date. In place of one that is unknown, the offset"
            " of occurred_at does; without that the event is refused",
        },
        "source?": {"type": "string", "pattern": SHORT},
        "user_id?": {
            "type": "string",
            "pattern": USER_ID,
            "description": "admins and producers; else the caller's own",
        },
        "properties?": {"type": "object", "description": "anything, up to 64 KB as JSON"},
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
            "items": {"type": "object"},
            "description": "each is checked by itself: a bad one never spoils its neighbours",
        },
        "sent_at?": {
            "type": "string",
            "maxLength": 40,
            "description": "when the batch is sent, by the clock that `occurred_at` is read from (RFC 3339)."
            " Where that clock is more than two minutes wrong, the times of the events are corrected",
        },
        "receipt?": {
            "type": "string",
            "maxLength": 128,
            "description": "the time receipt (Streakline-Time-Receipt of an earlier answer) that the device"
            " had when the oldest of these events happened. With it events of more than 72 hours ago count"
            " that waited in a device without a network. The request names the device, as the one that was"
            " answered did (Streakline-Device)",
        },
    }
)

# The answer to a batch of events.
RESULTS = closed_object(
    {
        "accepted": whole(),
        "duplicates": whole(),
        "rejected": whole("conflicts included"),
        "results": list_of(
            closed_object(
                {
                    "idempotency_key": text_or_null(),
                    "status": one_of(["accepted", "duplicate", "conflict", "rejected"]),
                    "event_id?": TEXT,
                    "error?": ANY
                    | {"description": "code, message, field; details: all fields, if several are faulty"},
                }
            )
        ),
    }
)

PROPERTIES_BYTES_MAX = 65_535  # what a column of Redshift takes
# For an event of a type that no book has: it is refused.
NO_TERMS = Terms(0, 0, None, keeps_streak=True, declared_by=Declarer.ANYBODY)
FORBIDDEN = frozenset({"forbidden", "backfill_forbidden"})
ERASED = "erased"


class RefusedNow(InputRefused):
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
    clock: DeviceClock = RIGHT_CLOCK  # of the device that sends
    proof: OfflineProof = NO_PROOF  # that the device was offline


def event_of(body: Mapping[str, Any], request: RequestContext) -> Event:
    """Return the event of a body that the schema accepts; raises InputRefused, and RefusedNow.

    It fixes the user, the activity date (rule 1) and the points (rule 5), and refuses what is too late (rule
    3).
    """
    occurred_at, user = occurred_at_of(body, request.clock), _user_of(body, request.caller)
    moment = parse_moment(occurred_at)
    terms, refusal = _terms_and_refusal(body, moment, request)
    event_zone = _zone_of(body, moment)
    day, zone = _date_of(event_zone, moment, request.zones.get(user))
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
        measures=measures_of(body.get("properties"), terms.measured),
        device_time=body["occurred_at"] if request.clock.skew else None,
        timezone=event_zone or moment.offset,
        properties=_properties(body),
    )
    try:
        offline_since = _offline_since(moment, request, terms)
    except InputRefused as refused:
        raise RefusedNow(refusal or refused, event) from None
    if refusal:
        raise RefusedNow(refusal, event)
    return replace(event, offline_since=offline_since) if offline_since else event


def _offline_since(moment: Moment, request: RequestContext, terms: Terms) -> str | None:
    """Return since when the device of a late event was offline, None for one that is not late.

    Raises InputRefused for an event that is too old, or in the future.
    """
    may_backfill = request.caller.is_server
    check_age(moment, request.now, may_backfill or request.proof != NO_PROOF)
    needs_proof = is_late(moment.utc, request.now) and not may_backfill
    return request.proof.check(moment.utc, terms.offline) if needs_proof else None


def _terms_and_refusal(
    body: Mapping[str, Any], moment: Moment, request: RequestContext
) -> tuple[Terms, InputRefused | None]:
    """Return what an event is judged by, and why its type, properties or sender are refused, if so."""
    event_type = body["event_type"]
    first_refusal = None
    for version in request.books.judging(event_type, moment.utc, request.now):
        refusal = _contract_refusal(version, body)
        if refusal is None:
            terms = terms_of(version, event_type, moment.utc)
            return terms, _sender_refusal(event_type, terms, request.caller)
        first_refusal = first_refusal or refusal
    reason = f"{event_type} is in no book of rules up to version {request.books.newest.number}"
    return NO_TERMS, first_refusal or InputRefused("unknown_type", "event_type", reason)


def _sender_refusal(event_type: str, terms: Terms, caller: Caller) -> InputRefused | None:
    if terms.declared_by is not Declarer.SERVER or caller.is_server:
        return None
    reason = f"{event_type} is for servers to declare: needs {PRODUCERS} or {ADMIN}"
    return InputRefused("forbidden", "event_type", reason)


def _contract_refusal(version: Version, body: Mapping[str, Any]) -> InputRefused | None:
    """Return how an event's properties break its type's data contract, if they do."""
    contract = version.book.event_types[body["event_type"]].properties
    problem = (
        first_problem({"type": "object", **contract}, body.get("properties") or {}) if contract else None
    )
    if problem is None:
        return None
    path, reason = problem
    field = "properties" if path == "body" else f"properties.{path}"
    reason = f"{reason} (data contract of {body['event_type']}, version {version.number})"
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
    """Return when the event happened, by a right clock; raises InputRefused."""
    device_time = str(body["occurred_at"])
    try:
        parse_moment(device_time)
        return corrected_time(device_time, clock.skew) if clock.skew else device_time
    except ValueError as error:
        raise InputRefused("invalid_field", "occurred_at", str(error)) from None


def time_problems(
    body: Any, clock: DeviceClock, problems: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return what is wrong with a body's time, beside its other problems: the schema takes any text."""
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
    name = (body.get("timezone") or "").strip()
    try:
        return find_zone(name) if name else None
    except UnknownZone as error:
        if moment.offset is None:
            reason = f"{error}, and occurred_at has no offset in its place"
            raise InputRefused("invalid_field", "timezone", reason) from None
        return None


def _date_of(event_zone: str | None, moment: Moment, stored_zone: str | None) -> tuple[date, str]:
    """Return the activity date and its zone (rule 1); raises InputRefused."""
    try:
        return date_of(moment, event_zone, stored_zone)
    except (OverflowError, ValueError):
        raise InputRefused("invalid_field", "occurred_at", "has no date in this zone") from None


def _properties(body: Mapping[str, Any]) -> str | None:
    if not body.get("properties"):
        return None
    text = json.dumps(body["properties"], sort_keys=True, separators=(",", ":"))
    if len(text) > PROPERTIES_BYTES_MAX:
        raise InputRefused("invalid_field", "properties", f"is over {PROPERTIES_BYTES_MAX} bytes as JSON")
    return text


class AcceptStatus(StrEnum):
    """What became of an event that was sent."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"  # it was accepted before
    CONFLICT = "conflict"  # its key was used for another body
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class AcceptResult:
    """What became of one event."""

    idempotency_key: str | None
    status: AcceptStatus
    event_id: str | None = None
    # code, message, field, and `details` if several fields are at fault; None if the event was taken
    error: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the result as the OpenAPI document describes it, without what is None."""
        fields = {
            "idempotency_key": self.idempotency_key,
            "status": self.status.value,
            "event_id": self.event_id,
            "error": self.error,
        }
        return {
            name: value for name, value in fields.items() if value is not None or name == "idempotency_key"
        }


@dataclass(frozen=True, slots=True)
class _ValidEvent:
    """A valid event of this request, with the digest of its body."""

    event: Event
    digest: str

    @property
    def key(self) -> tuple[str, str]:
        return self.event.user_id, self.event.idempotency_key


@dataclass(frozen=True, slots=True)
class _RefusedEvent(_ValidEvent):
    """A valid event that is refused if it was not accepted before."""

    refusal: AcceptResult


class Acceptor:
    """Validates, claims and stores events."""

    def __init__(
        self,
        claims: ClaimStore,
        events: EventStore,
        zones: ZoneStore,
        books: BookStore,
        erased: ErasureCheck = NO_ERASURES,
    ) -> None:
        self._claims, self._events, self._zones = claims, events, zones
        self._books, self._erased = books, erased

    def accept(  # noqa: PLR0913, PLR0917 (what is known of a request)
        self,
        bodies: Sequence[Any],
        caller: Caller,
        now: datetime,
        default_source: str = APPS,
        clock: DeviceClock = RIGHT_CLOCK,
        proof: OfflineProof = NO_PROOF,
    ) -> list[AcceptResult]:
        """Claim and store events; returns one result for each body, in the same order.

        clock: the device's. proof: that it was offline. A refused event does not affect the others. One that
        is `accepted` or a `duplicate` is stored.
        """
        zones, books = self._stored_zones(bodies, caller), self._books.books()
        request = RequestContext(caller, zones, now, default_source, books, clock, proof)
        checks = self._refuse_new([self._check(body, request) for body in bodies], now)
        # Of events with one key the first is stored.
        first = {event.key: event for event in reversed(checks) if isinstance(event, _ValidEvent)}
        claims: Mapping[tuple[str, str], IdempotencyClaim]
        try:
            claims, won = self._claims.claim([self._claim_of(event) for event in first.values()], now)
            self._store(first, claims, won)
        except Unprocessed:
            claims, won = {}, set()
        return [
            check if isinstance(check, AcceptResult) else self._result(check, claims, first, won)
            for check in checks
        ]

    def _stored_zones(self, bodies: Sequence[Any], caller: Caller) -> dict[str, str | None]:
        """Return the zones that users have set. Reads them only for events without a zone (a bare Z)."""
        users = {
            str(body.get("user_id") or caller.user_id)
            for body in bodies
            if isinstance(body, dict)
            and not str(body.get("timezone") or "").strip()
            and str(body.get("occurred_at", "")).endswith(("Z", "z", "-00:00"))
            and first_problem(EVENT, body) is None
        }
        return self._zones.chosen(users)

    def _check(self, body: Any, request: RequestContext) -> _ValidEvent | AcceptResult:
        """Return the event of a body, or its rejection."""
        key = _idempotency_key(body)
        if problems := body_problems(EVENT, body):
            return _field_rejection(key, [*problems, *time_problems(body, request.clock, problems)])
        try:
            event = event_of(body, request)
            self._check_erased(event)
            return _ValidEvent(event, body_hash(body))
        except RefusedNow as refused:
            return _RefusedEvent(refused.event, body_hash(body), _rejection(key, refused))
        except InputRefused as refused:
            return _rejection(key, refused)

    def _check_erased(self, event: Event) -> None:
        """Raise InputRefused for an event of somebody who was erased, or of before that."""
        if self._erased.forbids(user_subject(event.user_id), event.event_id):
            raise InputRefused(ERASED, "user_id", "was erased")

    def _refuse_new(
        self, checks: Sequence[_ValidEvent | AcceptResult], now: datetime
    ) -> list[_ValidEvent | AcceptResult]:
        """Put the refusal in place of each _RefusedEvent, unless the claim of its key has this very body.

        Then it was accepted before, and is a duplicate.
        """
        keys = {check.key for check in checks if isinstance(check, _RefusedEvent)}
        claims = self._claims.get(keys, now) if keys else {}
        digests = {key: claim.body_hash for key, claim in claims.items()}
        return [
            check.refusal
            if isinstance(check, _RefusedEvent) and digests.get(check.key) != check.digest
            else check
            for check in checks
        ]

    def _claim_of(self, sent: _ValidEvent) -> IdempotencyClaim:
        event = sent.event
        return IdempotencyClaim(
            event.user_id,
            event.idempotency_key,
            sent.digest,
            event.event_id,
            event.created_at,
            derived_fields(event),
        )

    def _store(
        self,
        sent: Mapping[tuple[str, str], _ValidEvent],
        claims: Mapping[tuple[str, str], IdempotencyClaim],
        won: set[tuple[str, str]],
    ) -> None:
        """Store the events that this request has claimed.

        Store also an event that an earlier attempt claimed, if that attempt died before it stored it.
        claims: of all events, by key. won: the keys that this request has claimed.
        """
        self._events.put([sent[key].event for key in sorted(won)])
        duplicates = [
            claimed_event(valid.event, claims[key])
            for key, valid in sent.items()
            if key not in won and key in claims and claims[key].body_hash == valid.digest
        ]
        for event in self._events.missing(duplicates):
            self._events.put_new(event)

    def _result(
        self,
        sent: _ValidEvent,
        claims: Mapping[tuple[str, str], IdempotencyClaim],
        first: Mapping[tuple[str, str], _ValidEvent],
        won: set[tuple[str, str]],
    ) -> AcceptResult:
        key, claim = sent.event.idempotency_key, claims.get(sent.key)
        if claim is None:
            return AcceptResult(key, AcceptStatus.REJECTED, error=_error("unavailable", "try again", "event"))
        if claim.body_hash != sent.digest:
            error = _error("conflict", "was used for another body", "idempotency_key")
            return AcceptResult(key, AcceptStatus.CONFLICT, claim.target, error)
        is_new = sent.key in won and sent is first[sent.key]
        status = AcceptStatus.ACCEPTED if is_new else AcceptStatus.DUPLICATE
        return AcceptResult(key, status, claim.target)


def _idempotency_key(body: Any) -> str | None:
    """Return the key that a body names, as an answer may repeat it; None if it has none that is a text."""
    key = body.get("idempotency_key") if isinstance(body, dict) else None
    if not isinstance(key, str) or len(key) > 128:
        return None
    try:
        check_strict(key)
    except BadValue:
        return None
    return key


def _rejection(key: str | None, refused: InputRefused) -> AcceptResult:
    return AcceptResult(key, AcceptStatus.REJECTED, error=_error(refused.code, refused.reason, refused.field))


def _field_rejection(key: str | None, problems: Sequence[tuple[str, str]]) -> AcceptResult:
    """Return the refusal of a body for some fields; the message has the first one."""
    first_field, first_reason = problems[0]
    error: dict[str, Any] = _error("invalid_field", first_reason, first_field)
    if len(problems) > 1:
        error["details"] = [{"field": field, "reason": reason} for field, reason in problems]
    return AcceptResult(key, AcceptStatus.REJECTED, error=error)


def _error(code: str, reason: str, field: str) -> dict[str, str]:
    return {"code": code, "message": f"{field} {reason}", "field": field}


def acceptor(config: EventsApiSettings | EventsStreamSettings) -> Acceptor:
    """Return the Acceptor of a deployment."""
    dynamodb = fence_writer(client("dynamodb"))
    return Acceptor(
        ClaimStore(dynamodb, config.idempotency_keys_table),
        EventStore(dynamodb, config.bp_events_table),
        ZoneStore(dynamodb, config.user_streaks_table),
        BookStore(dynamodb, config.rule_books_table),
        tombstones_of(config),
    )
