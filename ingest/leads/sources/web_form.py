"""A submitted web form.

    {"submission_id", "submitted_at", "form_id"?, "customer_id"?, "device_id"?, "cookie_id"?,
     "fields": {"email"?, "phone"?, "message"? or "comments"?, ...},
     "sentiment"?, "objections"?, "preferences"?}

Anybody can type anything into a form, so all its identities are claimed.
A browser sends its fields alone, to /v1/hooks (`from_browser`): then the door names the submission, and its
time is when it arrived.
The event holds what we derive from people's words, and not the words: see `derived_from_text`.
"""

from collections.abc import Mapping
from typing import Any

from ingest.leads.decoding import DecodeContext, DecodedEvent, checked
from ingest.leads.lead_schemas import WEB_FORM
from ingest.leads.payload_fields import moment, text_id
from ingest.leads.person_fields import derived_from_text, identities
from rules.leads.lead_events import FORM_SUBMITTED

SIGNATURE = None  # a browser cannot keep a secret
# Hidden fields of a page, beside those that people fill in. A customer's id is not among them: anybody could
# write any.
HIDDEN = ("form_id", "device_id", "cookie_id")
ALIASES = {"e-mail": "email", "mail": "email", "tel": "phone", "telephone": "phone", "mobile": "phone"}


def from_browser(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the payload of a form. fields: as a browser sends them, names in lower case."""
    typed = {name: each for name, each in fields.items() if name not in (*HIDDEN, "submission_id")}
    renamed = {ALIASES.get(name, name): each for name, each in typed.items()}
    return {**{name: fields[name] for name in HIDDEN if fields.get(name)}, "fields": renamed}


def _arrived(context: DecodeContext) -> str | None:
    return context.received_at if context.delivery_id else None


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read the submission."""
    body = checked(WEB_FORM, payload)
    fields = body["fields"]
    found = [
        *(("customer", body.get("customer_id")), ("email", fields.get("email"))),
        *(("phone", fields.get("phone")), ("device", body.get("device_id"))),
        ("cookie", body.get("cookie_id")),
    ]
    form = body.get("form_id")
    return [
        DecodedEvent(
            external_event_id=text_id(body.get("submission_id", context.delivery_id), "submission_id"),
            event_type=FORM_SUBMITTED,
            occurred_at=moment(body.get("submitted_at", _arrived(context)), "submitted_at"),
            identities=identities(found, context, "fields", are_verified=False),
            object_id=None if form is None else text_id(form, "form_id"),
            object_id_ref=None if form is None else "form",
            payload=derived_from_text(
                fields.get("message") or fields.get("comments"),
                *(body.get("sentiment"), body.get("objections"), body.get("preferences")),
            ),
        )
    ]
