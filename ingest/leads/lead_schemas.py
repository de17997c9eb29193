"""The bodies of the lead routes and of lead sources, as JSON Schema."""

from ingest.web.json_schema import (
    COUNT,
    FLAG,
    ORGANIZATION,
    TEXT,
    Schema,
    closed_object,
    flag,
    list_of,
    one_of,
    open_object,
    text,
    text_or_null,
    whole,
)
from rules.leads.features import FEATURES, Unit
from rules.leads.lead_events import CAMPAIGN_TYPES, EVENT_TYPES, IDENTITY_TYPES, PURCHASE_TYPES
from rules.user_ids import LENGTH_MAX

# These patterns leave out `/` and `#`, because composed keys use both as separators: `acme/shop#order:7`.
INTEGRATION = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
SOURCE = r"^[a-z][a-z0-9_]{0,63}$"
LEAD_ID = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"

PAYLOAD: Schema = {"type": ["object", "array"], "description": "the webhook's body, as it came"}
_ENVELOPE: dict[str, Schema] = {
    "organization_id": text(pattern=ORGANIZATION),
    "source": text("which decoder reads the payload", pattern=SOURCE),
    "integration?": text(
        "the scope of external event ids and customer ids (default: the source's name)", pattern=INTEGRATION
    ),
}
LEAD_EVENTS = closed_object(
    {**_ENVELOPE, "payload": PAYLOAD},
    example={
        "organization_id": "acme",
        "source": "generic",
        "payload": {
            "external_event_id": "7f3a",
            "event_type": "preference_stated",
            "occurred_at": "2026-11-20T23:30:00-05:00",
            "identities": {"email": "ada@example.com"},
            "data": {"preferences": {"contact_channel": "whatsapp"}},
        },
    },
)
# PostgreSQL refuses the character NUL in a text.
NO_NUL = r"^[^\u0000]+$"
REVERSAL = closed_object(
    {
        "reason": text(minLength=1, maxLength=500, pattern=NO_NUL),
        "organization_id?": text(
            "whose change it is (default: that of your organizations which has it)", pattern=ORGANIZATION
        ),
    }
)
MERGE = closed_object(
    {
        "leads": list_of(text(pattern=LEAD_ID), minItems=2, maxItems=2, uniqueItems=True),
        "reason": REVERSAL["properties"]["reason"],
        "unite?": flag("also if an operator has parted them before"),
    }
)
LOOKUP = closed_object(
    {
        "organization_id": text(pattern=ORGANIZATION),
        "email?": text(maxLength=200),
        "phone?": text(maxLength=200),
        "whatsapp?": text("an id of WhatsApp's: US.1349120865", maxLength=200),
    }
)
# A webhook as it waits on the lead-ingestion queue. The HTTP door sends it, or an integration does itself.
MESSAGE = closed_object(
    {
        **_ENVELOPE,
        "payload?": PAYLOAD,
        "payload_ref?": text(maxLength=1024),
        "received_at?": text(maxLength=40),
        "topic?": text(maxLength=128),
        "delivery_id?": text(maxLength=256),
        "is_signed?": FLAG,
        "refused?": text("why the door has refused it: then it is kept for an operator", maxLength=500),
    }
)
UNMERGE_COMMAND = "unmerge"
ANNOUNCE_COMMAND = "announce"
UNMERGE = closed_object(
    {
        "command": {"const": UNMERGE_COMMAND},
        "change": whole("", 1, 2**63 - 1),
        "reason": REVERSAL["properties"]["reason"],
        "organization_id?": REVERSAL["properties"]["organization_id"],
        "by": text(minLength=1, maxLength=LENGTH_MAX, pattern=NO_NUL),
    }
)

TEXT_OR_NUMBER: Schema = {"type": ["string", "number"]}
# What an event must have. All other fields refuse nothing: SideFields, ingest/leads/readers.py reads them.
# `claimed` is among these, because it says what the identities are worth.
GENERIC: Schema = open_object(
    {
        "external_event_id?": TEXT_OR_NUMBER,
        "event_type": one_of(sorted(EVENT_TYPES - IDENTITY_TYPES)),
        "occurred_at": TEXT,
        "identities": {"type": "object", "minProperties": 1},
        "claimed?": {"type": ["array", "null"], "items": TEXT},
    }
)
_ORDER: Schema = open_object({"order_id": TEXT_OR_NUMBER, "amount": TEXT_OR_NUMBER, "currency": TEXT})
WEB_FORM: Schema = open_object({"fields": {"type": ["object", "array"]}})
_CAMPAIGN: Schema = open_object({"campaign_id": TEXT_OR_NUMBER})
GENERIC_DATA: dict[str, Schema] = {
    **dict.fromkeys(PURCHASE_TYPES, _ORDER),
    **dict.fromkeys(CAMPAIGN_TYPES, _CAMPAIGN),
    "preference_stated": open_object({"preferences": {"type": "object", "minProperties": 1}}),
    "objection_raised": open_object({"objections": {"type": "array", "minItems": 1}}),
}

PROBLEM = closed_object({"field": TEXT, "reason": TEXT})
RECEIPT: Schema = open_object(
    {
        "accepted": COUNT,
        "events": {
            "type": "array",
            "items": closed_object(
                {
                    "external_event_id": TEXT,
                    "event_type": TEXT,
                    "omissions?": {
                        "type": "array",
                        "maxItems": 20,
                        "description": "side fields that could not be read, so the event goes without them",
                        "items": PROBLEM,
                    },
                }
            ),
        },
        "rejected?": {
            "type": "array",
            "maxItems": 100,
            "description": "parts of a batch that are no events, at most 100 of them; all are kept for an"
            " operator, with the reason",
            "items": PROBLEM,
        },
    }
)
FEATURES_VIEW: Schema = open_object(
    {
        "lead_id": TEXT,
        "features": {
            "type": "object",
            "properties": {
                feature.name: {
                    "type": ["boolean" if feature.unit is Unit.FLAG else "number", "null"],
                    "description": feature.doc,
                }
                for feature in FEATURES
            },
        },
        "money?": {"type": "object", "description": "by currency: orders, and what was spent, less refunds"},
        "money_total?": {
            "type": ["object", "null"],
            "description": "spent, in one currency by ExchangeRates; null where a rate is missing",
        },
        "computed_at": text_or_null("when they were last stored"),
        "as_of?": {"type": "object", "description": "by input: as of when its features are: the request"},
    }
)
