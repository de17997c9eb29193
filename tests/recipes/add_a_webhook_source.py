"""docs/recipes/add-a-webhook-source.md, step by step, with its example."""

from tests.recipes.common_steps import make_clients
from tests.recipes.scratch import Scratch, Step

SIGN_UP = '''"""A newsletter's sign-up form: {"signup_id", "signed_up_at", "email", "list"?}.

Anybody can type anybody's address into the form, so the address is claimed. `list` names the newsletter, and
a sign-up without a readable one still counts.
"""

from typing import Any

from ingest.leads.readers import DecodeContext, DecodedEvent, SideFields, checked, identities, moment, text_id
from ingest.web.json_schema import TEXT, Schema, open_object
from rules.leads.lead_events import FORM_SUBMITTED
from rules.leads.webhook_signatures import Signature

SIGNATURE = Signature("x-newsletter-signature", "sha256=", is_hex=True)
SIGN_UP: Schema = open_object(
    {"signup_id": {"type": ["string", "number"]}, "signed_up_at": TEXT, "email": TEXT}
)


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read the sign-up."""
    body, side = checked(SIGN_UP, payload), SideFields()
    newsletter = side.read(text_id, body.get("list"), "list")
    return [
        DecodedEvent(
            external_event_id=text_id(body["signup_id"], "signup_id"),
            event_type=FORM_SUBMITTED,
            occurred_at=moment(body["signed_up_at"], "signed_up_at"),
            identities=identities(
                [("email", body["email"])], context, "email", are_verified=False, side=side
            ),
            object_id=newsletter,
            object_id_ref=None if newsletter is None else "list",
            omissions=side.omissions,
        )
    ]
'''
SIGN_UP_SAMPLE = """{
  "private": ["ada@example.com"],
  "payloads": [
    {"signup_id": "s-1", "signed_up_at": "2026-03-01T10:00:00Z", "email": "ada@example.com", "list": "weekly"}
  ]
}
"""


def _decoder(scratch: Scratch) -> None:
    scratch.write("ingest/leads/sources/newsletter.py", SIGN_UP)


def _sample(scratch: Scratch) -> None:
    scratch.write("tests/webhooks/newsletter.json", SIGN_UP_SAMPLE)


SOURCE = (
    Step("ingest/leads/sources/newsletter.py", _decoder, "tests/unit/leads/test_lead_sources.py"),
    Step("tests/webhooks/newsletter.json", _sample, "tests/unit/leads/test_lead_sources.py"),
    Step("make clients", make_clients, "tests/unit/clients/test_drift.py"),
)
