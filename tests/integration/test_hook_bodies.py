"""What may be in a signed body: JSON in UTF-8, of any length that the queue's consumer can take."""

import gzip
from datetime import timedelta
from typing import Any

import pytest

from ingest.leads.lead_accept import PARTS_MAX, open_payload, read_envelope
from tests.support.engine import Engine
from tests.support.hook_site import NOW, SIGNED, HookSite, opened
from tests.support.vendor_bodies import as_sent, sample_of, sendgrid_event, whatsapp_message
from tests.support.webhook_senders import headers_of


@pytest.fixture
def site(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> HookSite:
    return HookSite(engine, monkeypatch)


@pytest.mark.parametrize("source", SIGNED)
def test_bytes_that_are_no_json_are_refused_though_they_are_signed(site: HookSite, source: str) -> None:
    theirs = site.add(source)
    plain = as_sent(source, sample_of(source, "t", site.now))
    bodies = [*(b"", b"\xff\xfe", plain[:-9], b"[" * 5000), gzip.compress(plain)]
    for body in bodies:
        status, told = site.send(source, body, headers_of(source, body, theirs, site.now))
        assert (status, told["error"]["code"]) == (400, "invalid_json"), body[:20]
    packed = gzip.compress(b" " * 50_000_000)
    headers = headers_of(source, packed, theirs, site.now) | {"content-encoding": "gzip"}
    assert site.send(source, packed, headers)[0] == 415
    large = plain[:1] + b" " * 10_000_000 + plain[1:]
    assert site.send(source, large, headers_of(source, large, theirs, site.now))[0] == 413
    text = {"body": "not base64!", "isBase64Encoded": True, "headers": {}}
    assert site.call("POST", source, site.organization, **text)[0] == 400
    assert site.queued() == []


@pytest.mark.parametrize(
    "wrong", [b'"Well done \\ud83d"', b'"caf\xe9"', b"1e400", b'{"\\udfff": 1}', b"[" * 80 + b"]" * 80]
)
def test_a_value_that_json_could_not_hold_is_kept_alone_and_its_neighbours_are_taken(
    site: HookSite, wrong: bytes
) -> None:
    theirs = site.add("email_campaign")
    events = [{**sendgrid_event("click", "ada@example.com", NOW, n), "note": n} for n in range(3)]
    body = as_sent("email_campaign", events).replace(b'"note":1', b'"note":%s' % wrong)
    headers = headers_of("email_campaign", body, theirs, site.now)
    assert site.send("email_campaign", body, headers) == (200, {"accepted": 2})
    (message,) = site.queued()
    sent = read_envelope(message, "USD", NOW + timedelta(days=1))
    found = open_payload(sent.payload, sent, NOW + timedelta(days=1))
    assert (len(found.events), len(found.refusals)) == (2, 1)
    assert found.refusals[0].field.startswith("payload.1.note")


def test_a_body_in_text_is_what_it_is_in_base64(site: HookSite) -> None:
    theirs = site.add("whatsapp")
    body = as_sent("whatsapp", whatsapp_message("olá ✓", "16505551234", NOW))
    headers = {name.title(): each for name, each in headers_of("whatsapp", body, theirs, NOW).items()}
    found = site.call("POST", "whatsapp", site.organization, body=body.decode(), headers=headers)
    assert found == (200, {"accepted": 1})


def of_no_campaign(event: dict[str, Any]) -> dict[str, Any]:
    """As of a mail that resets a password."""
    return {
        name: each for name, each in event.items() if name != "category" and not name.startswith("marketing")
    }


def test_a_signed_body_that_is_no_event_is_kept_for_an_operator_and_one_of_no_interest_is_not(
    site: HookSite,
) -> None:
    theirs = site.add("email_campaign")
    for body, accepted, messages in (
        ([{"event": "open"}], 0, 1),
        ([sendgrid_event("processed", "a@b.example", NOW)], 0, 0),
        ([{"event": "open"}, sendgrid_event("open", "a@b.example", NOW)], 1, 1),
        ([of_no_campaign(sendgrid_event("delivered", "a@b.example", NOW))], 0, 0),
    ):
        sent = as_sent("email_campaign", body)
        headers = headers_of("email_campaign", sent, theirs, site.now)
        assert site.send("email_campaign", sent, headers) == (200, {"accepted": accepted})
        assert len(site.queued()) == messages


def test_a_long_batch_becomes_messages_that_the_consumer_takes(site: HookSite) -> None:
    theirs = site.add("email_campaign")
    batch = [sendgrid_event("open", f"p{n}@example.com", NOW, n) for n in range(PARTS_MAX + 1)]
    body = as_sent("email_campaign", batch)
    found = site.send("email_campaign", body, headers_of("email_campaign", body, theirs, site.now))
    assert found == (200, {"accepted": PARTS_MAX + 1})
    assert len(site.queued()) == 2
    body = as_sent("email_campaign", [0] * 400_000)
    assert site.send("email_campaign", body, headers_of("email_campaign", body, theirs, site.now))[0] == 413


def test_a_generic_event_may_take_its_name_from_the_delivery(site: HookSite) -> None:
    theirs = site.add("generic")
    body = sample_of("generic", "t", NOW)
    del body["external_event_id"]
    sent = as_sent("generic", body)
    site.send("generic", sent, headers_of("generic", sent, theirs, site.now, delivery="msg_1"))
    assert opened(site.queued()[0]) == [("msg_1", "preference_stated")]


def test_svix_names_the_headers_otherwise_and_its_delivery_names_the_event(site: HookSite) -> None:
    theirs = site.add("generic")
    body = sample_of("generic", "t", NOW)
    del body["external_event_id"]
    sent = as_sent("generic", body)
    headers = headers_of("generic", sent, theirs, site.now, delivery="msg_2")
    svix = {name.replace("webhook-", "svix-"): each for name, each in headers.items()}
    assert site.send("generic", sent, svix | {"webhook-id": "msg_unsigned"})[0] == 200
    assert opened(site.queued()[0]) == [("msg_2", "preference_stated")]
    late = headers_of("generic", sent, theirs, site.now - timedelta(minutes=6), delivery="msg_2")
    assert (
        site.send("generic", sent, {name.replace("webhook-", "svix-"): each for name, each in late.items()})[
            0
        ]
        == 401
    )
