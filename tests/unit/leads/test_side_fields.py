"""What an event must have refuses it; a side field never does: it is left out, and the answer says so."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ingest.leads.lead_accept import Envelope, open_payload
from ingest.leads.readers import DecodeContext, DecodedEvent
from rules.days import stamp
from rules.leads.lead_events import FUTURE_MAX
from tests.support.vendor_bodies import shopify_order, shopify_refund
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
    preference,
    system,
    text,
    whatsapp,
)

LINE = {"product_id": 7, "quantity": 2}


def _field_names(payload: Any, where: str) -> Iterator[str]:
    """The paths of all fields of the object at a path, those of objects within it too."""
    for step in filter(None, where.split(".")):
        payload = payload[int(step) if isinstance(payload, list) else step]
    for name, value in payload.items():
        yield name
        if isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in _field_names(value, ""))


def read(source: str, payload: Any) -> Any:
    opened = open_payload(payload, Envelope(source, CONTEXT), NOW)
    assert (opened.refusals, opened.decoder_bugs) == ([], [])
    ((event, _),) = opened.events
    return event


@pytest.mark.parametrize(
    ("line", "products", "omitted"),
    [
        ({"product_id": None, "sku": "GIFT-WRAP ", "quantity": 1}, [("GIFT-WRAP", 1)], []),
        ({"product_id": 7, "quantity": "1"}, [("7", 1)], []),
        ({"product_id": "7", "quantity": 1.0}, [("7", 1)], []),
        ({"product_id": 7.0, "quantity": None}, [("7", 1)], []),
        ({"product_id": 7}, [("7", 1)], []),
        ({"product_id": 7, "quantity": "two"}, [("7", 1)], ["line_items.0.quantity"]),
        ({"product_id": 7, "quantity": [1]}, [("7", 1)], ["line_items.0.quantity"]),
        ({"product_id": 7, "quantity": 0.5}, [("7", 1)], ["line_items.0.quantity"]),
        ({"product_id": 7, "quantity": 10**30}, [("7", 1)], ["line_items.0.quantity"]),
        ({"product_id": 7, "quantity": 0}, [], []),
        ({"product_id": 7, "quantity": -1}, [], ["line_items.0.quantity"]),
        ({"product_id": {"id": 7}, "sku": "B"}, [("B", 1)], ["line_items.0.product_id"]),
        ({"product_id": True, "sku": "a\nb"}, [], ["line_items.0.product_id", "line_items.0.sku"]),
        ({"sku": "x" * 300}, [], ["line_items.0.sku"]),
        ({"title": "a tip", "price": "odd", "quantity": 1}, [], []),
        (7, [], ["line_items.0"]),
        (None, [], ["line_items.0"]),
        ([LINE], [], ["line_items.0"]),
    ],
)
def test_an_odd_line_leaves_the_order_and_its_other_lines(
    line: Any, products: list[tuple[str, int]], omitted: list[str]
) -> None:
    event = read("ecommerce", {**ORDER, "line_items": [line, {"product_id": "other", "quantity": 3}]})
    listed = [(each["product_id"], each["quantity"]) for each in event.payload["products"]]
    assert listed == [*products, ("other", 3)]
    assert [each.field for each in event.omissions] == omitted
    assert event.payload["amount_minor"] == 1177


@pytest.mark.parametrize(
    ("fields", "omitted"),
    [
        ({"line_items": None}, []),
        ({"line_items": {}}, ["line_items"]),
        ({"line_items": "none"}, ["line_items"]),
        ({"updated_at": "yesterday"}, ["updated_at"]),
        ({"updated_at": 1772000000}, ["updated_at"]),
        ({"processed_at": "soon"}, ["processed_at"]),
        ({"processed_at": {}}, ["processed_at"]),
        ({"financial_status": ["paid"]}, []),
        ({"financial_status": {}, "cancelled_at": False}, []),
        ({"refunds": {"id": 1}}, ["refunds"]),
        ({"refunds": [7, {**REFUND, "id": None}]}, ["refunds.0", "refunds.1.id"]),
        (
            {"refunds": [{**REFUND, "transactions": [{"amount": "odd"}]}]},
            ["refunds.0.transactions.0.currency"],
        ),
        ({"topic": 7}, ["topic"]),
        ({"test": "no"}, []),
    ],
)
def test_an_order_needs_id_time_currency_and_total(fields: dict[str, Any], omitted: list[str]) -> None:
    event = read("ecommerce", {**ORDER, **fields})
    assert (event.external_event_id, event.occurred_at) == (
        "order:820982911946154508",
        "2026-03-02T04:30:00.000000Z",
    )
    assert (event.payload["amount_minor"], event.payload["currency"]) == (1177, "USD")
    assert [each.field for each in event.omissions] == omitted


@pytest.mark.parametrize(
    ("customer", "who", "omitted"),
    [
        (
            {"id": 5, "email": "ada@example.com", "phone": "none"},
            ["acme/shop/5", "ada@example.com"],
            ["customer.phone"],
        ),
        ({"id": "5"}, ["acme/shop/5"], []),
        ({"id": 5.0, "email": ["ada@example.com"]}, ["acme/shop/5"], ["customer.email"]),
        ({"id": {"gid": 5}, "email": "ada@example.com"}, ["ada@example.com"], ["customer.customer"]),
        ([{"id": 5}], [], ["customer", "customer"]),
        ("ada", [], ["customer", "customer"]),
        ({"email": "n/a"}, [], ["customer.email", "customer"]),
        (None, [], ["customer"]),
    ],
)
def test_an_order_needs_no_customer_to_be_kept(customer: Any, who: list[str], omitted: list[str]) -> None:
    event = read("ecommerce", {**ORDER, "customer": customer})
    assert [each.external_id for each in event.identities] == who
    assert [each.field for each in event.omissions] == omitted


def test_ids_are_the_same_as_numbers_and_as_texts() -> None:
    for order_id in (7, "7", 7.0):
        assert read("ecommerce", {**ORDER, "id": order_id}).external_event_id == "order:7"
        refund = {**shopify_refund(9, 7, NOW, "1.00"), "order_id": order_id, "id": 9.0}
        refund["transactions"][0]["id"] = "90"
        event = read("ecommerce", refund)
        assert (event.external_event_id, event.object_id) == ("refund:9", "7")
        assert event.order.state.paid_back.keys() == {"9/90"}


@pytest.mark.parametrize(
    ("fields", "payload", "omitted"),
    [
        ({"sentiment": 1.5}, {}, ["sentiment"]),
        ({"sentiment": "good"}, {}, ["sentiment"]),
        ({"objections": ["Too dear!", "need"]}, {"objections": ["need"]}, ["objections.0"]),
        ({"objections": "need"}, {}, ["objections"]),
        ({"preferences": {"a": 1.5, "b": 2}}, {"preferences": {"b": 2}}, ["preferences.a"]),
        ({"preferences": {"a": "x" * 129, "B": 1}}, {}, ["preferences.a", "preferences"]),
        ({"preferences": ["a"]}, {}, ["preferences"]),
        ({"form_id": {"id": 1}}, {}, ["form_id"]),
    ],
)
def test_a_form_needs_somebody(fields: dict[str, Any], payload: dict[str, Any], omitted: list[str]) -> None:
    bare = {name: FORM[name] for name in ("submission_id", "submitted_at")}
    event = read("web_form", {**bare, "fields": {"email": "ada@example.com", "phone": "n/a"}, **fields})
    assert event.payload == payload
    assert [each.field for each in event.omissions] == [*(["form_id"] if "form_id" in fields else []), "fields.phone", *(
        each for each in omitted if each != "form_id")]  # fmt: skip


@pytest.mark.parametrize(
    ("payload", "omitted"),
    [
        ({**GENERIC, "more": 1}, [""]),
        ({**GENERIC, "object": "o"}, ["object"]),
        ({**GENERIC, "object": {"id": [], "type": "\n"}}, ["object.type", "object.id"]),
        (changed(GENERIC, "identities", {"email": "ada@example.com", "phone": "x"}), ["identities.phone"]),
        (changed(GENERIC, "identities", {"device": ["d", None]}), ["identities.device"]),
        (changed(GENERIC, "data.products", "none"), ["data.products"]),
        (generic("message_received", sentiment=-1.01), ["data.sentiment"]),
        (generic("message_received", sentiment_milli=5, text=7), ["data"]),
        (generic("page_viewed", category="a\nb", product_id=7.0), ["data.category"]),
        ({**generic("page_viewed"), "data": None}, ["data"]),
    ],
)
def test_our_own_shape_leaves_out_what_it_can_do_without(payload: dict[str, Any], omitted: list[str]) -> None:
    event = read("generic", payload)
    assert event.external_event_id == "g-1"
    assert event.identities
    assert [each.field for each in event.omissions] == omitted


def test_many_odd_fields_are_noted_up_to_twenty() -> None:
    event = read("ecommerce", {**ORDER, "line_items": [7] * 900})
    assert len(event.omissions) == 20
    assert decode("ecommerce", {**shopify_order(7, NOW), "line_items": [LINE] * 5000})[0].payload[
        "products"
    ] == [{"product_id": "7", "quantity": 2000}]


@pytest.mark.parametrize(
    ("fields", "omitted"),
    [
        ({}, []),
        ({"sentiment": 1.5}, ["sentiment"]),
        ({"sentiment": ["good"], "from_user_id": "DE. 1"}, ["from.whatsapp", "sentiment"]),
        ({"from": "12", "from_user_id": "DE.1"}, ["from.phone"]),
    ],
)
def test_a_message_of_whatsapp_says_what_is_left_out(fields: dict[str, Any], omitted: list[str]) -> None:
    event = read("whatsapp", whatsapp(text("hello", **fields)))
    assert [each.field for each in event.omissions] == omitted
    assert event.event_type == "message_received"


def test_statements_and_replacements_of_whatsapp_say_what_is_left_out() -> None:
    event = read("whatsapp", preference("stop", wa_id="12", user_id="DE.1"))
    assert [each.field for each in event.omissions] == ["wa_id.phone"]
    changed_number = system(
        "user_changed_number", **{"from": "12", "wa_id": "16505551235", "user_id": "DE.1"}
    )
    event = read("whatsapp", whatsapp(changed_number))
    assert [each.field for each in event.omissions] == ["messages.phone"]


def test_a_campaign_says_which_of_its_names_are_left_out() -> None:
    event = read("email_campaign", {**MAIL, "marketing_campaign_id": {"id": 1}, "campaign_id": "spring"})
    assert event.payload == {"campaign_id": "spring"}
    assert [each.field for each in event.omissions] == ["campaign_id"]


@pytest.mark.parametrize(
    "fields",
    [
        {"currency": "usd"},
        {"currency": " USD "},
        {"total_price": " 11.77"},
        {"processed_at": "2026-03-02 04:30:00 +0000"},
        {"processed_at": None, "created_at": "2026-03-01T23:30:00-0500"},
        {"processed_at": None, "created_at": "2026-03-02 04:30:00.000+00:00"},
    ],
)
def test_an_order_may_spell_what_it_must_have_in_other_ways(fields: dict[str, Any]) -> None:
    event = read("ecommerce", {**ORDER, **fields})
    assert event.occurred_at == "2026-03-02T04:30:00.000000Z"
    assert (event.payload["amount_minor"], event.payload["currency"]) == (1177, "USD")
    assert event.omissions == ()


def test_an_order_of_a_guest_may_have_a_contact_alone() -> None:
    order = {**ORDER, "customer": None, "email": "", "phone": None, "contact_email": "Ada@example.com"}
    (who,) = read("ecommerce", order).identities
    assert (who.external_id, who.is_verified) == ("ada@example.com", False)


def test_a_refund_may_have_its_words_in_capitals() -> None:
    refund = shopify_refund(9, 7, NOW, "1.00")
    plain = read("ecommerce", refund)
    refund["transactions"][0] |= {"kind": "REFUND", "status": "SUCCESS", "currency": "usd"}
    assert read("ecommerce", refund).order == plain.order


@pytest.mark.parametrize(
    "timestamp", [1772000000, "1772000000", 1772000000.0, 1772000000.25, "1772000000.25"]
)
def test_a_time_in_seconds_may_have_parts(timestamp: Any) -> None:
    event = read("whatsapp", whatsapp(text("hello", timestamp=timestamp)))
    assert event.occurred_at == "2026-02-25T06:13:20.000000Z"


OFF = {"notifications": "off"}
SIGNED = replace(CONTEXT, is_signed=True)
UNSUBSCRIBED = {"email": "ada@example.com", "event": "unsubscribe", "timestamp": 1772000000, "sg_event_id": "sg-9",
                "sg_message_id": "m-1", "asm_group_id": 10, "useragent": "Mail", "url": None}  # fmt: skip
TYPED_STOP = {**FORM, "fields": {"email": "ada@example.com", "message": "Unsubscribe me, please"}}
CRM_STOP = changed(generic("message_received", text="STOP"), "identities", {"email": "ada@example.com"})
CRM_UNSUBSCRIBED = {
    **generic("campaign_unsubscribed", campaign_id="spring"),
    "identities": {"email": "a@b.c"},
}
CRM_PREFERS = {
    **generic("preference_stated", preferences={"notifications": "off", "size": "M"}),
    "identities": {"email": "a@b.c"},
}
NO_NOTIFICATIONS = ("data", "data.preferences", "data.preferences.notifications")
BUTTON: dict[str, Any] = {"type": "button", "button": {"text": "Stop promotions", "payload": "x"}}
# Each way to say that one wants no more messages: source, payload, where in it, and what it needs there.
OPT_OUTS: list[tuple[str, Any, str, tuple[str, ...]]] = [
    *(
        ("email_campaign", [{**UNSUBSCRIBED, "event": kind}], "0", ("event", "email"))
        for kind in ("unsubscribe", "group_unsubscribe", "spamreport")
    ),
    (
        "email_campaign",
        [{**UNSUBSCRIBED, "event": "dropped", "reason": "Unsubscribed Address"}],
        "0",
        ("event", "email", "reason"),
    ),
    (
        "whatsapp",
        whatsapp(text("STOP")),
        "entry.0.changes.0.value.messages.0",
        ("from", "text", "text.body", "type"),
    ),
    (
        "whatsapp",
        whatsapp(text("", **BUTTON)),
        "entry.0.changes.0.value.messages.0",
        ("from", "type", "button", "button.text"),
    ),
    (
        "whatsapp",
        preference("stop", wa_id="16505551234"),
        "entry.0.changes.0.value.user_preferences.0",
        ("wa_id", "value"),
    ),
    (
        "whatsapp",
        whatsapp(system("user_preference_changed", **{"from": "16505551234"}, marketing="stop")),
        "entry.0.changes.0.value.messages.0",
        ("from", "type", "system", "system.type", "system.marketing"),
    ),
    ("web_form", TYPED_STOP, "", ("fields", "fields.email", "fields.message")),
    ("generic", CRM_STOP, "", ("event_type", "identities", "identities.email", "data", "data.text")),
    ("generic", CRM_UNSUBSCRIBED, "", ("event_type", "identities", "identities.email")),
    ("generic", CRM_PREFERS, "", ("event_type", "identities", "identities.email", *NO_NOTIFICATIONS)),
]
OPT_OUT_FIELDS = [
    (source, payload, f"{where}.{name}".strip("."))
    for source, payload, where, needed in OPT_OUTS
    for name in _field_names(payload, where)
    if name not in needed
]


# What a field may have instead of what belongs there; ... takes it away.
ODD_VALUES: tuple[Any, ...] = (..., None, "", "?", [], {}, {"a": 1}, True, -1, 1.5, 10**15, 4e9, "x" * 300, "\ud83d",
                               float("nan"))  # fmt: skip
ODD_FIELDS: tuple[Any, ...] = ("new", ["\udc00"], {"\ud83d": float("inf")}, [[[]]] * 3, "[" * 5)


def opt_outs(source: str, payload: Any, context: DecodeContext = SIGNED) -> list[DecodedEvent]:
    """The opt-outs of a payload, none of whose parts is refused."""
    opened = open_payload(payload, Envelope(source, context), NOW)
    assert (opened.refusals, opened.decoder_bugs) == ([], [])
    return [event for event, _ in opened.events if event.is_opt_out]


@pytest.mark.parametrize(("source", "payload", "field"), OPT_OUT_FIELDS)
def test_an_opt_out_hangs_on_no_field_that_it_does_not_need(source: str, payload: Any, field: str) -> None:
    for odd in ODD_VALUES:
        told = changed({"payload": payload}, f"payload.{field}", odd)["payload"]
        (event,) = opt_outs(source, told)
        later = replace(SIGNED, received_at=stamp(NOW + timedelta(minutes=9)))
        (again,) = opt_outs(source, copy.deepcopy(told), later)
        assert event.external_event_id == again.external_event_id, "twice is once"
        assert stamp(NOW - timedelta(days=365)) < event.occurred_at <= stamp(NOW + FUTURE_MAX)
        assert {each.external_id for each in event.identities} & {"ada@example.com", "a@b.c", "16505551234"}


@pytest.mark.parametrize(("source", "payload", "where", "needed"), OPT_OUTS)
def test_an_opt_out_may_have_any_further_field(source: str, payload: Any, where: str, needed: Any) -> None:
    for odd in ODD_FIELDS:
        path = f"payload.{where}.more".replace("..", ".")
        (event,) = opt_outs(source, changed({"payload": payload}, path, odd)["payload"])
        assert event.is_opt_out


def test_opt_outs_without_an_id_are_told_apart_by_kind_time_address_and_message() -> None:
    plain = {name: each for name, each in UNSUBSCRIBED.items() if name != "sg_event_id"}
    others: list[dict[str, Any]] = [
        {"event": "spamreport"},
        {"timestamp": 1772000001},
        {"email": "eve@example.com"},
        {"sg_message_id": "m-2"},
    ]
    told = [plain, plain, *({**plain, **other} for other in others)]
    ids = [event.external_event_id for event in opt_outs("email_campaign", told)]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 5
    assert (
        ids[0]
        == opt_outs("email_campaign", {**plain, "email": " Ada <ADA@example.com>"})[0].external_event_id
    )


def test_an_opt_out_survives_every_bad_neighbour() -> None:
    plain = {"event": "spamreport", "email": "ada@example.com"}
    for bad in (7, None, {}, {"event": 7}, {**MAIL, "note": "\ud83d"}, {**plain, "email": "n/a"}):
        opened = open_payload([bad, plain, bad], Envelope("email_campaign", SIGNED), NOW)
        assert [event.is_opt_out for event, _ in opened.events] == [True]
        assert len(opened.refusals) == 2
    stop, late = text("STOP", id=None), text("x", timestamp="?")
    lists = {"user_preferences": "none", "user_id_update": {"a": 1}}
    for messages, more, refused in (
        ([7, stop, late], {}, 2),
        ([stop], lists, 2),
        ([stop], {"contacts": 7}, 0),
    ):
        opened = open_payload(whatsapp(*messages, **more), Envelope("whatsapp", SIGNED), NOW)
        assert [event.is_opt_out for event, _ in opened.events] == [True]
        assert (len(opened.refusals), opened.decoder_bugs) == (refused, [])


def test_a_message_and_a_preference_may_lack_the_word_for_their_kind() -> None:
    for words in (text("STOP"), text("", **BUTTON)):
        assert opt_outs("whatsapp", whatsapp(changed(words, "type", ...)))
    assert opt_outs("whatsapp", preference("stop", wa_id="16505551234", category=None))


@pytest.mark.parametrize(("value", "is_off"), [("off", True), ("OFF ", True), (False, True), ("no", True), ("on", False),
                                               (True, False), ("weekly", False), (0.5, False), (None, False)])  # fmt: skip
def test_preferences_may_refuse_notifications_in_our_own_shape_and_in_forms(value: Any, is_off: bool) -> None:
    preferences = {"notifications": value, "size": "M"}
    for source, payload in (
        ("generic", generic("preference_stated", preferences=preferences)),
        ("generic", generic("message_received", text="hello", preferences=preferences)),
        ("web_form", {**FORM, "preferences": preferences}),
    ):
        (event,) = decode(source, payload, SIGNED)
        assert event.is_opt_out == is_off
        assert event.payload["preferences"]["size"] == "M"


def test_what_is_no_opt_out_still_needs_its_id_and_its_time() -> None:
    for source, payload in (
        ("email_campaign", changed(MAIL, "sg_event_id", ...)),
        ("whatsapp", whatsapp(text("hello", id=None))),
        ("whatsapp", whatsapp(text("START", timestamp=None))),
        ("whatsapp", preference("resume", wa_id="16505551234", timestamp="?")),
        ("generic", changed(generic("message_received", text="hello"), "occurred_at", ...)),
    ):
        opened = open_payload(payload, Envelope(source, CONTEXT), NOW)
        assert (opened.events, len(opened.refusals)) == ([], 1)
