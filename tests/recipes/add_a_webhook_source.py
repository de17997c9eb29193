"""docs/recipes/add-a-webhook-source.md, step by step, with its example."""

from tests.recipes.scratch import Scratch, Step

SIGN_UP = '''"""A newsletter's sign-up form: {"signup_id", "signed_up_at", "email", "list"}."""

from typing import Any

from ingest.leads.readers import DecodeContext, DecodedEvent, checked, identities, moment, text_id
from ingest.web.json_schema import Schema, closed_object
from rules.leads.hooks import Signature
from rules.leads.lead_events import FORM_SUBMITTED

SIGNATURE = Signature("x-newsletter-signature", "sha256=", is_hex=True)
TEXT: Schema = {"type": "string", "minLength": 1}
SIGN_UP = closed_object({"signup_id": TEXT, "signed_up_at": TEXT, "email": TEXT, "list?": TEXT})


def decode(payload: Any, context: DecodeContext) -> list[DecodedEvent]:
    """Read the sign-up."""
    body = checked(SIGN_UP, payload)
    return [
        DecodedEvent(
            external_event_id=text_id(body["signup_id"], "signup_id"),
            event_type=FORM_SUBMITTED,
            occurred_at=moment(body["signed_up_at"], "signed_up_at"),
            identities=identities([("email", body["email"])], context, "email", are_verified=False),
            object_id=body.get("list"),
            object_id_ref="list" if "list" in body else None,
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
)
