"""What a decoder of a lead source takes and gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ingest.web.json_schema import Schema
from ingest.web.validate import first_problem
from rules.leads.identity import Identity


class DecodeError(ValueError):
    """A payload that is no event of its source: the field at fault (a path from the payload) and a reason."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field, self.reason = field, reason


@dataclass(frozen=True, slots=True)
class DecodeContext:
    """What a payload does not say itself. currency: ISO 4217, of all amounts; received_at: a stamp."""

    organization_id: str
    integration: str
    currency: str
    received_at: str

    @property
    def source(self) -> str:
        """The scope of external event ids."""
        return f"{self.organization_id}/{self.integration}"


@dataclass(frozen=True, slots=True)
class DecodedEvent:
    """One event of a payload. external_event_id is unique in its integration, the same in every resend.

    occurred_at: a stamp; payload: by event type, see rules.leads.lead_events.LeadEvent.
    """

    external_event_id: str
    event_type: str
    occurred_at: str
    identities: tuple[Identity, ...]
    object_id: str | None = None
    object_id_ref: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PayloadPart:
    """The piece of a payload that holds one event, in a shape that its decoder takes by itself.

    path: where the event is in the whole payload; inner: where it is in the piece.
    """

    payload: Any
    path: str = ""
    inner: str = ""


def checked(schema: Schema, payload: Any) -> dict[str, Any]:
    """Return the payload, an object of this schema; raises DecodeError."""
    if problem := first_problem(schema, payload):
        raise DecodeError("" if problem[0] == "body" else problem[0], problem[1])
    return dict(payload)
