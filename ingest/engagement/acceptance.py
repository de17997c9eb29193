"""Accepts events that were sent over HTTP or Kinesis, and stores each once (docs/rules.md, rule 4).

Acceptor.accept checks each body (event_body.py), claims the idempotency keys of those that are right, stores
the events whose claims it won, and says what became of each. A stored event goes on by the stream of the
table BPEvents: processors/engagement.py applies it to ledger, days and profile, and processors/publisher.py
sends it to the lake.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from adapters.book_store import BookStore
from adapters.bootstrap import ClientOf
from adapters.engagement.claims import ClaimKey, ClaimStore, IdempotencyClaim, claimed_event, derived_fields
from adapters.engagement.event_store import EventStore, ZoneStore
from adapters.platform.tables import Unprocessed
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck, tombstones_of
from ingest.engagement.event_body import EVENT, RefusedIfNew, RequestContext, event_of, time_problems
from ingest.web.caller import Caller
from ingest.web.validate import body_problems, first_problem
from rules.engagement.events import APPS, NO_SKEW, Event, InputRefused, body_hash
from rules.engagement.offline import OfflineProof
from rules.json_values import BadValue, check_strict
from rules.privacy.tombstones import user_subject

ERASED = "erased"


@dataclass(frozen=True)
class IntakeSettings:
    """Settings that each function has that accepts events."""

    user_streaks_table: str
    bp_events_table: str
    idempotency_keys_table: str
    rule_books_table: str
    erasures_table: str
    erasure_secret_arn: str


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
    user_id: str = ""  # of an event that is stored, as the two below
    event_type: str = ""
    arrived_at: str = ""  # when its key was claimed first, as entries write instants
    # code, message, field, and `details` if several fields are at fault; None if the event was taken
    error: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the result as the OpenAPI document describes it, without what is None."""
        optional = {"event_id": self.event_id, "error": self.error}
        return {
            "idempotency_key": self.idempotency_key,
            "status": self.status.value,
            **{name: value for name, value in optional.items() if value is not None},
        }


@dataclass(frozen=True, slots=True)
class _ValidEvent:
    """A valid event of this request, with the digest of its body."""

    event: Event
    digest: str
    refusal: AcceptResult | None = None  # the result if the event was not accepted before; None: it is taken

    @property
    def key(self) -> ClaimKey:
        return self.event.user_id, self.event.idempotency_key

    def claim(self) -> IdempotencyClaim:
        """Return the claim of the event's key."""
        event_id, created_at = self.event.event_id, self.event.created_at
        return IdempotencyClaim(*self.key, self.digest, event_id, created_at, derived_fields(self.event))


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
        skew: timedelta = NO_SKEW,
        proof: OfflineProof | None = None,
    ) -> list[AcceptResult]:
        """Claim and store events; returns one result for each body, in the same order.

        skew: of the device's clock. proof: of its time offline. A refused event does not affect the others.
        One that is `accepted` or a `duplicate` is stored.
        """
        zones, books = self._stored_zones(bodies, caller), self._books.books()
        request = RequestContext(caller, zones, now, default_source, books, skew, proof)
        checks = [self._check(body, request) for body in bodies]
        if any(isinstance(check, _ValidEvent) and check.refusal for check in checks):
            # One that is still among them afterwards has been accepted before. So it wins no claim, and
            # becomes a duplicate.
            checks = self._refuse_new(checks, now)
        # Of events with one key the first is stored.
        first = {check.key: check for check in reversed(checks) if isinstance(check, _ValidEvent)}
        claims: Mapping[ClaimKey, IdempotencyClaim]
        try:
            claims, won = self._claims.claim([valid.claim() for valid in first.values()], now)
            self._events.put([first[key].event for key in sorted(won)])
            if len(won) < len(first):
                self._store_abandoned(first, claims, won)
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
        return self._zones.chosen(users) if users else {}

    def _check(self, body: Any, request: RequestContext) -> _ValidEvent | AcceptResult:
        """Return the event of a body, or its rejection."""
        if problems := body_problems(EVENT, body):
            problems = [*problems, *time_problems(body, request.skew, problems)]
            field, reason = problems[0]
            error: dict[str, Any] = _error("invalid_field", reason, field)
            if len(problems) > 1:
                error["details"] = [{"field": field, "reason": reason} for field, reason in problems]
            return AcceptResult(_idempotency_key(body), AcceptStatus.REJECTED, error=error)
        try:
            event = event_of(body, request)
            if self._erased.forbids(user_subject(event.user_id), event.event_id):
                raise InputRefused(ERASED, "user_id", "was erased")
            return _ValidEvent(event, body_hash(body))
        except RefusedIfNew as refused:
            return _ValidEvent(refused.event, body_hash(body), _rejection(body, refused))
        except InputRefused as refused:
            return _rejection(body, refused)

    def _refuse_new(
        self, checks: Sequence[_ValidEvent | AcceptResult], now: datetime
    ) -> list[_ValidEvent | AcceptResult]:
        """Put its refusal in place of an event that has one, unless the claim of its key has this very body.

        Then it was accepted before, and is a duplicate.
        """
        keys = {check.key for check in checks if isinstance(check, _ValidEvent) and check.refusal}
        digests = {key: claim.body_hash for key, claim in self._claims.get(keys, now).items()}
        return [
            check.refusal
            if isinstance(check, _ValidEvent) and check.refusal and digests.get(check.key) != check.digest
            else check
            for check in checks
        ]

    def _store_abandoned(
        self,
        first: Mapping[ClaimKey, _ValidEvent],
        claims: Mapping[ClaimKey, IdempotencyClaim],
        won: set[ClaimKey],
    ) -> None:
        """Store the events that earlier attempts have claimed, if these died before they stored them.

        first: the first event of each key. claims: of all events, by key. won: the keys that this request has
        claimed.
        """
        duplicates = [
            claimed_event(valid.event, claims[key])
            for key, valid in first.items()
            if key not in won and key in claims and claims[key].body_hash == valid.digest
        ]
        for event in self._events.missing(duplicates):
            self._events.put_new(event)

    def _result(
        self,
        sent: _ValidEvent,
        claims: Mapping[ClaimKey, IdempotencyClaim],
        first: Mapping[ClaimKey, _ValidEvent],
        won: set[ClaimKey],
    ) -> AcceptResult:
        """Return what became of a valid event. Without a claim, claiming or storing
        did not finish: a store was away. A repetition stores what is missing.
        """
        key, claim = sent.event.idempotency_key, claims.get(sent.key)
        if claim is None:
            return AcceptResult(key, AcceptStatus.REJECTED, error=_error("unavailable", "try again", "event"))
        if claim.body_hash != sent.digest:
            error = _error("conflict", "was used for another body", "idempotency_key")
            return AcceptResult(key, AcceptStatus.CONFLICT, claim.target, error=error)
        is_new = sent.key in won and sent is first[sent.key]
        status = AcceptStatus.ACCEPTED if is_new else AcceptStatus.DUPLICATE
        return AcceptResult(
            key, status, claim.target, sent.event.user_id, sent.event.event_type, claim.created_at
        )


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


def _rejection(body: Mapping[str, Any], refused: InputRefused) -> AcceptResult:
    error = _error(refused.code, refused.reason, refused.field)
    return AcceptResult(body["idempotency_key"], AcceptStatus.REJECTED, error=error)


def _error(code: str, reason: str, field: str) -> dict[str, str]:
    return {"code": code, "message": f"{field} {reason}", "field": field}


def acceptor_of(config: IntakeSettings, client: ClientOf) -> Acceptor:
    """Return the Acceptor of a deployment."""
    dynamodb = client("dynamodb")
    return Acceptor(
        ClaimStore(dynamodb, config.idempotency_keys_table),
        EventStore(dynamodb, config.bp_events_table),
        ZoneStore(dynamodb, config.user_streaks_table),
        BookStore(dynamodb, config.rule_books_table),
        tombstones_of(config, client),
    )
