"""Orders, forms, messages, mails and our own shape: what each becomes, to the last minor unit, and what it proves."""

import itertools
import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.warehouse.models import models
from ingest.leads import sources
from ingest.leads.lead_accept import Envelope, open_payload, part_digest, stored_event
from ingest.leads.readers import DecodedEvent, DecodeError, minor_units
from rules.leads.identity import Identity, in_order
from rules.leads.lead_events import EVENT_TYPES, IDENTITY_TYPES, LeadEvent
from rules.leads.memory import remembered_entries
from tests.support.examples import examples
from tests.support.webhooks import (
    CONTEXT,
    FORM,
    GENERIC,
    MAIL,
    NOW,
    ORDER,
    REFUND,
    changed,
    decode,
    generic,
    text,
    whatsapp,
)


def test_a_form_tells_what_was_said_and_not_the_words() -> None:
    (event,) = decode("web_form", FORM)
    assert event.payload == {"objections": ["timing"], "preferences": FORM["preferences"]}
    assert {each.channel for each in event.identities} == {"email", "phone", "cookie"}
    assert (event.object_id, event.object_id_ref) == ("contact", "form")
    assert event.occurred_at == "2026-03-01T09:00:00.000000Z"


@pytest.mark.parametrize("source", ["web_form", "whatsapp", "generic"])
def test_a_score_is_given_or_there_is_none(source: str) -> None:
    payload = {
        "web_form": {**FORM, "sentiment": -0.1234},
        "whatsapp": whatsapp(text("I love it", sentiment=-0.1234)),
        "generic": generic("message_received", text="I love it", sentiment=-0.1234),
    }[source]
    (event,) = decode(source, payload)
    assert event.payload["sentiment_milli"] == -123
    (guessed,) = decode("whatsapp", whatsapp(text("I would like a refund")))
    assert guessed.payload == {}


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
        ("wamid.1", {}),
        ("wamid.2", {"objections": ["need"]}),
        ("wamid.3", {}),
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
    assert list(sources.source_named("whatsapp").parts(payload)) == []
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


def test_a_blocked_mail_has_bounced() -> None:
    for blocked in ({"event": "blocked"}, {"event": "bounce", "type": "blocked"}):
        (event,) = decode("email_campaign", {**MAIL, **blocked})
        assert event.event_type == "campaign_bounced"


@pytest.mark.parametrize("mark", [True, "true", "True", 1])
def test_a_machine_that_opens_a_mail_is_no_reader(mark: object) -> None:
    assert decode("email_campaign", {**MAIL, "event": "open", "sg_machine_open": mark}) == []
    (event,) = decode("email_campaign", {**MAIL, "event": "click", "sg_machine_open": mark})
    assert event.event_type == "campaign_clicked"


def test_the_campaign_may_be_a_category() -> None:
    mail = changed(MAIL, "marketing_campaign_id", ...)
    for more in (
        {"category": "spring"},
        {"category": ["spring", "b"]},
        {"category": ["", " spring "]},
        {"campaign_id": "spring", "category": "x"},
        {"campaign_id": {"id": 7}, "singlesend_id": "", "category": ["x" * 257, "spring"]},
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


def test_the_warehouse_expects_every_type() -> None:
    declared = models()["staging.lead_events"].tests["accepted_values"]["event_type"]
    assert set(declared) == EVENT_TYPES


def test_who_says_stop_is_remembered_to_have_said_so() -> None:
    """https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/user_preferences"""
    stopped, resumed = (
        {
            "wa_id": "16505551234",
            "category": "marketing_messages",
            "value": value,
            "timestamp": 1772000000 + at,
        }
        for at, value in enumerate(("stop", "resume"))
    )
    value = {"messaging_product": "whatsapp", "user_preferences": [stopped, resumed]}
    webhook = {"entry": [{"changes": [{"field": "user_preferences", "value": value}]}]}
    events = [*decode("whatsapp", whatsapp(text("Stop!"))), *decode("whatsapp", webhook)]
    assert [each.payload for each in events] == [
        {"consent": {"notifications": n}} for n in ("off", "off", "on")
    ]
    parts = [
        each
        for part in sources.source_named("whatsapp").parts(webhook)
        for each in decode("whatsapp", part.payload)
    ]
    assert parts == events[1:]
    assert len({each.external_event_id for each in events}) == 3


def test_a_word_of_consent_outlives_every_other_memory_and_the_newest_counts() -> None:
    told = [
        LeadEvent("o", "leaf", "leaf", "o/whatsapp", "whatsapp", str(number), "message_received",
                  f"2026-03-0{number}T00:00:00.000000Z", "2026-03-09T00:00:00.000000Z",
                  {"consent": {"notifications": value}})
        for number, value in ((2, "off"), (1, "on"))
    ]  # fmt: skip
    found = remembered_entries(told)["consent#notifications"]
    assert (found.value, found.expires_at > datetime(2100, 1, 1, tzinfo=UTC).timestamp()) == ("off", True)


@pytest.mark.parametrize("kind", ["unsubscribe", "group_unsubscribe", "spamreport"])
@pytest.mark.parametrize("category", [None, [], ""])
def test_who_unsubscribes_by_a_mail_of_no_campaign_wants_no_more_messages(kind: str, category: Any) -> None:
    mail = {**changed(MAIL, "event", kind), "category": category, "asm_group_id": 10}
    mail = {name: each for name, each in mail.items() if "campaign" not in name and "singlesend" not in name}
    signed = replace(CONTEXT, is_signed=True)
    (event,) = decode("email_campaign", [mail], signed)
    assert (event.event_type, event.payload) == ("preference_stated", {"consent": {"notifications": "off"}})
    assert [each.external_id for each in event.identities] == [mail["email"]]


@pytest.mark.parametrize("is_signed", [True, False])
@pytest.mark.parametrize("kind", ["unsubscribe", "spamreport", "group_unsubscribe"])
def test_who_refuses_all_mail_by_a_campaign_s_mail_wants_no_more_messages(kind: str, is_signed: bool) -> None:
    context = replace(CONTEXT, is_signed=is_signed)
    (event,) = decode("email_campaign", {**MAIL, "event": kind, "asm_group_id": 10}, context)
    assert (event.event_type, event.object_id) == ("campaign_unsubscribed", "12345")
    is_of_all = kind != "group_unsubscribe"
    remembered = remembered_entries(
        [stored_event(event, Envelope("email_campaign", context), "leaf", "leaf")]
    )
    assert {name: each.value for name, each in remembered.items()} == {
        "campaign_contact#12345": "unsubscribed 2026-02-25",
        **({"consent#notifications": "off"} if is_of_all else {}),
    }


@pytest.mark.parametrize(
    "reason", ["Unsubscribed Address", "SPAM REPORTING ADDRESS", " unsubscribed  address"]
)
def test_a_mail_that_is_dropped_because_somebody_has_unsubscribed_tells_that(reason: str) -> None:
    dropped = {**MAIL, "event": "dropped", "reason": reason}
    (event,) = decode("email_campaign", [dropped], replace(CONTEXT, is_signed=True))
    assert (event.event_type, event.object_id, event.is_opt_out) == ("campaign_bounced", "12345", True)
    stored = stored_event(event, Envelope("email_campaign", CONTEXT), "leaf", "leaf")
    assert {name: each.value for name, each in remembered_entries([stored]).items()} == {
        "campaign_contact#12345": "bounced 2026-02-25",
        "consent#notifications": "off",
    }
    of_no_campaign = {"email": "ada@example.com", "event": "dropped", "reason": reason}
    (event,) = decode("email_campaign", [of_no_campaign], replace(CONTEXT, is_signed=True))
    assert (event.event_type, event.payload) == ("preference_stated", {"consent": {"notifications": "off"}})


@pytest.mark.parametrize("reason", ["Bounced Address", "Invalid", "Spam Content", None, 7])
def test_an_address_that_does_not_work_is_no_decision_of_a_person(reason: Any) -> None:
    (event,) = decode("email_campaign", [{**MAIL, "event": "dropped", "reason": reason}])
    assert (event.event_type, event.payload) == ("campaign_bounced", {"campaign_id": "12345"})


def test_who_wants_one_kind_of_mail_again_does_not_want_all_messages_again() -> None:
    told = [{**MAIL, "event": kind, "timestamp": 1772000000 + at, "sg_event_id": str(at)}
            for at, kind in enumerate(("unsubscribe", "group_resubscribe", "group_unsubscribe"))]  # fmt: skip
    events = decode("email_campaign", told, replace(CONTEXT, is_signed=True))
    stored = [stored_event(each, Envelope("email_campaign", CONTEXT), "leaf", "leaf") for each in events]
    assert remembered_entries(stored)["consent#notifications"].value == "off"


def test_an_order() -> None:
    (event,) = decode("ecommerce", ORDER)
    assert (event.external_event_id, event.event_type) == ("order:820982911946154508", "purchase_completed")
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
        (" 11.77\n", "USD", 1177),
        ("+11.77", "USD", 1177),
        (".99", "USD", 99),
        ("11.", "USD", 1100),
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
        ("1 1", "USD", "decimal number"),
        (".", "USD", "decimal number"),
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
@settings(max_examples=examples(60))
def test_an_amount_survives_its_json_as_number_and_as_text(minor: int, currency: str) -> None:
    exponent = {"USD": 2, "JPY": 0, "BHD": 3}[currency]
    written = str(Decimal(minor).scaleb(-exponent))
    for sent in (json.loads(written), written):
        assert minor_units(sent, currency, "amount") == minor


def proven(source: str, payload: Any) -> dict[str, bool]:
    (event,) = decode(source, payload)
    return {each.channel: each.is_verified for each in event.identities}


def test_a_form_proves_nothing() -> None:
    assert proven("web_form", FORM) == {"email": False, "phone": False, "cookie": False}
    assert proven("web_form", {**FORM, "customer_id": "7"})["customer"] is False


def test_a_shop_s_customer_is_proven_and_a_guest_s_contact_is_not() -> None:
    assert set(proven("ecommerce", ORDER).values()) == {True}
    assert proven("ecommerce", {**ORDER, "customer": None, "email": "guest@example.com"}) == {"email": False}


@pytest.mark.parametrize("sender", ["16505551234", "+16505551234"])
def test_a_sender_of_whatsapp_is_proven(sender: str) -> None:
    payload = whatsapp({**text("hello"), "from": sender})
    assert proven("whatsapp", payload) == {"phone": True}
    assert decode("whatsapp", payload)[0].identities == (Identity("phone", "16505551234"),)


def test_a_sender_in_our_own_format_says_what_is_only_claimed() -> None:
    who = {"customer": "7", "email": "ada@example.com"}
    assert proven("generic", {**GENERIC, "identities": who}) == {"customer": True, "email": True}
    claimed = {**GENERIC, "identities": who, "claimed": ["email"]}
    assert proven("generic", claimed) == {"customer": True, "email": False}
    with pytest.raises(DecodeError, match="claimed"):
        decode("generic", {**GENERIC, "claimed": "email"})


def test_what_is_proven_anywhere_in_an_event_is_proven() -> None:
    sure, claimed = Identity("email", "a@x"), Identity("email", "a@x", is_verified=False)
    assert sure == claimed
    for both in ([sure, claimed], [claimed, sure]):
        assert [each.is_verified for each in in_order(both)] == [True]


ANN = {"id": 7, "email": "ann@example.com", "phone": "+16505551234", "updated_at": "2026-03-05T00:00:00Z",
       "first_name": "Ann", "addresses": [], "currency": "USD", "created_at": "2026-03-01T00:00:00Z"}  # fmt: skip
SINCE = "2026-03-02T00:00:00Z"
STATES = {"subscribed": "on", "unsubscribed": "off", "not_subscribed": "off", "redacted": "off", "invalid": "off",
          "pending": None}  # fmt: skip


def consent(state: Any, since: Any = SINCE) -> dict[str, Any]:
    return {"state": state, "opt_in_level": "single_opt_in", "consent_updated_at": since, "updated_at": since}


def of_mail(told: Any) -> tuple[str, dict[str, Any]]:
    who = {"customer_id": 7, "email_address": "ann@example.com"}
    return "customers_email_marketing_consent/update", {**who, "email_marketing_consent": told}


def of_texts(told: Any) -> tuple[str, dict[str, Any]]:
    return "customers_marketing_consent/update", {
        "id": 7,
        "phone": "+16505551234",
        "sms_marketing_consent": told,
    }


def of_whatsapp(told: Any) -> tuple[str, dict[str, Any]]:
    who = {"customer_id": 7, "phone_number": "+16505551234"}
    return "customers_whats_app_marketing_consent/update", {**who, "whats_app_marketing_consent": told}


def of_customer(told: Any) -> tuple[str, dict[str, Any]]:
    return "customers/update", {**ANN, "email_marketing_consent": told}


def read_consent(topic: str, body: Any) -> list[DecodedEvent]:
    """What a shop's webhook of a consent becomes: the same by its topic and by its shape, whole and in its part."""
    signed = replace(CONTEXT, is_signed=True)
    events = decode("ecommerce", body, replace(signed, topic=topic))
    (part,) = sources.source_named("ecommerce").parts(body)
    assert (
        events
        == decode("ecommerce", body, signed)
        == decode("ecommerce", part.payload, replace(signed, topic=topic))
    )
    return events


@pytest.mark.parametrize("told_by", [of_mail, of_texts, of_whatsapp, of_customer])
@pytest.mark.parametrize(("state", "meaning"), STATES.items())
def test_consent_is_what_the_shop_says(told_by: Any, state: str, meaning: str | None) -> None:
    for word in (state, state.upper()):
        events = read_consent(*told_by(consent(word)))
        channel = {of_texts: "sms", of_whatsapp: "whatsapp"}.get(told_by)
        of_one = {"consent_channel": channel} if channel else {}
        assert [each.payload for each in events] == (
            [{"consent": {"notifications": meaning}, **of_one}] if meaning else []
        )
        for event in events:
            assert (event.event_type, event.occurred_at) == (
                "preference_stated",
                "2026-03-02T00:00:00.000000Z",
            )
            assert event.identities[0] == Identity("customer", "acme/shop/7")
            assert len(event.identities) >= 2


@pytest.mark.parametrize("told_by", [of_mail, of_texts, of_whatsapp, of_customer])
def test_without_a_time_only_an_opt_out_counts(told_by: Any) -> None:
    for since in (None, ""):
        for state in STATES:
            events = read_consent(*told_by(consent(state, since)))
            assert [each.is_opt_out for each in events] == ([True] if state == "unsubscribed" else [])
    (event,) = read_consent(*told_by(consent("unsubscribed", "soon")))
    assert event.occurred_at == CONTEXT.received_at
    for state in ("subscribed", "not_subscribed"):
        with pytest.raises(DecodeError, match="updated_at"):
            read_consent(*told_by(consent(state, "soon")))


@pytest.mark.parametrize("told", [consent("asked"), consent(7), "asked", 7, ["unsubscribed"], {"state": {}}])
def test_a_consent_that_cannot_be_read_is_kept_for_an_operator(told: Any) -> None:
    for told_by in (of_mail, of_texts, of_whatsapp, of_customer):
        with pytest.raises(DecodeError, match="state must be one of subscribed, not_subscribed"):
            read_consent(*told_by(told))
    for topic in ("customers_fax_marketing_consent/update", of_mail(None)[0], of_texts(None)[0]):
        with pytest.raises(DecodeError, match="we do not read this consent"):
            decode("ecommerce", {"id": 7}, replace(CONTEXT, topic=topic))


@pytest.mark.parametrize("told_by", [of_mail, of_texts, of_whatsapp, of_customer])
def test_a_consent_of_no_state_is_kept_for_an_operator_and_its_state_has_two_names(told_by: Any) -> None:
    for told in ({}, {"opt_in_level": "single_opt_in"}, consent(None), consent("")):
        with pytest.raises(DecodeError, match="state is missing"):
            read_consent(*told_by(told))
    told = {**consent(None), "marketing_state": "UNSUBSCRIBED"}
    assert read_consent(*told_by(told)) and read_consent(*told_by(told))[0].is_opt_out


@pytest.mark.parametrize(
    ("accepts", "since", "meanings"),
    [
        *((False, SINCE, ["off"]), (True, SINCE, ["on"]), (False, None, []), (True, None, [])),
        *((None, SINCE, []), ("", SINCE, [])),
    ],
)
def test_an_older_shop_says_whether_a_customer_accepts_marketing(
    accepts: Any, since: Any, meanings: list[str]
) -> None:
    told = {**ANN, "accepts_marketing": accepts, "accepts_marketing_updated_at": since}
    events = read_consent("customers/update", told)
    assert [each.payload for each in events] == [{"consent": {"notifications": word}} for word in meanings]
    for event in events:
        assert event.occurred_at == "2026-03-02T00:00:00.000000Z"
    (event,) = read_consent("customers/update", {**told, "email_marketing_consent": consent("unsubscribed")})
    assert event.is_opt_out, "the field that took its place counts alone"
    for odd in (
        {"accepts_marketing": "no"},
        {"accepts_marketing": False, "accepts_marketing_updated_at": "?"},
    ):
        with pytest.raises(DecodeError, match="accepts_marketing"):
            read_consent("customers/update", {**ANN, **odd})


@pytest.mark.parametrize("topic", ["orders/create", "orders/updated", "orders/paid", "orders/delete", ""])
def test_the_customer_of_an_order_states_consent_whatever_becomes_of_the_order(topic: str) -> None:
    envelope = Envelope("ecommerce", replace(CONTEXT, topic=topic, is_signed=True))
    told = {**ANN, "email_marketing_consent": consent("unsubscribed"), "sms_marketing_consent": None}
    order = {**ORDER, "customer": told, "buyer_accepts_marketing": True}
    found = [
        open_payload({**order, "updated_at": at}, envelope, NOW) for at in (None, "2026-03-06T00:00:00Z")
    ]
    stated = [
        [(each, part_digest(part)) for each, part in opened.events if each.is_opt_out] for opened in found
    ]
    assert stated[0] == stated[1], "an order that is told again states no other consent"
    ((event, _),) = stated[0]
    assert (event.event_type, event.occurred_at) == ("preference_stated", "2026-03-02T00:00:00.000000Z")
    assert event.identities[0] == Identity("customer", "acme/shop/7")
    orders = [each.event_type for each, _ in found[0].events if not each.is_opt_out]
    assert orders == ([] if topic == "orders/delete" else ["purchase_completed"])
    without_total = open_payload({**order, "total_price": None, "total_price_set": None}, envelope, NOW)
    assert [each.is_opt_out for each, _ in without_total.events] == [True]


def test_an_order_counts_though_its_customer_s_consent_cannot_be_read() -> None:
    envelope = Envelope("ecommerce", replace(CONTEXT, topic="orders/create", is_signed=True))
    for told, refused in (
        (consent("asked"), ["payload.customer.email_marketing_consent.state"]),
        (consent("pending"), []),
        (consent("not_subscribed", None), []),
        (None, []),
    ):
        customer = {**ANN, "email_marketing_consent": told, "accepts_marketing": False}
        opened = open_payload({**ORDER, "customer": customer}, envelope, NOW)
        assert [each.event_type for each, _ in opened.events] == ["purchase_completed"]
        assert [each.field for each in opened.refusals] == refused


def test_of_two_channels_an_opt_out_wins_and_hangs_on_no_other() -> None:
    off, on = consent("unsubscribed"), consent("subscribed", "2026-03-04T00:00:00Z")
    for mail, texts in ((off, on), (on, off), (off, consent("?")), (7, off), (off, None)):
        (event,) = read_consent(
            "customers/update", {**ANN, "email_marketing_consent": mail, "sms_marketing_consent": texts}
        )
        assert (event.is_opt_out, event.occurred_at) == (True, "2026-03-02T00:00:00.000000Z")
    both = {**ANN, "email_marketing_consent": on, "sms_marketing_consent": consent("subscribed")}
    (event,) = read_consent("customers/update", both)
    assert (event.payload, event.occurred_at) == (
        {"consent": {"notifications": "on"}},
        "2026-03-04T00:00:00.000000Z",
    )


def test_a_customer_who_changes_otherwise_states_no_other_consent() -> None:
    topic, body = of_customer(consent("unsubscribed"))
    (first,) = read_consent(topic, body)
    (again,) = read_consent(topic, {**body, "updated_at": "2026-03-06T00:00:00Z", "first_name": "Anne"})
    assert first == again
    assert read_consent(*of_customer(None)) == []
    assert decode("ecommerce", ANN, replace(CONTEXT, topic="customers/create")) == []
    with pytest.raises(DecodeError, match="customer has no usable identity"):
        read_consent(topic, {"email_marketing_consent": consent("unsubscribed")})
    with pytest.raises(DecodeError, match="the body tells of an order"):
        decode("ecommerce", {**ORDER, **body}, replace(CONTEXT, topic=topic))


def merge(kept: Any, deleted: Any, **more: Any) -> dict[str, Any]:
    ids = {"admin_graphql_api_customer_kept_id": kept, "admin_graphql_api_customer_deleted_id": deleted}
    return {**ids, "admin_graphql_api_job_id": None, "status": "completed", "errors": [], **more}


def test_customers_that_a_shop_has_joined_are_one_person() -> None:
    context = replace(CONTEXT, topic="customers/merge", is_signed=True)
    for body in (
        merge("gid://shopify/Customer/7", "gid://shopify/Customer/8"),
        merge(7, "8", status="SUCCESS"),
    ):
        (event,) = decode("ecommerce", body, context)
        assert event.event_type == "identity_replaced"
        assert [each.external_id for each in event.identities] == ["acme/shop/7", "acme/shop/8"]
        assert decode("ecommerce", body, replace(context, topic="")) == [event]
    for status in ("in_progress", "requested"):
        assert decode("ecommerce", merge(7, 8, status=status), context) == []
    for body, reason in (
        (merge(7, 8, status="failed"), "status is failed: the shop has not joined"),
        (merge(7, 7), "must name another customer"),
        (merge(7, None), "deleted_id is missing"),
        (merge("gid://shopify/Order/7", 8), "must be a customer's id"),
    ):
        with pytest.raises(DecodeError, match=reason):
            decode("ecommerce", body, context)


ORDERS_OF_CONSENT: list[tuple[list[tuple[Any, str]], str]] = [
    ([(of_mail, "subscribed"), (of_mail, "unsubscribed")], "off"),
    ([(of_mail, "unsubscribed"), (of_mail, "subscribed")], "on"),
    ([(of_texts, "unsubscribed"), (of_texts, "subscribed")], "on"),
    ([(of_mail, "unsubscribed"), (of_texts, "subscribed")], "off"),
    ([(of_mail, "unsubscribed"), (of_whatsapp, "subscribed"), (of_texts, "subscribed")], "off"),
    ([(of_texts, "unsubscribed"), (of_whatsapp, "subscribed")], "off"),
    ([(of_texts, "unsubscribed"), (of_mail, "subscribed")], "on"),
    ([(of_mail, "subscribed"), (of_texts, "unsubscribed"), (of_whatsapp, "subscribed")], "off"),
    ([(of_texts, "subscribed")], "on"),
]  # fmt: skip


@pytest.mark.parametrize(("told", "value"), ORDERS_OF_CONSENT)
def test_a_subscription_to_one_channel_brings_back_no_other(told: list[tuple[Any, str]], value: str) -> None:
    """In any order of arrival: the times count that the shop names."""
    stored = []
    for day, (told_by, state) in enumerate(told, 1):
        (event,) = read_consent(*told_by(consent(state, f"2026-03-0{day}T00:00:00Z")))
        stored.append(stored_event(event, Envelope("ecommerce", CONTEXT), "leaf", "leaf"))
    for arrived in itertools.permutations(stored):
        assert remembered_entries(arrived)["consent#notifications"].value == value
