"""Accepts events. The HTTP door and the Kinesis door both use it (rules 1, 3, 4 and 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from adapters.book import BookStore
from adapters.engagement.claims import ClaimStore, IdempotencyClaim, ZoneStore, as_claimed, derived_fields
from adapters.engagement.event_store import EventStore
from adapters.platform.tables import Unprocessed
from adapters.privacy.tombstones import NOBODY, Erased
from ingest.engagement.event_schemas import EVENT
from ingest.engagement.incoming_events import Door, RefusedNow, event_of, time_problems
from ingest.web.caller import Caller
from ingest.web.validate import body_problems, first_problem
from rules.engagement.events import APPS, RIGHT, DeviceClock, Event, InputRefused, body_hash
from rules.engagement.offline import NO_PROOF, Proof
from rules.json_values import BadValue, check_strict
from rules.privacy.tombstones import user_subject

FORBIDDEN = frozenset({"forbidden", "backfill_forbidden"})
ERASED = "erased"


class AcceptStatus(StrEnum):
    """What became of an event that was sent."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class AcceptResult:
    """What became of one event. error: code, message, field, and `details` if several fields are at fault;
    None if the event was taken.
    """

    idempotency_key: str | None
    status: AcceptStatus
    event_id: str | None = None
    error: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the result as the OpenAPI document describes it, without what is None."""
        shape = {
            "idempotency_key": self.idempotency_key,
            "status": self.status.value,
            "event_id": self.event_id,
            "error": self.error,
        }
        return {
            name: value for name, value in shape.items() if value is not None or name == "idempotency_key"
        }


@dataclass(frozen=True, slots=True)
class _Sent:
    """A valid event of this request, with the digest of its body."""

    event: Event
    digest: str

    @property
    def key(self) -> tuple[str, str]:
        return self.event.user_id, self.event.idempotency_key


@dataclass(frozen=True, slots=True)
class _Refused(_Sent):
    """A valid event that is refused by now, and the answer if its key does not hold it."""

    refused: AcceptResult


class Acceptor:
    """Validates, claims and stores events."""

    def __init__(
        self,
        claims: ClaimStore,
        events: EventStore,
        zones: ZoneStore,
        books: BookStore,
        erased: Erased = NOBODY,
    ) -> None:
        self._claims, self._events, self._zones = claims, events, zones
        self._books, self._erased = books, erased

    def accept(  # noqa: PLR0913, PLR0917 (what is known of a request)
        self,
        bodies: Sequence[Any],
        caller: Caller,
        now: datetime,
        default_source: str = APPS,
        clock: DeviceClock = RIGHT,
        proof: Proof = NO_PROOF,
    ) -> list[AcceptResult]:
        """Claim and store events; returns one result for each body, in the same order. clock: the device's.
        proof: that it was offline.

        A refused event does not affect the others. One that is `accepted` or a `duplicate` is stored.
        """
        zones, books = self._stored_zones(bodies, caller), self._books.books()
        door = Door(caller, zones, now, default_source, books, clock, proof)
        sent = self._as_taken([self._check(body, door) for body in bodies], now)
        first = {each.key: each for each in reversed(sent) if isinstance(each, _Sent)}
        try:
            held, won = self._claims.claim([self._claim_of(each) for each in first.values()], now)
            self._store(first, held, won)
        except Unprocessed:
            held, won = {}, set()
        return [
            each
            if isinstance(each, AcceptResult)
            else self._result(each, held, is_first=each is first[each.key] and each.key in won)
            for each in sent
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

    def _check(self, body: Any, door: Door) -> _Sent | AcceptResult:
        named = _key_named(body)
        if problems := body_problems(EVENT, body):
            return _faulty(named, [*problems, *time_problems(body, door.clock, problems)])
        try:
            event = event_of(body, door)
            self._check_erased(event)
            return _Sent(event, body_hash(body))
        except RefusedNow as refused:
            return _Refused(refused.event, body_hash(body), _rejected(named, refused))
        except InputRefused as refused:
            return _rejected(named, refused)

    def _check_erased(self, event: Event) -> None:
        """Raise InputRefused for an event of somebody who was erased, or of before that."""
        if self._erased.forbids(user_subject(event.user_id), event.event_id):
            raise InputRefused(ERASED, "user_id", "was erased")

    def _as_taken(self, checked: Sequence[_Sent | AcceptResult], now: datetime) -> list[_Sent | AcceptResult]:
        """Refuse what is refused by now, unless its key holds this very body: then it was taken once."""
        late = {each.key: each for each in checked if isinstance(each, _Refused)}
        held = self._claims.get(set(late), now) if late else {}
        digests = {key: claim.body_hash for key, claim in held.items()}
        return [
            each.refused if isinstance(each, _Refused) and digests.get(each.key) != each.digest else each
            for each in checked
        ]

    def _claim_of(self, sent: _Sent) -> IdempotencyClaim:
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
        sent: Mapping[tuple[str, str], _Sent],
        held: Mapping[tuple[str, str], IdempotencyClaim],
        won: set[tuple[str, str]],
    ) -> None:
        """Store the events that this request has claimed.

        Store also an event that an earlier attempt claimed, if that attempt died before it stored it.
        """
        self._events.put([sent[key].event for key in sorted(won)])
        again = [
            as_claimed(each.event, held[key])
            for key, each in sent.items()
            if key not in won and key in held and held[key].body_hash == each.digest
        ]
        for event in self._events.missing(again):
            self._events.put_new(event)

    def _result(
        self, sent: _Sent, held: Mapping[tuple[str, str], IdempotencyClaim], *, is_first: bool
    ) -> AcceptResult:
        key, claim = sent.event.idempotency_key, held.get(sent.key)
        if claim is None:
            return AcceptResult(key, AcceptStatus.REJECTED, error=_error("unavailable", "try again", "event"))
        if claim.body_hash != sent.digest:
            error = _error("conflict", "was used for another body", "idempotency_key")
            return AcceptResult(key, AcceptStatus.CONFLICT, claim.target, error)
        status = AcceptStatus.ACCEPTED if is_first else AcceptStatus.DUPLICATE
        return AcceptResult(key, status, claim.target)


def _key_named(body: Any) -> str | None:
    """Return the key that a body names, as an answer may tell it; None if it has none that is a text."""
    key = body.get("idempotency_key") if isinstance(body, dict) else None
    if not isinstance(key, str) or len(key) > 128:
        return None
    try:
        check_strict(key)
    except BadValue:
        return None
    return key


def _rejected(key: str | None, refused: InputRefused) -> AcceptResult:
    return AcceptResult(key, AcceptStatus.REJECTED, error=_error(refused.code, refused.reason, refused.field))


def _faulty(key: str | None, problems: Sequence[tuple[str, str]]) -> AcceptResult:
    """Return the refusal of a body for some fields; the message tells of the first one."""
    error: dict[str, Any] = _error("invalid_field", problems[0][1], problems[0][0])
    if len(problems) > 1:
        error["details"] = [{"field": field, "reason": reason} for field, reason in problems]
    return AcceptResult(key, AcceptStatus.REJECTED, error=error)


def _error(code: str, reason: str, field: str) -> dict[str, str]:
    return {"code": code, "message": f"{field} {reason}", "field": field}
