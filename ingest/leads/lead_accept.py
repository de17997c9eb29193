"""Turns what integrations send into lead events. The HTTP doors and the queue's consumer both use it.

A door reads the envelope (who sends, from which source), opens the payload to say at once what is wrong with
it, and queues `Envelope.message()`. The consumer reads and opens the message again, and stores the events.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from adapters.platform.tables import chunks
from ingest.leads import sources
from ingest.leads.lead_schemas import MESSAGE
from ingest.leads.readers import DecodeContext, DecodedEvent, DecodeError, Omission, PayloadPart
from ingest.leads.sources import Source
from ingest.web.validate import first_problem
from rules.days import parse_moment, stamp, unstamp
from rules.json_values import BadValue, check_strict, storable
from rules.leads.lead_events import FUTURE_MAX, LeadEvent, body_hash
from rules.leads.settings import currency_of, region_of

# Under this name the consumer stores merges of leads. No integration may use it.
RESERVED_INTEGRATION = "identity"
HOOK_FIELDS = ("topic", "delivery_id", "is_signed")  # fields of DecodeContext that only hooks_api sets
PARTS_MAX = 1_000  # events in one message of the queue
PIECES_MAX = 100  # messages of the queue for one webhook
YEAR_MIN = 1970  # the earliest year of an event and of its receipt
# An opt-out with an earlier time, such as 0 seconds since 1970, counts from its arrival: with such a time it
# would be older than all that was said before.
OPT_OUT_YEAR_MIN = 2000


class BadEnvelope(ValueError):
    """A field beside the payload is wrong. field: its name; reason: what is wrong."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field, self.reason = field, reason


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload, with its source and context."""

    source_type: str
    context: DecodeContext
    payload: Any = None
    payload_ref: str | None = None  # the s3:// URL of a payload that waits in the bucket

    def message(self) -> dict[str, Any]:
        """Return the message that goes on the lead-ingestion queue."""
        payload = {"payload_ref": self.payload_ref} if self.payload_ref else {"payload": self.payload}
        return {
            "organization_id": self.context.organization_id,
            "source": self.source_type,
            "integration": self.context.integration,
            **payload,
            "received_at": self.context.received_at,
            **{name: value for name in HOOK_FIELDS if (value := getattr(self.context, name))},
        }


@dataclass(slots=True)
class OpenedPayload:
    """The events of a payload's parts, and why other parts are no events."""

    # Each event with the part that has it
    events: list[tuple[DecodedEvent, PayloadPart]] = field(default_factory=list)
    refusals: list[DecodeError] = field(default_factory=list)  # the reasons why parts are no events
    decoder_bugs: list[Exception] = field(default_factory=list)  # what a decoder raised by mistake


def read_envelope(
    message: Any, currency_setting: str, now: datetime, phone_regions_setting: str = ""
) -> Envelope:
    """Read a message of the queue as strictly as an HTTP request; raises BadEnvelope.

    It does not check the payload: open_payload() checks each part by itself. adapters.settings.choices says
    how the two settings are written.
    """
    try:
        check_strict(message, apart="payload")
    except BadValue as bad:
        raise BadEnvelope(bad.field, bad.reason) from None
    if problem := first_problem(MESSAGE, message):
        raise BadEnvelope(*problem)
    if ("payload" in message) == ("payload_ref" in message):
        raise BadEnvelope("payload", "is missing, or there is a payload_ref too")
    integration = message.get("integration") or message["source"]
    if integration == RESERVED_INTEGRATION:
        raise BadEnvelope("integration", f"must not be {RESERVED_INTEGRATION}: that is our own")
    if message["source"] not in sources.names():
        raise BadEnvelope("source", f"must be one of {', '.join(sources.names())}")
    organization = message["organization_id"]
    context = DecodeContext(
        organization_id=organization,
        integration=integration,
        currency=currency_of(currency_setting, organization),
        received_at=_received_at(message, now),
        region=region_of(phone_regions_setting, organization),
        **{name: message[name] for name in HOOK_FIELDS if name in message},
    )
    return Envelope(message["source"], context, message.get("payload"), message.get("payload_ref"))


def _received_at(message: Mapping[str, Any], now: datetime) -> str:
    if "received_at" not in message:
        return stamp(now)
    try:
        received = parse_moment(message["received_at"]).utc
    except ValueError as error:
        raise BadEnvelope("received_at", str(error)) from None
    if received.year < YEAR_MIN or received > now + FUTURE_MAX:
        raise BadEnvelope("received_at", f"must lie between {YEAR_MIN} and now")
    return stamp(received)


def pieces_of(payload: Any, source_type: str) -> list[Any]:
    """Return a payload as it came, or a long one in pieces that the queue's consumer takes.

    A batch of SendGrid's, or a webhook of Meta's, may have more events than one message of the queue. Of one
    that has too many for PIECES_MAX, there is a piece more.
    """
    try:
        source = sources.source_named(source_type)
        parts = list(islice(source.parts(payload), PIECES_MAX * PARTS_MAX + 1))
    except Exception:  # noqa: BLE001 (open_payload meets it again, and says why)
        return [payload]
    if len(parts) <= PARTS_MAX:
        return [payload]
    payloads = (part.payload for part in parts)
    return [source.join(piece) for piece in chunks(payloads, PARTS_MAX)]


def open_payload(
    payload: Any, envelope: Envelope, now: datetime, parts_max: int = PARTS_MAX
) -> OpenedPayload:
    """Decode each part of a payload by itself, so that a bad part does not affect the others."""
    opened = OpenedPayload()
    try:
        source = sources.source_named(envelope.source_type)
        parts = list(islice(source.parts(payload), parts_max + 1))
        if len(parts) > parts_max:
            raise DecodeError("", f"holds more than {parts_max} events")
    except DecodeError as error:
        opened.refusals.append(_refusal(PayloadPart(payload), error.field, error.reason))
        return opened
    except Exception as error:  # noqa: BLE001 (a decoder's bug must not lose what was sent)
        opened.decoder_bugs.append(error)
        return opened
    for part in parts:
        try:
            _open_part(part, source, envelope, now, opened)
        except DecodeError as error:
            opened.refusals.append(_refusal(part, error.field, error.reason))
        except Exception as error:  # noqa: BLE001 (as above)
            opened.decoder_bugs.append(error)
    return opened


def _open_part(
    part: PayloadPart, source: Source, envelope: Envelope, now: datetime, opened: OpenedPayload
) -> None:
    """Decode one part. A value that JSON could not hold refuses it, but for the opt-outs that it has."""
    bad: DecodeError | None = None
    try:
        check_strict(part.payload)
    except BadValue as error:
        # `body` is check_strict's name for the value as a whole.
        bad = DecodeError("" if error.field == "body" else error.field, error.reason)
        part = replace(part, payload=storable(part.payload))
    try:
        events = [_in_time(event, envelope, now) for event in source.decode(part.payload, envelope.context)]
    except DecodeError as error:
        raise bad or error from None
    if bad:
        omission = Omission(bad.field, bad.reason)
        events = [
            replace(event, omissions=(*event.omissions, omission)) for event in events if event.is_opt_out
        ]
        if not events:
            raise bad
    opened.events += [(event, part) for event in events]


def _in_time(event: DecodedEvent, envelope: Envelope, now: datetime) -> DecodedEvent:
    """Return the event; raises DecodeError for an impossible time. An opt-out then counts from arrival."""
    try:
        _check_time(event, now, OPT_OUT_YEAR_MIN if event.is_opt_out else YEAR_MIN)
    except DecodeError as error:
        if not event.is_opt_out:
            raise
        omissions = (*event.omissions, Omission(error.field, error.reason))
        return replace(event, occurred_at=envelope.context.received_at, omissions=omissions)
    return event


def _check_time(event: DecodedEvent, now: datetime, year_min: int) -> None:
    occurred = unstamp(event.occurred_at)
    if occurred > now + FUTURE_MAX:
        minutes = FUTURE_MAX // timedelta(minutes=1)
        raise DecodeError("occurred_at", f"is more than {minutes} minutes in the future: {event.occurred_at}")
    if occurred.year < year_min:
        raise DecodeError("occurred_at", f"is before {year_min}: {event.occurred_at}")


def _refusal(part: PayloadPart, field: str, reason: str) -> DecodeError:
    """Return the error of a part, with the field's path in the message."""
    return DecodeError(path_of(part, field), reason)


def path_of(part: PayloadPart, field: str) -> str:
    """Return a field's path in the message, such as `payload.3.timestamp`.

    field: its path in the event; or in the part, if the part has a bad JSON value (PayloadPart.inner).
    """
    inside = field.removeprefix(part.inner).strip(".")
    return ".".join(name for name in ("payload", part.path, inside) if name)


def stored_event(event: DecodedEvent, envelope: Envelope, leaf: str, root: str) -> LeadEvent:
    """Return the event as it is stored, still without its raw payload."""
    return LeadEvent(
        organization_id=envelope.context.organization_id,
        lead_organization_id=leaf,
        root_id=root,
        source=envelope.context.source,
        source_type=envelope.source_type,
        external_event_id=event.external_event_id,
        event_type=event.event_type,
        occurred_at=event.occurred_at,
        received_at=envelope.context.received_at,
        payload=event.payload,
        object_id=event.object_id,
        object_id_ref=event.object_id_ref,
    )


def part_digest(part: PayloadPart) -> str:
    """Return a digest of the part: two payloads with one external id are the same if it is the same.

    It does not depend on what we derive from the payload, because our rules may change.
    """
    return body_hash({"payload": part.payload})
