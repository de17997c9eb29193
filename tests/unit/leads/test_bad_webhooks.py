"""A bad payload is refused by field and reason, whatever its source; so is a bad envelope."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.leads.lead_queue import LeadPayloads, LeadQueue
from ingest.leads.lead_accept import BadEnvelope, Envelope, open_payload, read_envelope
from ingest.leads.readers import DecodeContext
from rules.json_values import read_json
from tests.support.webhooks import (
    CONTEXT,
    FORM,
    GENERIC,
    MAIL,
    NOW,
    ORDER,
    REFUND,
    changed,
    generic,
    text,
    whatsapp,
)

BAD: list[tuple[str, Any, str, str]] = [
    ("ecommerce", 7, "payload", "must be object"),
    ("ecommerce", [], "payload", "must be object"),
    ("ecommerce", changed(ORDER, "id", ...), "payload.id", "is missing"),
    ("ecommerce", changed(ORDER, "id", ""), "payload.id", "is missing"),
    ("ecommerce", changed(ORDER, "id", "x" * 251), "payload.id", "is over 256 bytes"),
    ("ecommerce", changed(ORDER, "created_at", ...), "payload.created_at", "is missing"),
    ("ecommerce", changed(ORDER, "created_at", "2026-03-01T10:00:00"), "payload.created_at", "RFC 3339"),
    ("ecommerce", changed(ORDER, "created_at", 1772000000), "payload.created_at", "RFC 3339"),
    ("ecommerce", changed(ORDER, "total_price", "11.777"), "payload.total_price", "more than the 2 decimals"),
    ("ecommerce", changed(ORDER, "total_price", ...), "payload.total_price", "is missing"),
    ("ecommerce", changed(ORDER, "currency", "euro"), "payload.currency", "three capital letters"),
    ("ecommerce", changed(ORDER, "currency", ...), "payload.currency", "is missing"),
    ("ecommerce", {**ORDER, "topic": "orders/destroy"}, "payload.topic", "must be one of"),
    ("ecommerce", changed(REFUND, "order_id", ...), "payload.order_id", "is missing"),
    (
        "ecommerce",
        changed(REFUND, "transactions.0.currency", "euro"),
        "payload.transactions.0.currency",
        "three capital letters",
    ),
    ("ecommerce", changed(REFUND, "transactions.0.amount", "-1"), "payload.transactions.0.amount", "from 0"),
    (
        "ecommerce",
        changed(REFUND, "transactions", [{"amount": "9000000000000", "currency": "USD"}] * 2),
        "payload.transactions",
        "at most",
    ),
    ("ecommerce", {**ORDER, "created_at": "2026-03-10T06:05:01Z"}, "payload.occurred_at", "in the future"),
    ("ecommerce", {**ORDER, "created_at": "1969-12-31T23:59:59Z"}, "payload.occurred_at", "before 1970"),
    ("web_form", changed(FORM, "fields", ...), "payload.fields", "is missing"),
    ("web_form", {**FORM, "fields": {}, "cookie_id": None}, "payload.fields", "no usable identity"),
    ("whatsapp", {}, "payload.entry", "is missing"),
    ("whatsapp", {"entry": [{}]}, "payload.entry.0.changes", "is missing"),
    (
        "whatsapp",
        {"entry": [{"changes": [{"value": 1}]}]},
        "payload.entry.0.changes.0.value",
        "must be an object",
    ),
    (
        "whatsapp",
        whatsapp(changed(text("a"), "timestamp", ...)),
        "payload.entry.0.changes.0.value.messages.0.timestamp",
        "is missing",
    ),
    ("whatsapp", whatsapp(text("a", id=None)), "payload.entry.0.changes.0.value.messages.0.id", "is missing"),
    (
        "whatsapp",
        whatsapp(changed(text("a"), "from", "12")),
        "payload.entry.0.changes.0.value.messages.0.from",
        "usable",
    ),
    ("email_campaign", 7, "payload", "must be an event"),
    ("email_campaign", [7], "payload.0", "must be an event"),
    ("email_campaign", [changed(MAIL, "sg_event_id", ...)], "payload.0.sg_event_id", "is missing"),
    ("email_campaign", [changed(MAIL, "timestamp", "soon")], "payload.0.timestamp", "whole seconds"),
    ("email_campaign", [changed(MAIL, "timestamp", True)], "payload.0.timestamp", "whole seconds"),
    ("email_campaign", [changed(MAIL, "email", "nobody")], "payload.0.email", "no usable identity"),
    ("email_campaign", [changed(MAIL, "marketing_campaign_id", ...)], "payload.0.campaign_id", "is missing"),
    ("email_campaign", [changed(MAIL, "event", "")], "payload.0.event", "is missing"),
    (
        "email_campaign",
        [changed(MAIL, "event", ["open"])],
        "payload.0.event",
        "must be text, such as delivered",
    ),
    ("generic", changed(GENERIC, "external_event_id", ...), "payload.external_event_id", "is missing"),
    ("generic", changed(GENERIC, "event_type", "leads_merged"), "payload.event_type", "must be one of"),
    ("generic", changed(GENERIC, "identities", {}), "payload.identities", "must contain"),
    ("generic", changed(GENERIC, "identities", {"email": []}), "payload.identities", "1 to 20"),
    ("generic", changed(GENERIC, "identities", {"email": "x"}), "payload.identities.email", "single @"),
    ("generic", changed(GENERIC, "identities", {"name": "x"}), "payload.identities.name", "no channel"),
    (
        "generic",
        changed(GENERIC, "identities", {"device": [str(n) for n in range(1, 22)]}),
        "payload.identities",
        "1 to 20",
    ),
    ("generic", changed(GENERIC, "data.amount", ...), "payload.data.amount", "is missing"),
    ("generic", changed(GENERIC, "data.currency", 7), "payload.data.currency", "must be string"),
    ("generic", changed(GENERIC, "data", ...), "payload.data.amount", "is missing"),
    ("generic", generic("preference_stated"), "payload.data.preferences", "is missing"),
    ("generic", generic("preference_stated", preferences={"a": 1.5}), "payload.data.preferences", "a flag"),
    ("generic", generic("objection_raised", objections=[]), "payload.data.objections", "1"),
    ("generic", generic("objection_raised", objections=["!"]), "payload.data.objections", "a name"),
    ("generic", changed(GENERIC, "claimed", "email"), "payload.claimed", "must be array"),
    (
        "web_form",
        {**FORM, "fields": {"email": ["ada@example.com", "eve@example.com"]}},
        "payload.fields.email",
        "two different",
    ),
    ("generic", generic("campaign_sent", campaign_id=""), "payload.data.campaign_id", "is missing"),
]


@pytest.mark.parametrize(("source", "payload", "field", "reason"), BAD)
def test_a_bad_payload_is_refused_by_field_and_reason(
    source: str, payload: Any, field: str, reason: str
) -> None:
    opened = open_payload(payload, Envelope(source, CONTEXT), NOW)
    assert (opened.events, opened.decoder_bugs) == ([], [])
    (error,) = opened.refusals
    assert reason in error.reason, error
    assert error.field == field


def test_a_bad_event_of_a_batch_spoils_no_neighbour() -> None:
    batch = [MAIL, changed(MAIL, "timestamp", ...), {**MAIL, "sg_event_id": "sg-3"}]
    opened = open_payload(batch, Envelope("email_campaign", CONTEXT), NOW)
    assert [event.external_event_id for event, _ in opened.events] == ["sg-1", "sg-3"]
    assert [each.field for each in opened.refusals] == ["payload.1.timestamp"]
    webhook = whatsapp(text("a"), text("b", 2, timestamp="x"), text("c", 3))
    opened = open_payload(webhook, Envelope("whatsapp", CONTEXT), NOW)
    assert [event.external_event_id for event, _ in opened.events] == ["wamid.1", "wamid.3"]
    assert [each.field for each in opened.refusals] == [
        "payload.entry.0.changes.0.value.messages.1.timestamp"
    ]


WRONG_VALUES = [
    ('"Well done \\ud83d"', "no Unicode"),
    ('["\\udc00"]', "no Unicode"),
    ('{"\\ud83d": 1}', "has a name that is no Unicode"),
    ("1e400", "no number"),
    ("NaN", "no number"),
    ("9" * 5_000, "no number"),
    ("[" * 70 + "]" * 70, "nested deeper"),
]


@pytest.mark.parametrize(("value", "reason"), WRONG_VALUES, ids=lambda each: each[:12])
def test_a_value_that_json_could_not_hold_refuses_its_event_and_no_other_also_from_the_queue(
    value: str, reason: str
) -> None:
    batch = [MAIL, {**MAIL, "sg_event_id": "sg-2", "note": "?"}, {**MAIL, "sg_event_id": "sg-3"}]
    webhook = whatsapp(text("a"), text("b", 2, note="?"), text("c", 3))
    for source, payload, place in (
        ("email_campaign", batch, "payload.1.note"),
        ("whatsapp", webhook, "payload.entry.0.changes.0.value.messages.1.note"),
    ):
        body = read_json(json.dumps(payload).replace('"?"', value))
        message = {"organization_id": "acme", "source": source, "payload": body}
        for held in (message, read_json(json.dumps(message))):
            sent = read_envelope(held, "USD", NOW)
            opened = open_payload(sent.payload, sent, NOW)
            assert [event.external_event_id[-1] for event, _ in opened.events] == ["1", "3"]
            (refused,) = opened.refusals
            assert refused.field.startswith(place)
            assert reason in refused.reason


def test_a_large_payload_with_half_an_emoji_waits_in_the_bucket_as_it_came() -> None:
    objects: dict[str, bytes] = {}
    aws = SimpleNamespace(
        put_object=lambda Key, Body, **_: objects.update({Key: Body}),  # noqa: N803
        send_message=lambda **_: None,
    )
    payload = [{**MAIL, "note": "\ud83d" + "x" * 300_000}]
    LeadQueue(aws, "q", LeadPayloads(lambda: aws, "b")).put({**MESSAGE, "payload": payload})
    assert [read_json(each) for each in objects.values()] == [payload]


MESSAGE: dict[str, Any] = {"organization_id": "acme", "source": "generic", "payload": GENERIC}


@pytest.mark.parametrize(
    ("message", "field", "reason"),
    [
        (7, "body", "must be object"),
        ({}, "organization_id", "is missing"),
        ({**MESSAGE, "organization_id": "a/b"}, "organization_id", "must match"),
        ({**MESSAGE, "organization_id": "a#b"}, "organization_id", "must match"),
        ({**MESSAGE, "source": "nosuch"}, "source", "must be one of ecommerce, email_campaign, generic"),
        ({**MESSAGE, "source": "../generic"}, "source", "must match"),
        ({**MESSAGE, "integration": "identity"}, "integration", "must not be identity"),
        ({**MESSAGE, "integration": "a/b"}, "integration", "must match"),
        ({**MESSAGE, "received_at": "yesterday"}, "received_at", "RFC 3339"),
        ({**MESSAGE, "received_at": "2026-03-10T06:06:00Z"}, "received_at", "between 1970 and now"),
        ({**MESSAGE, "payload_ref": "s3://b/k"}, "payload", "is missing"),
        ({"organization_id": "acme", "source": "generic"}, "payload", "is missing"),
        ({**MESSAGE, "topic": "\ud800"}, "topic", "no Unicode"),
        ({**MESSAGE, "\udfff": 1}, "body", "has a name that is no Unicode"),
    ],
)
def test_a_bad_envelope_is_refused_by_field_and_reason(message: Any, field: str, reason: str) -> None:
    with pytest.raises(BadEnvelope) as refused:
        read_envelope(message, "USD", NOW)
    assert refused.value.field == field
    assert reason in refused.value.reason


def test_a_message_says_what_the_request_said() -> None:
    sent = read_envelope({**MESSAGE, "integration": "crm", "received_at": "2026-03-10T05:00:00Z"}, "USD", NOW)
    assert sent.context == DecodeContext("acme", "crm", "USD", "2026-03-10T05:00:00.000000Z")
    assert read_envelope(sent.message(), "USD", NOW) == sent
