"""Whatever vendors send beside what an event must have, the event is taken: random fields of their documented shapes.

WhatsApp: https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages
SendGrid: https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.leads.lead_accept import Envelope, OpenedPayload, open_payload
from ingest.leads.sources.email_campaign import TYPES
from rules.leads.identity import Identity
from tests.support.effort import effort
from tests.support.webhooks import CONTEXT, NOW

BODIES = effort(40, soak=20_000)
# Drawn from lists: a text or a tree that Hypothesis makes up costs twenty times as much.
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        7,
        10**30,
        0.5,
        -1e300,
        "",
        " ",
        "null",
        "x" * 300,
        "\u200b",
        "\x00",
        "é\n",
        "STOP",
        "{",
    ),
    *(
        [],
        {},
        [[]],
        [None],
        [7, "a"],
        {"": None},
        {"id": {"id": []}},
        [{"type": 7}],
        {"body": ["STOP"]},
        {"title": 7},
    ),
)
odd = st.sampled_from(ODD)
words = st.sampled_from(
    ["STOP", "Stop promotions", "hello", "", "👍", "muito caro", "US.1", "16505551234", "no", " x "]
)


def some(**fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the fields, each as it is documented, or odd."""
    return st.fixed_dictionaries(
        {}, optional={name.replace("__", "-"): each | odd for name, each in fields.items()}
    )


def opened(source: str, payload: Any) -> OpenedPayload:
    found = open_payload(payload, Envelope(source, CONTEXT), NOW)
    assert (found.refusals, found.decoder_bugs) == ([], [])
    return found


media = some(
    id=words, mime_type=words, sha256=words, caption=words, url=words, voice=st.booleans(), filename=words
)
CONTENTS = {
    "text": some(body=words),
    **dict.fromkeys(("image", "audio", "video", "document", "sticker"), media),
    "button": some(text=words, payload=words),
    "interactive": some(
        type=words,
        button_reply=some(id=words, title=words),
        list_reply=some(id=words, title=words, description=words),
        nfm_reply=some(
            name=words, body=words, response_json=words | st.just('{"opt_out": true, "a": [{"b": "stop"}]}')
        ),
    ),
    "location": some(latitude=st.floats(-90, 90), longitude=st.floats(-180, 180), name=words, address=words),
    "contacts": st.lists(some(name=odd, phones=odd, org=odd), max_size=2),
    "order": some(catalog_id=words, text=words, product_items=odd),
    "poll_of_tomorrow": odd,
}
side = some(
    context=some(id=words, forwarded=st.booleans(), frequently_forwarded=odd, referred_product=odd),
    from_parent_user_id=st.just("US.ENT.11815799212886844830"),
    referral=some(source_url=words, source_type=words, ctwa_clid=words, welcome_message=odd),
    identity=some(acknowledged=st.booleans(), hash=words),
    errors=st.lists(some(code=st.integers(), title=words), max_size=2),
    group_id=words,
    sentiment=st.floats(-1, 1),
)
senders = st.sampled_from(
    [
        ({"from": "16505551234"}, Identity("phone", "16505551234")),
        ({"from_user_id": "US.13491208655302741918"}, Identity("whatsapp", "US.13491208655302741918")),
        ({"from": None, "user_id": "DE.9021"}, Identity("whatsapp", "DE.9021")),
        ({"from": "5491123450678", "from_user_id": "AR.1"}, Identity("phone", "5491123450678")),
    ]
)
beside = some(
    messaging_product=words,
    metadata=some(display_phone_number=words, phone_number_id=words),
    contacts=st.lists(some(profile=some(name=words, username=words), wa_id=words, user_id=words), max_size=3),
    statuses=st.lists(
        some(id=words, status=words, recipient_id=words, recipient_user_id=words, pricing=odd), max_size=2
    ),
    errors=odd,
)


@settings(max_examples=BODIES)
@given(st.data(), st.sampled_from(sorted(CONTENTS)), side, senders, beside)
def test_whatsapp_takes_each_message_that_has_id_time_and_sender(
    data: st.DataObject,
    kind: str,
    more: dict[str, Any],
    sender: tuple[dict[str, Any], Identity],
    around: dict[str, Any],
) -> None:
    needed = {"id": "wamid.1", "timestamp": "1772000000", "type": kind, **sender[0]}
    message = {**more, kind: data.draw(CONTENTS[kind] | odd), **needed}
    change = {"field": "messages", "value": {**around, "messages": [message]}}
    envelope = data.draw(some(object=words))
    found = opened("whatsapp", {**envelope, "entry": [{"id": data.draw(odd), "changes": [change]}]})
    ((event, _),) = found.events
    assert (event.external_event_id, event.event_type) == ("wamid.1", "message_received")
    assert sender[1] in event.identities


campaigns = st.sampled_from(
    [{"marketing_campaign_id": 12345}, {"singlesend_id": "12345"}, {"campaign_id": "12345"}]
)
mail_side = some(
    category=st.lists(words, max_size=3) | words,
    smtp__id=words,
    sg_message_id=words,
    marketing_campaign_name=words,
    marketing_campaign_version=words,
    marketing_campaign_split_id=st.integers(),
    singlesend_name=words,
    asm_group_id=st.integers(),
    useragent=words,
    ip=words,
    url=words,
    url_offset=some(index=st.integers(), type=words),
    reason=words,
    status=words,
    response=words,
    attempt=words,
    tls=st.integers(0, 1),
    cert_err=st.integers(0, 1),
    type=words,
    bounce_classification=words,
    pool=some(name=words, id=st.integers()),
    sg_content_type=words,
    sg_template_id=words,
    newsletter=odd,
    send_at=st.integers(),
    unique_arg_key=words,
)


@settings(max_examples=BODIES)
@given(st.sampled_from(sorted(TYPES)), campaigns, mail_side, st.booleans())
def test_sendgrid_takes_each_event_that_has_id_kind_time_recipient_and_campaign(
    kind: str, campaign: dict[str, Any], more: dict[str, Any], is_listed: bool
) -> None:
    needed = {
        "sg_event_id": "sg-1",
        "event": kind,
        "timestamp": 1772000000,
        "email": "Ann <ANN@y.example>",
        **campaign,
    }
    found = opened("email_campaign", [{**more, **needed}] if is_listed else {**more, **needed})
    ((event, _),) = found.events
    assert (event.event_type, event.payload) == (TYPES[kind], {"campaign_id": "12345"})
    assert event.identities == (Identity("email", "ann@y.example"),)
