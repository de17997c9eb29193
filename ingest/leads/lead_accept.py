"""From what integrations send to lead events: the one way, for the HTTP door and for the queue's consumer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ingest.leads import sources
from ingest.leads.decoding import DecodeContext, DecodedEvent, DecodeError, PayloadPart
from ingest.leads.lead_schemas import MESSAGE
from ingest.web.validate import check_strict, first_problem
from rules.days import parse_moment, stamp, unstamp
from rules.leads.lead_events import FUTURE_MAX, LeadEvent, body_hash

# The source under which the identity itself tells of merged leads; no integration may speak for it.
RESERVED = "identity"


class BadEnvelope(ValueError):
    """What surrounds a payload is not right: the field and the reason."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field, self.reason = field, reason


@dataclass(frozen=True, slots=True)
class Envelope:
    """Where a payload came from, and itself or where it waits (an s3:// URL)."""

    source_type: str
    context: DecodeContext
    payload: Any = None
    payload_ref: str | None = None

    def message(self) -> dict[str, Any]:
        """Return what goes on the lead-ingestion queue."""
        held = {"payload_ref": self.payload_ref} if self.payload_ref else {"payload": self.payload}
        return {
            "organization_id": self.context.organization_id,
            "source": self.source_type,
            "integration": self.context.integration,
            **held,
            "received_at": self.context.received_at,
        }


@dataclass(slots=True)
class OpenedPayload:
    """What became of a payload's parts: events, refusals (with what they are about), decoders that broke."""

    events: list[tuple[DecodedEvent, PayloadPart]] = field(default_factory=list)
    refused: list[DecodeError] = field(default_factory=list)
    broken: list[Exception] = field(default_factory=list)


def read_envelope(message: Any, currency: str, now: datetime) -> Envelope:
    """Read a message of the queue as strictly as a request; raises BadEnvelope."""
    try:
        check_strict(message)
    except ValueError as error:
        raise BadEnvelope("message", str(error)) from None
    if problem := first_problem(MESSAGE, message):
        raise BadEnvelope(*problem)
    if ("payload" in message) == ("payload_ref" in message):
        raise BadEnvelope("payload", "is missing, or there is a payload_ref too")
    integration = message.get("integration") or message["source"]
    if integration == RESERVED:
        raise BadEnvelope("integration", f"must not be {RESERVED}: that is our own")
    if message["source"] not in sources.names():
        raise BadEnvelope("source", f"must be one of {', '.join(sources.names())}")
    context = DecodeContext(message["organization_id"], integration, currency, _received(message, now))
    return Envelope(message["source"], context, message.get("payload"), message.get("payload_ref"))


def _received(message: Mapping[str, Any], now: datetime) -> str:
    if "received_at" not in message:
        return stamp(now)
    try:
        received = parse_moment(message["received_at"]).utc
    except ValueError as error:
        raise BadEnvelope("received_at", str(error)) from None
    if received.year < 1970 or received > now + FUTURE_MAX:
        raise BadEnvelope("received_at", "must lie between 1970 and now")
    return stamp(received)


def open_payload(payload: Any, sent: Envelope, now: datetime) -> OpenedPayload:
    """Decode each part of a payload by itself: a bad one never spoils its neighbours."""
    opened = OpenedPayload()
    try:
        source = sources.source_named(sent.source_type)
        parts = source.parts(payload)
    except DecodeError as error:
        opened.refused.append(_within(PayloadPart(payload), error))
        return opened
    except Exception as error:  # noqa: BLE001 (a decoder's bug must not lose what was sent)
        opened.broken.append(error)
        return opened
    for part in parts:
        try:
            events = source.decode(part.payload, sent.context)
            for each in events:
                _check_time(each, now)
            opened.events += [(each, part) for each in events]
        except DecodeError as error:
            opened.refused.append(_within(part, error))
        except Exception as error:  # noqa: BLE001 (as above)
            opened.broken.append(error)
    return opened


def _check_time(event: DecodedEvent, now: datetime) -> None:
    occurred = unstamp(event.occurred_at)
    if occurred > now + FUTURE_MAX:
        raise DecodeError("occurred_at", f"is more than 5 minutes in the future: {event.occurred_at}")
    if occurred.year < 1970:
        raise DecodeError("occurred_at", f"is before 1970: {event.occurred_at}")


def _within(part: PayloadPart, error: DecodeError) -> DecodeError:
    """The error with its path from the message on."""
    inside = error.field.removeprefix(part.inner).strip(".")
    return DecodeError(".".join(each for each in ("payload", part.path, inside) if each), error.reason)


def stored_event(event: DecodedEvent, sent: Envelope, leaf: str, root: str) -> LeadEvent:
    """Return the event as it is stored, still without its raw payload."""
    return LeadEvent(
        organization_id=sent.context.organization_id,
        lead_organization_id=leaf,
        root_id=root,
        source=sent.context.source,
        source_type=sent.source_type,
        external_event_id=event.external_event_id,
        event_type=event.event_type,
        occurred_at=event.occurred_at,
        received_at=sent.context.received_at,
        payload=event.payload,
        object_id=event.object_id,
        object_id_ref=event.object_id_ref,
    )


def part_digest(part: PayloadPart) -> str:
    """Return what tells whether two payloads under one external id are the same: the integration's words.

    Not what we derive from them, which may change with our rules.
    """
    return body_hash({"payload": part.payload})
