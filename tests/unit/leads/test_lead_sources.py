"""Every source: what it makes of good payloads, what it says of bad ones, and that nothing crashes it."""

import copy
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.leads import sources
from ingest.leads.decoding import Context, Decoded, DecodeError, decimal, minor_units, products
from ingest.leads.lead_accept import BadEnvelope, Envelope, digest, envelope, open_payload, stored_event
from rules.days import stamp, unstamp
from rules.leads.lead_events import EVENT_TYPES, IDENTITY_TYPES, from_item, to_item

NOW = datetime(2026, 3, 10, 6, tzinfo=UTC)
CONTEXT = Context("acme", "shop", "USD", stamp(NOW))
ORDER: dict[str, Any] = {
    "id": 820982911946154508,
    "created_at": "2026-03-01T23:30:00-05:00",
    "total_price": "11.77",
    "currency": "USD",
    "customer": {"id": 5, "email": "Ada@Example.com", "phone": None},
    "line_items": [
        {"product_id": 7, "title": "a", "quantity": 2},
        {"product_id": None, "sku": "B", "quantity": 1},
        {"product_id": 7, "quantity": 1},
        {"title": "a tip", "quantity": 1},
    ],
}
REFUND: dict[str, Any] = {
    "topic": "refunds/create",
    "id": 1,
    "order_id": 820982911946154508,
    "processed_at": "2026-03-02T00:00:00Z",
    "transactions": [
        {"kind": "refund", "amount": "1.10", "currency": "USD", "status": "success"},
        {"kind": "refund", "amount": 2.2, "currency": "USD"},
        {"kind": "refund", "amount": "9.00", "currency": "USD", "status": "failure"},
        {"kind": "void", "amount": "9.00", "currency": "USD"},
    ],
    "customer": {"id": 5},
}
FORM: dict[str, Any] = {
    "submission_id": "s-1",
    "submitted_at": "2026-03-01T10:00:00+01:00",
    "form_id": "contact",
    "fields": {"email": "ada@example.com", "phone": "+1 650 555 1234", "message": "I love it, but not now"},
    "cookie_id": "c1",
    "preferences": {"contact_channel": "email", "visits": 2, "newsletter": True},
}
MAIL: dict[str, Any] = {
    "email": "ada@example.com",
    "timestamp": 1772000000,
    "event": "open",
    "sg_event_id": "sg-1",
    "marketing_campaign_id": 12345,
}
GENERIC: dict[str, Any] = {
    "external_event_id": "g-1",
    "event_type": "order_placed",
    "occurred_at": "2026-03-01T10:00:00Z",
    "identities": {"email": "ada@example.com", "device": ["d1", "d2"]},
    "data": {
        "order_id": 9,
        "amount": 11.77,
        "currency": "USD",
        "products": [{"product_id": "p", "quantity": 3}],
    },
}


def text(words: str, number: int = 1, **more: Any) -> dict[str, Any]:
    message = {"from": "16505551234", "id": f"wamid.{number}", "timestamp": "1772000000", "type": "text"}
    return {**message, "text": {"body": words}, **more}


def whatsapp(*messages: Any, **value: Any) -> dict[str, Any]:
    inner = {"messaging_product": "whatsapp", "messages": list(messages), **value}
    return {
        "object": "whatsapp_business_account",
        "entry": [{"changes": [{"field": "messages", "value": inner}]}],
    }


def generic(event_type: str, **data: Any) -> dict[str, Any]:
    return {**GENERIC, "event_type": event_type, "data": data}


GOOD: dict[str, list[Any]] = {
    "ecommerce": [ORDER, REFUND],
    "web_form": [FORM],
    "whatsapp": [whatsapp(text("olá"), text("muito caro", 2))],
    "email_campaign": [[MAIL, {**MAIL, "sg_event_id": "sg-2", "event": "click"}], MAIL],
    "generic": [GENERIC],
}


def decode(source: str, payload: Any, context: Context = CONTEXT) -> list[Decoded]:
    return sources.source(source).decode(payload, context)


def changed(payload: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The payload with one field changed; ... takes it away."""
    whole = copy.deepcopy(payload)
    *above, last = path.split(".")
    holder: Any = whole
    for name in above:
        holder = holder[int(name) if isinstance(holder, list) else name]
    if value is ...:
        del holder[last]
    else:
        holder[int(last) if isinstance(holder, list) else last] = value
    return whole


def test_an_order() -> None:
    (event,) = decode("ecommerce", ORDER)
    assert (event.external_event_id, event.event_type) == ("order:820982911946154508", "order_placed")
    assert event.occurred_at == "2026-03-02T04:30:00.000000Z"
    assert [(each.channel, each.external_id) for each in event.identities] == [
        ("customer", "acme/shop/5"),
        ("email", "ada@example.com"),
    ]
    assert (event.object_id, event.object_id_ref) == ("820982911946154508", "order")
    assert event.payload == {
        "order_id": "820982911946154508",
        "amount_minor": 1177,
        "currency": "USD",
        "products": [{"product_id": "7", "quantity": 3}, {"product_id": "B", "quantity": 1}],
    }


def test_a_refund_counts_what_was_given_back_and_is_no_order() -> None:
    (event,) = decode("ecommerce", REFUND)
    assert (event.external_event_id, event.event_type) == ("refund:1", "order_refunded")
    assert event.payload == {"order_id": "820982911946154508", "amount_minor": 330, "currency": "USD"}
    (same,) = decode("ecommerce", changed(REFUND, "topic", ...))
    assert same == event


def test_when_it_was_processed_is_when_it_happened() -> None:
    (event,) = decode("ecommerce", {**ORDER, "processed_at": "2025-01-01T00:00:00Z"})
    assert event.occurred_at == "2025-01-01T00:00:00.000000Z"


def test_a_guest_s_order_belongs_to_its_email() -> None:
    (event,) = decode("ecommerce", {**ORDER, "customer": None, "email": "guest@example.com"})
    assert [each.external_id for each in event.identities] == ["guest@example.com"]


@pytest.mark.parametrize(
    ("amount", "currency", "minor"),
    [
        ("11.77", "USD", 1177),
        (11.77, "USD", 1177),
        (0.1, "USD", 10),
        (12, "USD", 1200),
        ("0", "USD", 0),
        ("11.7700", "USD", 1177),
        ("1000", "JPY", 1000),
        ("1000.00", "JPY", 1000),
        ("1.234", "KWD", 1234),
        (1e13, "USD", 10**15),
    ],
)
def test_amounts_are_exact(amount: Any, currency: str, minor: int) -> None:
    assert minor_units(amount, currency, "amount") == minor


@pytest.mark.parametrize(
    ("amount", "currency", "reason"),
    [
        ("11.775", "USD", "more than the 2 decimals of USD"),
        (0.1 + 0.2, "USD", "more than the 2 decimals"),
        ("1.5", "JPY", "more than the 0 decimals of JPY"),
        ("-0.01", "USD", "must be from 0"),
        ("10000000000000.01", "USD", "must be from 0"),
        ("1e3", "USD", "decimal number"),
        ("١٢", "USD", "decimal number"),
        (" 1", "USD", "decimal number"),
        (True, "USD", "decimal number"),
        (None, "USD", "is missing"),
        ("", "USD", "is missing"),
        ([1], "USD", "decimal number"),
        (1e300, "USD", "decimal number"),
        (float("inf"), "USD", "decimal number"),
    ],
)
def test_amounts_that_are_none(amount: Any, currency: str, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason) as refused:
        minor_units(amount, currency, "total_price")
    assert refused.value.field == "total_price"


@given(st.integers(0, 10**13), st.sampled_from(["USD", "JPY", "BHD"]))
@settings(max_examples=60)
def test_an_amount_survives_its_json_as_number_and_as_text(minor: int, currency: str) -> None:
    exponent = {"USD": 2, "JPY": 0, "BHD": 3}[currency]
    written = str(Decimal(minor).scaleb(-exponent))
    for sent in (json.loads(written), written):
        assert minor_units(sent, currency, "amount") == minor


def test_a_form_tells_what_was_said_and_not_the_words() -> None:
    (event,) = decode("web_form", FORM)
    assert event.payload == {
        "sentiment_milli": 1000,
        "objections": ["timing"],
        "preferences": FORM["preferences"],
    }
    assert {each.channel for each in event.identities} == {"email", "phone", "cookie"}
    assert (event.object_id, event.object_id_ref) == ("contact", "form")
    assert event.occurred_at == "2026-03-01T09:00:00.000000Z"


def test_what_identifies_nobody_is_passed_over() -> None:
    (event,) = decode("web_form", {**FORM, "fields": {"email": "n/a", "phone": ""}})
    assert [each.channel for each in event.identities] == ["cookie"]


@pytest.mark.parametrize("source", ["web_form", "whatsapp", "generic"])
def test_a_score_that_is_given_wins(source: str) -> None:
    payload = {
        "web_form": {**FORM, "sentiment": -0.1234},
        "whatsapp": whatsapp(text("I love it", sentiment=-0.1234)),
        "generic": generic("message_received", text="I love it", sentiment=-0.1234),
    }[source]
    (event,) = decode(source, payload)
    assert event.payload["sentiment_milli"] == -123


def test_a_whatsapp_webhook_may_hold_messages_and_statuses() -> None:
    statuses = [{"id": "wamid.9", "status": "read", "timestamp": "1772000000", "recipient_id": "1650"}]
    button = text("", 2, type="button", button={"payload": "no", "text": "Not interested"})
    reply = text(
        "", 3, type="interactive", interactive={"type": "button_reply", "button_reply": {"title": "Perfect"}}
    )
    picked = text(
        "", 4, type="interactive", interactive={"type": "list_reply", "list_reply": {"title": "caro"}}
    )
    image = text("", 5, type="image", image={"id": "1"})
    notice = text("", 6, type="system", system={"body": "changed"})
    events = decode(
        "whatsapp", whatsapp(text("horrible"), button, reply, picked, image, notice, statuses=statuses)
    )
    assert [(each.external_event_id, each.payload) for each in events] == [
        ("wamid.1", {"sentiment_milli": -1000}),
        ("wamid.2", {"sentiment_milli": -500, "objections": ["need"]}),
        ("wamid.3", {"sentiment_milli": 1000}),
        ("wamid.4", {"objections": ["price"]}),
        ("wamid.5", {}),
    ]
    assert {each.occurred_at for each in events} == {"2026-02-25T06:13:20.000000Z"}
    assert {(each.channel, each.external_id) for event in events for each in event.identities} == {
        ("phone", "16505551234")
    }


def test_a_webhook_of_statuses_alone_has_no_events() -> None:
    payload = whatsapp(statuses=[{"id": "wamid.9", "status": "read"}])
    del payload["entry"][0]["changes"][0]["value"]["messages"]
    assert decode("whatsapp", payload) == []
    assert sources.source("whatsapp").parts(payload) == []
    other = {"entry": [{"changes": [{"field": "account_alerts", "value": 1}]}]}
    assert decode("whatsapp", other) == []


def test_a_batch_of_mail_events() -> None:
    kinds = [
        "processed",
        "delivered",
        "open",
        "click",
        "bounce",
        "dropped",
        "group_unsubscribe",
        "spamreport",
        "reply",
    ]
    batch = [{**MAIL, "event": kind, "sg_event_id": str(at)} for at, kind in enumerate(kinds)]
    batch.append({**MAIL, "sg_machine_open": True})
    events = decode("email_campaign", batch)
    assert [each.event_type.removeprefix("campaign_") for each in events] == [
        *("sent", "opened", "clicked", "bounced", "bounced", "unsubscribed", "unsubscribed", "replied")
    ]
    assert {each.payload["campaign_id"] for each in events} == {"12345"}


def test_the_campaign_may_be_a_category() -> None:
    mail = changed(MAIL, "marketing_campaign_id", ...)
    for more in (
        {"category": "spring"},
        {"category": ["spring", "b"]},
        {"campaign_id": "spring", "category": "x"},
    ):
        (event,) = decode("email_campaign", {**mail, **more})
        assert event.object_id == "spring"


@pytest.mark.parametrize(
    ("event_type", "data", "payload"),
    [
        ("page_viewed", {"category": "shoes", "product_id": 7}, {"category": "shoes", "product_id": "7"}),
        ("page_viewed", {}, {}),
        ("preference_stated", {"preferences": {"size": 42}}, {"preferences": {"size": 42}}),
        ("objection_raised", {"objections": ["price", "need", "price"]}, {"objections": ["need", "price"]}),
        ("campaign_clicked", {"campaign_id": "c"}, {"campaign_id": "c"}),
        (
            "message_received",
            {"text": "too expensive", "sentiment": 1},
            {"sentiment_milli": 1000, "objections": ["price"]},
        ),
        ("message_received", {"text": "too expensive", "objections": []}, {}),
        (
            "order_refunded",
            {"order_id": "o", "amount": "0.10", "currency": "USD"},
            {"order_id": "o", "amount_minor": 10, "currency": "USD"},
        ),
    ],
)
def test_our_own_shape(event_type: str, data: dict[str, Any], payload: dict[str, Any]) -> None:
    (event,) = decode("generic", generic(event_type, **data))
    assert (event.event_type, event.payload) == (event_type, payload)


def test_our_own_shape_takes_every_type_but_those_of_the_identity() -> None:
    from ingest.leads.sources.generic import READERS

    assert READERS.keys() == EVENT_TYPES - IDENTITY_TYPES


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
    ("ecommerce", changed(ORDER, "currency", "EUR"), "payload.currency", "must be USD"),
    ("ecommerce", changed(ORDER, "currency", ...), "payload.currency", "is missing"),
    ("ecommerce", changed(ORDER, "customer", None), "payload.customer", "no usable identity"),
    ("ecommerce", changed(ORDER, "customer", {"email": "n/a"}), "payload.customer", "no usable identity"),
    ("ecommerce", changed(ORDER, "line_items", {}), "payload.line_items", "must be array"),
    (
        "ecommerce",
        changed(ORDER, "line_items.0.quantity", -1),
        "payload.line_items.0.quantity",
        "whole number",
    ),
    ("ecommerce", changed(ORDER, "line_items.0", 1), "payload.line_items.0", "must be an object"),
    ("ecommerce", {**ORDER, "topic": "orders/paid"}, "payload.topic", "must be one of"),
    ("ecommerce", changed(REFUND, "order_id", ...), "payload.order_id", "is missing"),
    (
        "ecommerce",
        changed(REFUND, "transactions.0.currency", "EUR"),
        "payload.transactions.0.currency",
        "must be USD",
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
    ("web_form", {**FORM, "sentiment": 1.5}, "payload.sentiment", "from -1 to 1"),
    ("web_form", {**FORM, "objections": ["Too dear!"]}, "payload.objections", "must hold names"),
    ("web_form", {**FORM, "preferences": {"a": 1.5}}, "payload.preferences.a", "whole number"),
    ("web_form", {**FORM, "preferences": {"a": "x" * 129}}, "payload.preferences.a", "at most 128"),
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
    ("email_campaign", [changed(MAIL, "event", "sneezed")], "payload.0.event", "must be one of"),
    ("email_campaign", [changed(MAIL, "event", ["open"])], "payload.0.event", "must be one of"),
    ("generic", changed(GENERIC, "external_event_id", ...), "payload.external_event_id", "is missing"),
    ("generic", changed(GENERIC, "event_type", "leads_merged"), "payload.event_type", "must be one of"),
    ("generic", changed(GENERIC, "identities", {}), "payload.identities", "must contain"),
    ("generic", changed(GENERIC, "identities", {"email": []}), "payload.identities", "1 to 20"),
    ("generic", changed(GENERIC, "identities", {"email": "x"}), "payload.identities.email", "single @"),
    ("generic", changed(GENERIC, "identities", {"name": "x"}), "payload.identities.name", "no channel"),
    (
        "generic",
        changed(GENERIC, "identities", {"device": [str(n) for n in range(21)]}),
        "payload.identities",
        "1 to 20",
    ),
    ("generic", changed(GENERIC, "data.amount", ...), "payload.data.amount", "is missing"),
    ("generic", changed(GENERIC, "data.currency", "EUR"), "payload.data.currency", "must be USD"),
    ("generic", changed(GENERIC, "data", ...), "payload.data.amount", "is missing"),
    ("generic", {**GENERIC, "more": 1}, "payload", "unknown"),
    ("generic", generic("message_received", sentiment=-1.01), "payload.data.sentiment", "bigger than"),
    ("generic", generic("message_received", sentiment_milli=5), "payload.data", "unknown"),
    ("generic", generic("preference_stated"), "payload.data.preferences", "is missing"),
    ("generic", generic("objection_raised", objections=[]), "payload.data.objections", "1"),
    ("generic", generic("campaign_sent", campaign_id=""), "payload.data.campaign_id", "is missing"),
    ("generic", generic("page_viewed", category="a\nb"), "payload.data.category", "without blanks"),
]


@pytest.mark.parametrize(("source", "payload", "field", "reason"), BAD)
def test_a_bad_payload_is_refused_by_field_and_reason(
    source: str, payload: Any, field: str, reason: str
) -> None:
    opened = open_payload(payload, Envelope(source, CONTEXT), NOW)
    assert (opened.events, opened.broken) == ([], [])
    (error,) = opened.refused
    assert reason in error.reason, error
    assert error.field == field


def test_a_bad_event_of_a_batch_spoils_no_neighbour() -> None:
    batch = [MAIL, changed(MAIL, "timestamp", ...), {**MAIL, "sg_event_id": "sg-3"}]
    opened = open_payload(batch, Envelope("email_campaign", CONTEXT), NOW)
    assert [event.external_event_id for event, _ in opened.events] == ["sg-1", "sg-3"]
    assert [each.field for each in opened.refused] == ["payload.1.timestamp"]
    webhook = whatsapp(text("a"), text("b", 2, timestamp="x"), text("c", 3))
    opened = open_payload(webhook, Envelope("whatsapp", CONTEXT), NOW)
    assert [event.external_event_id for event, _ in opened.events] == ["wamid.1", "wamid.3"]
    assert [each.field for each in opened.refused] == ["payload.entry.0.changes.0.value.messages.1.timestamp"]


@pytest.mark.parametrize("source", sorted(GOOD))
def test_parts_are_payloads_of_their_own_and_resends_are_the_same(source: str) -> None:
    for payload in GOOD[source]:
        whole = decode(source, payload)
        again = decode(source, json.loads(json.dumps(payload)), Context("acme", "shop", "USD", "2027"))
        assert whole == again, "when it arrived must not matter"
        parts = sources.source(source).parts(payload)
        assert [event for part in parts for event in decode(source, part.payload)] == whole
        resent = sources.source(source).parts(json.loads(json.dumps(payload)))
        assert [digest(part) for part in parts] == [digest(part) for part in resent]
        assert len({digest(part) for part in parts}) == len(parts)


def test_there_are_good_payloads_of_every_source() -> None:
    assert sorted(GOOD) == sources.names()


@pytest.mark.parametrize("source", sorted(GOOD))
def test_nobody_s_words_are_in_what_is_derived(source: str) -> None:
    for payload in GOOD[source]:
        for event in decode(source, payload):
            assert "love" not in json.dumps(event.payload)
            assert "caro" not in json.dumps(event.payload)


def test_a_decoded_event_can_be_stored_and_read() -> None:
    for source, payloads in GOOD.items():
        for event in (each for payload in payloads for each in decode(source, payload)):
            stored = stored_event(event, Envelope(source, CONTEXT), "leaf", "root")
            read = from_item({name: each for name, each in to_item(stored).items() if each is not None})
            assert read == stored


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(
        ["1772000000", "2026-03-01T00:00:00Z", "a@b.c", "16505551234", "refund", "open", "text"]
    )
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def trails(payload: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every value inside a payload."""
    inner: Any = (
        payload.items()
        if isinstance(payload, dict)
        else enumerate(payload)
        if isinstance(payload, list)
        else ()
    )
    here = [above] if above else []
    return here + [trail for key, each in inner for trail in trails(each, (*above, key))]


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_value_anywhere_decodes_or_is_refused(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(sorted(GOOD)))
    payload = copy.deepcopy(data.draw(st.sampled_from(GOOD[source])))
    for _ in range(data.draw(st.integers(1, 2))):
        *above, last = data.draw(st.sampled_from(trails(payload)))
        holder = payload
        for key in above:
            holder = holder[key]
        holder[last] = data.draw(values)
        if not trails(payload):
            break
    opened = open_payload(payload, Envelope(source, CONTEXT), NOW)
    assert opened.broken == []
    for event, part in opened.events:
        assert event.event_type in EVENT_TYPES - IDENTITY_TYPES
        assert event.identities
        assert event.external_event_id
        assert stamp(unstamp(event.occurred_at)) == event.occurred_at
        stored_event(event, Envelope(source, CONTEXT), "leaf", "root")
        assert event in decode(source, part.payload)


@given(st.sampled_from(sorted(GOOD)), values)
@settings(max_examples=100, deadline=None)
def test_any_json_decodes_or_is_refused(source: str, payload: Any) -> None:
    assert open_payload(payload, Envelope(source, CONTEXT), NOW).broken == []


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(1, 9)), max_size=8))
@settings(max_examples=40)
def test_lines_of_one_product_are_summed(lines: list[tuple[str, int]]) -> None:
    found = products([{"sku": sku, "quantity": quantity} for sku, quantity in lines], "l")
    assert {each["product_id"]: each["quantity"] for each in found} == {
        sku: sum(quantity for other, quantity in lines if other == sku) for sku, _ in lines
    }


NEW_SOURCE = """
from ingest.leads.decoding import Decoded, identities, moment, text_id

def decode(payload, context):
    who = identities([("email", payload["who"])], context, "who")
    return [Decoded(text_id(payload["id"], "id"), "page_viewed", moment(payload["at"], "at"), who)]
"""


def test_a_new_source_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kiosk.py").write_text(NEW_SOURCE)
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(tmp_path)])
    sources.names.cache_clear()
    try:
        assert "kiosk" in sources.names()
        message = {"organization_id": "acme", "source": "kiosk", "payload": {}}
        sent = envelope(message, "USD", NOW)
        payload = {"id": "1", "at": "2026-03-01T00:00:00Z", "who": "a@b.c"}
        ((event, _),) = open_payload(payload, sent, NOW).events
        assert (event.event_type, sent.context.source) == ("page_viewed", "acme/kiosk")
        broken = open_payload({}, sent, NOW)
        assert isinstance(broken.broken[0], KeyError), "a decoder's bug is told apart from a bad payload"
    finally:
        sources.names.cache_clear()
        sources.source.cache_clear()


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
        ({**MESSAGE, "payload": {"a": float("nan")}}, "message", "JSON"),
        ({**MESSAGE, "payload": {"a": "\ud800"}}, "message", "surrogates"),
    ],
)
def test_a_bad_envelope_is_refused_by_field_and_reason(message: Any, field: str, reason: str) -> None:
    with pytest.raises(BadEnvelope) as refused:
        envelope(message, "USD", NOW)
    assert refused.value.field == field
    assert reason in refused.value.reason


def test_a_message_says_what_the_request_said() -> None:
    sent = envelope({**MESSAGE, "integration": "crm", "received_at": "2026-03-10T05:00:00Z"}, "USD", NOW)
    assert sent.context == Context("acme", "crm", "USD", "2026-03-10T05:00:00.000000Z")
    assert envelope(sent.message(), "USD", NOW) == sent


def test_decimals_read_exactly() -> None:
    assert decimal(0.1, "n") == Decimal("0.1")
    assert decimal(5, "n") == 5
