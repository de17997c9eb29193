"""What WhatsApp tells: who wrote, what they chose, and what is no message at all."""

from typing import Any

import pytest

from ingest.leads import sources
from ingest.leads.lead_accept import Envelope, open_payload
from ingest.leads.readers import DecodeError
from rules.leads.identity import Identity
from tests.support.webhooks import CONTEXT, NOW, decode, preference, system, text, whatsapp

PHONE, ID, PARENT = "16505551234", "DE.90210000000000001", "DE.ENT.90210000000000003"
HIS_PHONE, HIS_ID, HIS_PARENT = (
    Identity("phone", PHONE),
    Identity("whatsapp", ID),
    Identity("whatsapp", PARENT),
)
ALONE = {"from": None}  # a text of nobody, until other fields say whose it is


def contact(**ids: Any) -> dict[str, Any]:
    return {"profile": {"name": "Ann", "username": "ann.berg"}, **ids}


@pytest.mark.parametrize(
    ("sender", "contacts", "identities"),
    [
        ({}, [], {HIS_PHONE}),
        ({**ALONE, "from_user_id": ID}, [], {HIS_ID}),
        ({"from": "", "from_user_id": ID}, None, {HIS_ID}),
        ({**ALONE, "user_id": ID, "parent_user_id": PARENT}, [], {HIS_ID, HIS_PARENT}),
        ({"from": ID}, [], {HIS_ID}),
        ({"from_user_id": ID, "from_parent_user_id": PARENT}, [], {HIS_PHONE, HIS_ID, HIS_PARENT}),
        ({}, [contact(wa_id=PHONE, user_id=ID)], {HIS_PHONE, HIS_ID}),
        ({**ALONE, "from_user_id": ID}, [contact(wa_id=PHONE, user_id=ID)], {HIS_PHONE, HIS_ID}),
        (ALONE, [contact(user_id=ID)], {HIS_ID}),
        (ALONE, [contact(wa_id=PHONE, parent_user_id=PARENT)], {HIS_PHONE, HIS_PARENT}),
        ({}, [contact(wa_id="4915112345678", user_id=ID)], {HIS_PHONE}),
        ({}, [7, {"wa_id": {}}, contact(wa_id=PHONE, user_id=ID)], {HIS_PHONE, HIS_ID}),
        ({"from": "12", "from_user_id": ID}, [], {HIS_ID}),
        ({**ALONE, "from_user_id": "opaque-17"}, [], {Identity("whatsapp", "opaque-17")}),
    ],
)
def test_whose_a_message_is(sender: dict[str, Any], contacts: Any, identities: set[Identity]) -> None:
    payload = whatsapp(text("hi", **sender), contacts=contacts)
    (event,) = decode("whatsapp", payload)
    assert set(event.identities) == identities
    assert all(each.is_verified for each in event.identities)
    (part,) = sources.source_named("whatsapp").parts(payload)
    assert decode("whatsapp", part.payload) == [event]


def test_of_several_messages_each_has_its_own_sender() -> None:
    messages = [text("a"), text("b", 2, **ALONE, from_user_id=ID), text("c", 3, **ALONE)]
    contacts = [contact(wa_id=PHONE), contact(user_id=ID, parent_user_id=PARENT)]
    opened = open_payload(whatsapp(*messages, contacts=contacts), Envelope("whatsapp", CONTEXT), NOW)
    assert [set(event.identities) for event, _ in opened.events] == [{HIS_PHONE}, {HIS_ID, HIS_PARENT}]
    ((field, reason),) = [(each.field, each.reason) for each in opened.refusals]
    assert field == "payload.entry.0.changes.0.value.messages.2.from"
    assert reason == "is missing, and there is no user id"


def test_what_is_no_message_of_a_list_spoils_no_neighbour() -> None:
    opened = open_payload(whatsapp(text("a"), 7, None, text("b", 2)), Envelope("whatsapp", CONTEXT), NOW)
    assert [event.external_event_id for event, _ in opened.events] == ["wamid.1", "wamid.2"]
    assert [each.field[-10:] for each in opened.refusals] == ["messages.1", "messages.2"]


@pytest.mark.parametrize(
    ("value", "ids", "said"),
    [
        ("stop", {"user_id": ID}, "off"),
        ("stop", {"wa_id": PHONE, "user_id": ID, "parent_user_id": PARENT}, "off"),
        ("resume", {"parent_user_id": PARENT}, "on"),
        ("stop", {"wa_id": ID}, "off"),
    ],
)
def test_who_stops_marketing_may_have_no_number(value: str, ids: dict[str, Any], said: str) -> None:
    (event,) = decode("whatsapp", preference(value, **ids))
    assert event.payload == {"consent": {"notifications": said}}
    assert {each.external_id for each in event.identities} == set(ids.values())


def test_a_preference_of_nobody_is_refused_by_field() -> None:
    opened = open_payload(preference("stop"), Envelope("whatsapp", CONTEXT), NOW)
    assert [each.field for each in opened.refusals] == [
        "payload.entry.0.changes.0.value.user_preferences.0.wa_id"
    ]


@pytest.mark.parametrize("category", ["MARKETING_MESSAGES", "Marketing_Messages", " ", 7, "utility_messages"])
def test_a_stop_hangs_on_no_category(category: Any) -> None:
    for value in ("stop", "STOP", " Stop "):
        (event,) = decode("whatsapp", preference(value, wa_id=PHONE, category=category))
        assert event.payload == {"consent": {"notifications": "off"}}


def test_a_preference_that_we_do_not_know_is_kept_for_an_operator() -> None:
    (event,) = decode("whatsapp", preference("RESUME", wa_id=PHONE, category="MARKETING_MESSAGES"))
    assert event.payload == {"consent": {"notifications": "on"}}
    for stated, reason in (
        (
            preference("resume", wa_id=PHONE, category="utility_messages"),
            "category must be marketing_messages",
        ),
        (preference("later", wa_id=PHONE), "value must be stop or resume"),
        (
            whatsapp(system("user_preference_changed", **{"from": PHONE}, marketing="later")),
            "system.marketing must",
        ),
    ):
        with pytest.raises(DecodeError, match=reason):
            decode("whatsapp", stated)


@pytest.mark.parametrize(("marketing", "said"), [("stop", "off"), ("Resume", "on")])
def test_a_preference_may_come_as_a_system_message(marketing: str, said: str) -> None:
    told = system("user_preference_changed", **{"from": PHONE}, marketing=marketing)
    (event,) = decode("whatsapp", whatsapp(told))
    assert (event.event_type, event.payload) == ("preference_stated", {"consent": {"notifications": said}})
    assert {each.external_id for each in event.identities} == {PHONE}


def test_an_error_of_what_was_sent_may_tell_who_has_stopped_messages() -> None:
    """https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes"""
    failed = {"id": "wamid.8", "status": "failed", "timestamp": "1772000000", "recipient_id": PHONE,
              "errors": [{"code": 131050, "title": "User stopped marketing messages"}]}  # fmt: skip
    others = [{**failed, "id": "wamid.9", "errors": [{"code": code}]} for code in (131049, 131026, None)]
    read = {"id": "wamid.7", "status": "read", "timestamp": "1772000000", "recipient_id": PHONE}
    webhook = whatsapp(text("hello"), statuses=[read, *others, failed, 7, {**failed, "recipient_id": None}])
    opened = open_payload(webhook, Envelope("whatsapp", CONTEXT), NOW)
    assert [(event.external_event_id, event.is_opt_out) for event, _ in opened.events] == [
        ("wamid.1", False),
        ("stopped:wamid.8", True),
    ]
    (_, (stop, part)) = opened.events
    assert {each.external_id for each in stop.identities} == {PHONE}
    assert part.path == "entry.0.changes.0.value.statuses.4"
    assert [each.field for each in opened.refusals] == [
        "payload.entry.0.changes.0.value.statuses.6.recipient_id"
    ]
    odd = open_payload(whatsapp(text("hello"), statuses={"a": failed}), Envelope("whatsapp", CONTEXT), NOW)
    assert (len(odd.events), odd.refusals) == (1, [])


NEW_PHONE, NEW_ID = Identity("phone", "4915112345678"), Identity("whatsapp", "DE.90210000000000002")


@pytest.mark.parametrize(
    ("kind", "ids", "identities"),
    [
        ("user_changed_number", {"from": PHONE, "wa_id": "4915112345678"}, {HIS_PHONE, NEW_PHONE}),
        ("customer_changed_number", {"from": PHONE, "customer": PHONE, "new_wa_id": "4915112345678"}, {HIS_PHONE, NEW_PHONE}),
        (
            "user_changed_number",
            {"from": PHONE, "wa_id": "4915112345678", "user_id": NEW_ID.external_id, "previous_user_id": ID},
            {HIS_PHONE, NEW_PHONE, HIS_ID, NEW_ID},
        ),
        ("user_changed_user_id", {"user_id": NEW_ID.external_id, "previous_user_id": ID}, {HIS_ID, NEW_ID}),
        (
            "user_changed_user_id",
            {"user_id": NEW_ID.external_id, "previous_user_id": ID, "previous_parent_user_id": PARENT},
            {HIS_ID, NEW_ID, HIS_PARENT},
        ),
    ],
)  # fmt: skip
def test_another_number_or_id_is_told_with_the_ones_of_before(
    kind: str, ids: dict[str, Any], identities: set[Identity]
) -> None:
    (event,) = decode("whatsapp", whatsapp(system(kind, **ids)))
    assert (event.event_type, event.payload) == ("identity_replaced", {})
    assert set(event.identities) == identities


def test_an_update_of_ids_in_a_list_of_its_own() -> None:
    update = {
        "wa_id": PHONE,
        "user_id": {"previous": ID, "current": NEW_ID.external_id},
        "timestamp": "1772000000",
    }
    value = {"messaging_product": "whatsapp", "user_id_update": [update]}
    webhook = {"entry": [{"changes": [{"field": "user_id_update", "value": value}]}]}
    (event,) = decode("whatsapp", webhook)
    assert (event.event_type, set(event.identities)) == ("identity_replaced", {HIS_PHONE, HIS_ID, NEW_ID})


@pytest.mark.parametrize(
    "message",
    [
        system("user_changed_user_id", user_id=ID),  # of whom?
        system("customer_identity_changed", **{"from": PHONE, "wa_id": "4915112345678"}),
        {"id": "wamid.1", "timestamp": "1772000000", "type": "system", "system": 7},
        text("", type="system", system={"body": "User Ann changed from +16505551234 to +4915112345678"}),
        text("", type="unsupported", errors=[{"code": 131051, "title": "Message type unknown"}]),
        text("", type="unknown"),
        text("", type="request_welcome"),
        text("", type="reaction", reaction={"message_id": "wamid.0", "emoji": ""}),
        text("", type="reaction", reaction={"message_id": "wamid.0"}),
        text("", type="reaction"),
        text("", type="revoke", revoke={"original_message_id": "wamid.0"}),
        text("", type="edit", edit={"original_message_id": "w", "message": {"type": "text", "text": {"body": "hello"}}}),
        text("", type="edit", edit={"original_message_id": "w"}),
        text("", type="edit"),
    ],
)  # fmt: skip
def test_what_nobody_has_written_is_no_message_and_no_failure(message: dict[str, Any]) -> None:
    opened = open_payload(whatsapp(message), Envelope("whatsapp", CONTEXT), NOW)
    assert (opened.events, opened.refusals, opened.decoder_bugs) == ([], [], [])


@pytest.mark.parametrize(
    "status",
    ["sent", "delivered", "read", "failed", "played", "deleted", "warning", "blocked", "received", 7],
)
@pytest.mark.parametrize("recipient", [{"recipient_id": PHONE}, {"recipient_user_id": ID}, {}])
def test_a_status_is_known_and_left_out(status: object, recipient: dict[str, str]) -> None:
    told = [{"id": "wamid.9", "status": status, "timestamp": "1772000000", **recipient}]
    webhook = whatsapp(statuses=told, contacts=[contact(user_id=ID)], errors=[{"code": 1}])
    each: Any
    for each in (..., None, []):
        webhook["entry"][0]["changes"][0]["value"]["messages"] = each
        if each is ...:
            del webhook["entry"][0]["changes"][0]["value"]["messages"]
        opened = open_payload(webhook, Envelope("whatsapp", CONTEXT), NOW)
        assert (opened.events, opened.refusals, opened.decoder_bugs) == ([], [], [])


def flow(response: Any) -> dict[str, Any]:
    return {"type": "nfm_reply", "nfm_reply": {"name": "flow", "body": "Sent", "response_json": response}}


@pytest.mark.parametrize(
    "message",
    [
        text("", type="button", button={"text": "Stop promotions", "payload": "Stop promotions"}),
        text("", type="button", button={"text": "No, thanks", "payload": "STOP"}),
        text("", type="button", button={"payload": "unsubscribe"}),
        text("", type="interactive", interactive={"type": "button_reply", "button_reply": {"id": "1", "title": "Unsubscribe"}}),
        text("", type="interactive", interactive={"type": "button_reply", "button_reply": {"id": "opt_out", "title": "No"}}),
        text("", type="interactive", interactive={"type": "list_reply", "list_reply": {"id": "x", "title": "Parar promoções"}}),
        text("", type="interactive", interactive={"type": "list_reply", "list_reply": {"id": "STOP_PROMO", "title": "Other", "description": "d"}}),
        text("", type="interactive", interactive=flow('{"flow_token": "t", "choice": "0_Stop_promotions"}')),
        text("", type="interactive", interactive=flow('{"flow_token": "t", "opt_out": true}')),
        text("", type="interactive", interactive=flow('{"screen": {"unsubscribe": "yes", "topics": ["news"]}}')),
        text("", type="interactive", interactive=flow('{"topics": ["news", "Keine Werbung mehr"]}')),
        text("", type="interactive", interactive=flow({"choice": "stop"})),
        text("", type="image", image={"id": "1", "caption": "STOP"}),
        text("Please stop sending me promotions"),
    ],
)  # fmt: skip
def test_an_opt_out_may_be_chosen(message: dict[str, Any]) -> None:
    (event,) = decode("whatsapp", whatsapp(message))
    assert event.payload["consent"] == {"notifications": "off"}


@pytest.mark.parametrize(
    "message",
    [
        text("", type="button", button={"text": "No, thanks", "payload": "NO"}),
        text("", type="button", button={"text": ["STOP"], "payload": {"a": "STOP"}}),
        text("", type="interactive", interactive={"type": "button_reply", "button_reply": {"id": "cancel", "title": "Cancel"}}),
        text("", type="interactive", interactive={"type": "button_reply", "button_reply": 7}),
        text("", type="interactive", interactive=flow('{"opt_out": false, "comment": "do not stop"}')),
        text("", type="interactive", interactive=flow("{")),
        text("", type="interactive", interactive=flow("[" * 5000)),
        text("", type="interactive", interactive=flow(7)),
        text("", type="interactive", interactive={"nfm_reply": 7}),
        text("stop by tomorrow"),
    ],
)  # fmt: skip
def test_other_choices_end_nothing(message: dict[str, Any]) -> None:
    (event,) = decode("whatsapp", whatsapp(message))
    assert "consent" not in event.payload


def test_a_message_that_is_changed_to_a_stop_is_a_stop_and_no_second_message() -> None:
    edit = {"original_message_id": "wamid.0", "message": {"type": "text", "text": {"body": "Stop!"}}}
    (event,) = decode("whatsapp", whatsapp(text("", type="edit", edit=edit)))
    assert (event.event_type, event.payload) == ("preference_stated", {"consent": {"notifications": "off"}})


def test_an_odd_score_is_left_out() -> None:
    scores: tuple[Any, ...] = ("fine", 2, [], {}, None, True)
    for score in scores:
        (event,) = decode("whatsapp", whatsapp(text("hi", sentiment=score)))
        assert event.payload == {}


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (7, "payload.entry.1"),
        ({"id": "1"}, "payload.entry.1.changes"),
        ({"changes": {}}, "payload.entry.1.changes"),
        ({"changes": [7]}, "payload.entry.1.changes.0"),
        ({"changes": [{"field": "messages", "value": None}]}, "payload.entry.1.changes.0.value"),
        (
            {"changes": [{"field": "messages", "value": {"messages": 7}}]},
            "payload.entry.1.changes.0.value.messages",
        ),
    ],
)
def test_an_entry_that_is_none_spoils_no_other(bad: Any, field: str) -> None:
    (good,), (other,) = whatsapp(text("hi"))["entry"], whatsapp(text("stop", 2))["entry"]
    opened = open_payload({"entry": [good, bad, other]}, Envelope("whatsapp", CONTEXT), NOW)
    assert [event.external_event_id for event, _ in opened.events] == ["wamid.1", "wamid.2"]
    assert [part.path for _, part in opened.events] == [
        f"entry.{place}.changes.0.value.messages.0" for place in (0, 2)
    ]
    assert [each.field for each in opened.refusals] == [field]


@pytest.mark.parametrize("field", ["messages", "user_preferences", None])
def test_a_preference_counts_under_whichever_field_a_partner_passes_it_on(field: str | None) -> None:
    stated = preference("STOP", wa_id=PHONE)
    value = stated["entry"][0]["changes"][0]["value"]
    change = {"value": value} if field is None else {"field": field, "value": value}
    opened = open_payload({"entry": [{"changes": [change]}]}, Envelope("whatsapp", CONTEXT), NOW)
    ((event, _),) = opened.events
    assert event.payload == {"consent": {"notifications": "off"}}
    assert event.identities == (HIS_PHONE,)


def test_half_an_emoji_in_a_flow_hides_no_opt_out() -> None:
    reply = {"response_json": '{"note": "thanks \\ud83d", "opt_out": true}'}
    flow = {"type": "nfm_reply", "nfm_reply": reply}
    (event,) = decode("whatsapp", whatsapp({**text(""), "type": "interactive", "interactive": flow}))
    assert event.payload == {"consent": {"notifications": "off"}}
