"""What the decoder of a lead source takes and returns, and the error that it raises.

One rule holds for all decoders (docs/rules.md, "What an event must have"): only what an event must have can
refuse it. A side field that cannot be read is left out, and an `Omission` says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ingest.web.json_schema import Schema
from ingest.web.validate import first_problem
from rules.leads.identity import Identity
from rules.leads.orders import OrderSeen


class DecodeError(ValueError):
    """A payload that is no event of its source. field: the path of the bad field; reason: what is wrong."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field, self.reason = field, reason


@dataclass(frozen=True, slots=True)
class Omission:
    """A side field that an event goes without. field: its path in the payload; reason: what is wrong."""

    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class DecodeContext:
    """What a payload does not say itself.

    currency: ISO 4217, the organization's own. received_at: a stamp. region: ISO 3166; there telephone
    numbers without a country code are read (None: such numbers are none). topic: the kind of webhook, if a
    header says it. delivery_id: the vendor's name for this delivery. is_signed: a secret of the organization
    signed the payload, so what it says of people is its source's word, and not a stranger's.
    """

    organization_id: str
    integration: str
    currency: str
    received_at: str
    region: str | None = None
    topic: str = ""
    delivery_id: str = ""
    is_signed: bool = False

    @property
    def source(self) -> str:
        """The scope of external event ids: `acme/ecommerce`."""
        return f"{self.organization_id}/{self.integration}"


@dataclass(frozen=True, slots=True)
class OrderPart:
    """What a payload tells of a shop's order. products: as rules.leads.lead_events lists them."""

    order_id: str
    seen: OrderSeen
    products: tuple[Mapping[str, Any], ...] = ()


# The type of an event that asks for an erasure. It is carried out, and never stored.
ERASURE_REQUESTED = "erasure_requested"


@dataclass(frozen=True, slots=True)
class ErasurePart:
    """Whom a source wants erased: the lead of the event's identities, and of these orders of the source."""

    order_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DecodedEvent:
    """One event of a payload.

    external_event_id: unique in its integration, and the same in every resend. occurred_at: a stamp.
    payload: its fields depend on the event type, see rules.leads.lead_events.LeadEvent. order: if it tells of
    an order, which has a state. Then what is stored is what that changes, and the payload is only shown.
    erasure: if it asks for one. omissions: side fields that could not be read.
    """

    external_event_id: str
    event_type: str
    occurred_at: str
    identities: tuple[Identity, ...]
    object_id: str | None = None
    object_id_ref: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)
    order: OrderPart | None = None
    erasure: ErasurePart | None = None
    omissions: tuple[Omission, ...] = ()


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """The piece of a payload that holds one event. The decoder reads the piece like a whole payload.

    path: where the event is in the whole payload, such as `entry.0.changes.0.value.messages.3`.
    inner: where it is in the piece, such as `entry.0.changes.0.value.messages.0`.
    """

    payload: Any
    path: str = ""
    inner: str = ""


def checked(schema: Schema, payload: Any) -> dict[str, Any]:
    """Return the payload if it is an object that the schema accepts; raises DecodeError if not."""
    if problem := first_problem(schema, payload):
        raise DecodeError("" if problem[0] == "body" else problem[0], problem[1])
    return dict(payload)
