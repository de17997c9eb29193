"""What the decoder of a lead source takes and what it returns. The readers of fields: readers.py."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rules.leads.identity import Identity
from rules.leads.orders import OrderState

# The type of an event that asks for an erasure. It is carried out, and never stored.
ERASURE_REQUESTED = "erasure_requested"


class DecodeError(ValueError):
    """A payload that is no event of its source. field: the path of the bad field; reason: what is wrong."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field, self.reason = field, reason


@dataclass(frozen=True, slots=True)
class Omission:
    """A side field that an event goes without."""

    field: str  # its path in the payload
    reason: str  # what is wrong


@dataclass(frozen=True, slots=True)
class DecodeContext:
    """What a decoder needs beside the payload."""

    organization_id: str
    integration: str
    currency: str  # ISO 4217, the organization's own
    received_at: str  # a stamp
    # ISO 3166: the country of telephone numbers without a country code. None: such numbers are refused
    region: str | None = None
    topic: str = ""  # the kind of webhook, if a header says it
    delivery_id: str = ""  # the vendor's name for this delivery
    # Whether a secret of the organization signed the payload, so that no stranger can have sent it
    is_signed: bool = False

    @property
    def source(self) -> str:
        """The scope of external event ids: `acme/ecommerce`."""
        return f"{self.organization_id}/{self.integration}"


@dataclass(frozen=True, slots=True)
class OrderPart:
    """What a payload says of a shop's order."""

    order_id: str
    state: OrderState
    products: tuple[Mapping[str, Any], ...] = ()  # as rules.leads.lead_events lists them


@dataclass(frozen=True, slots=True)
class ErasurePart:
    """A request to erase the lead of the event's identities, and of these orders of the source."""

    order_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DecodedEvent:
    """One event of a payload."""

    external_event_id: str  # unique in its integration, and the same in every resend
    event_type: str
    occurred_at: str  # a stamp
    identities: tuple[Identity, ...]
    object_id: str | None = None  # what the event is about (an order, a message, a campaign)
    object_id_ref: str | None = None  # what kind of thing that is
    # Its fields depend on the event type, see rules.leads.lead_events.LeadEvent
    payload: Mapping[str, Any] = field(default_factory=dict)
    # If it is about an order. Then the changes of the order's state are stored, instead of this event.
    order: OrderPart | None = None
    erasure: ErasurePart | None = None  # if it asks for an erasure
    omissions: tuple[Omission, ...] = ()  # side fields that could not be read


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """The piece of a payload that holds one event."""

    payload: Any  # a payload of the source's shape that has this event alone
    # The event's path in the whole payload, which errors name: `entry.0.changes.0.value.messages.3`
    path: str = ""
    # The path within `payload`, with which the decoder's errors begin: `entry.0.changes.0.value.messages.0`
    inner: str = ""
