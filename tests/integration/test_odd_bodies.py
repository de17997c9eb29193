"""Bodies in a vendor's documented shape with random side fields: whatever these hold, the event is taken."""

import copy
import json
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.leads.lead_accept import Envelope, open_payload
from ingest.leads.sources.email_campaign import TYPES
from tests.support.effort import effort
from tests.support.vendor_bodies import shopify_order, shopify_refund
from tests.support.webhooks import CONTEXT, FORM, GENERIC, MAIL, NOW, generic, text, whatsapp

BODIES = effort(40, soak=50_000)
AT = NOW - timedelta(days=9)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(
        [
            "",
            "1",
            "1.0",
            " ",
            "n/a",
            "-1",
            "2026-03-01T00:00:00Z",
            "0001-01-01",
            "a@b.c",
            "x" * 300,
            "GIFT-WRAP ",
        ]
    )
    | st.sampled_from([0, 1, -1, 1.5, 1e300, 10**40, 2**63])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "email", "value", "name", "amount", ""]), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(held: Any, essential: set[str], path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all values that an event can do without."""
    name = ".".join("*" if isinstance(each, int) else each for each in path)
    if name in essential:
        return []
    inner: Any = held.items() if isinstance(held, dict) else enumerate(held) if isinstance(held, list) else ()
    here = [] if any(each.startswith(f"{name}.") for each in essential) or not path else [path]
    return here + [found for key, each in inner for found in places(each, essential, (*path, key))]


def odd(data: st.DataObject, body: Any, essential: set[str]) -> Any:
    """A copy of a body in which some side fields hold something else, or are gone."""
    changed = copy.deepcopy(body)
    for _ in range(data.draw(st.integers(1, 6))):
        if not (ways := places(changed, essential)):
            break
        *above, last = data.draw(st.sampled_from(ways))
        holder = changed
        for key in above:
            holder = holder[key]
        if data.draw(st.integers(0, 4)) == 0:
            del holder[last]
        else:
            holder[last] = data.draw(values)
    return changed


def taken(source: str, body: Any, **more: Any) -> Any:
    opened = open_payload(body, Envelope(source, CONTEXT), NOW)
    assert (opened.refusals, opened.decoder_bugs) == ([], []), json.dumps(body)[:2000]
    ((event, _),) = opened.events
    return event


fuzzed = settings(max_examples=BODIES, deadline=None, suppress_health_check=list(HealthCheck))
ORDER = {
    **shopify_order(7, AT, "110.00", refunds=[shopify_refund(9, 7, AT, "10.00")]),
    "email": "ada@example.com",
    "phone": "+16505551234",
}


@given(st.data())
@fuzzed
def test_an_order_with_its_id_time_currency_and_total_is_taken(data: st.DataObject) -> None:
    essential = {"id", "created_at", "processed_at", "currency", "total_price", "test"}
    event = taken("ecommerce", odd(data, ORDER, essential))
    assert (event.external_event_id, event.event_type) == ("order:7", "purchase_completed")
    placed = event.order.state.placed
    assert (placed.amount_minor, placed.currency) == (11_000, "USD")


@given(st.data())
@fuzzed
def test_a_refund_with_its_ids_time_and_money_is_taken(data: st.DataObject) -> None:
    refund = {**shopify_refund(9, 7, AT, "10.00"), "customer": {"id": 5, "email": "ada@example.com"}}
    essential = {"id", "order_id", "created_at", "processed_at"}
    essential |= {f"transactions.*.{name}" for name in ("amount", "currency", "kind", "status", "test")}
    event = taken("ecommerce", odd(data, refund, essential))
    (back,) = event.order.state.paid_back.values()
    assert (event.external_event_id, back.amount_minor, back.currency) == ("refund:9", 1_000, "USD")


@given(st.data())
@fuzzed
def test_a_form_that_names_somebody_is_taken(data: st.DataObject) -> None:
    form = {**FORM, "fields": {"email": "ada@example.com", "phone": "1", "message": "dear", "topics": ["a"]}}
    form["fields"] |= {"address": {"city": "x"}, "entries": [{"name": "size", "value": "L"}]}
    event = taken("web_form", odd(data, form, {"submission_id", "submitted_at", "fields.email"}))
    assert "ada@example.com" in {each.external_id for each in event.identities}


@given(st.data())
@fuzzed
def test_an_event_in_our_own_format_is_taken(data: st.DataObject) -> None:
    kinds = {
        "purchase_completed": {**GENERIC["data"], "products": [{"product_id": 7, "quantity": 1}]},
        "message_received": {
            "text": "dear",
            "sentiment": 0.5,
            "objections": ["price"],
            "preferences": {"a": 1},
        },
        "page_viewed": {"category": "shoes", "product_id": 7},
    }
    kind = data.draw(st.sampled_from(sorted(kinds)))
    body = {**generic(kind, **kinds[kind]), "object": {"id": 7, "type": "order"}, "more": 1}
    body["identities"] = {"email": "ada@example.com", "phone": "+16505551234", "device": ["d"]}
    essential = {"external_event_id", "event_type", "occurred_at", "claimed", "identities.email"}
    essential |= {f"data.{name}" for name in ("order_id", "amount", "currency")}
    event = taken("generic", odd(data, body, essential))
    assert "ada@example.com" in {each.external_id for each in event.identities}


NEEDED = ("id", "timestamp", "from", "type")
CONTENTS = {
    "text": {"body": "STOP"},
    "image": {"id": "1", "caption": "muito caro"},
    "button": {"text": "Stop promotions", "payload": "STOP"},
    "interactive": {
        "type": "nfm_reply",
        "button_reply": {"id": "a", "title": "hello"},
        "list_reply": {"id": "a", "title": "hello", "description": "b"},
        "nfm_reply": {"response_json": '{"opt_out": true, "a": [{"b": "stop"}]}'},
    },
    "poll_of_tomorrow": {"name": "x"},
}


@given(st.data(), st.sampled_from(sorted(CONTENTS)))
@fuzzed
def test_a_message_of_whatsapp_with_its_id_time_and_sender_is_taken(data: st.DataObject, kind: str) -> None:
    message = text("", type=kind, context={"id": "x"}, from_parent_user_id="US.ENT.118", sentiment=0.5)
    around = {"contacts": [{"wa_id": "16505551234", "user_id": "US.1"}], "statuses": [{"id": "s"}]}
    body = whatsapp({**message, kind: CONTENTS[kind]}, **around)
    value = "entry.*.changes.*.value"
    essential = {"entry.*.changes.*.field", *(f"{value}.messages.*.{name}" for name in NEEDED)}
    event = taken("whatsapp", odd(data, body, essential))
    assert (event.external_event_id, event.event_type) == ("wamid.1", "message_received")
    assert "16505551234" in {each.external_id for each in event.identities}


@given(st.data(), st.sampled_from(sorted(TYPES)))
@fuzzed
def test_a_mail_s_event_with_its_id_kind_time_recipient_and_campaign_is_taken(
    data: st.DataObject, kind: str
) -> None:
    mail = {
        **MAIL,
        "event": kind,
        "category": ["a"],
        "url_offset": {"index": 1},
        "asm_group_id": 7,
        "ip": "x",
    }
    event = taken("email_campaign", odd(data, mail, {*MAIL}))
    assert (event.event_type, event.payload) == (TYPES[kind], {"campaign_id": "12345"})
