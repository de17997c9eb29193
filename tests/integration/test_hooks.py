"""POST /v1/hooks: what a vendor signed comes in once, and nothing else comes in at all."""

import gzip
import json
from collections import Counter
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from adapters.hook_store import HookStore
from adapters.leads.lead_queue import LeadPayloads
from adapters.platform.queues import PoisonMessage
from ingest.leads import hooks, sources
from ingest.leads.hooks import CACHE_SECONDS, REREAD_SECONDS, STRANGERS_BURST, STRANGERS_PER_SECOND
from ingest.leads.lead_accept import PARTS_MAX, PIECES_MAX, open_payload, read_envelope
from ingest.leads.lead_consumer import LeadConsumer
from ingest.web.api import REQUESTS_PER_MINUTE_OF_ADDRESS
from ingest.web.bodies import WEBHOOK_BYTES_MAX
from rules.hooks import Hook, HookSecret, rotate_hook
from rules.leads.webhook_signatures import challenge_token
from tests.support.engine import Engine
from tests.support.hook_site import NOW, REFUSED, SIGNED, HookSite, opened
from tests.support.vendor_bodies import as_sent, sample_of, sendgrid_event, shopify_order, whatsapp_message
from tests.support.webhook_senders import headers_of, secret_of


@pytest.fixture
def site(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> HookSite:
    return HookSite(engine, monkeypatch)


@pytest.mark.parametrize("source", SIGNED)
def test_what_a_vendor_signs_is_queued_and_a_delivery_that_comes_again_is_the_same_event(
    site: HookSite, source: str
) -> None:
    site.add(source)
    assert [site.signed(source) for _ in range(2)] == [(200, {"accepted": 1})] * 2
    first, again = site.queued()
    assert opened(first) == opened(again)
    assert len(opened(first)) == 1
    assert (first["organization_id"], first["source"]) == (site.organization, source)
    assert first["payload"] == sample_of(source, "t", NOW), "nothing is added to what the vendor sent"


@pytest.mark.parametrize("source", SIGNED)
def test_whatever_does_not_fit_is_the_same_401_and_nothing_is_stored(site: HookSite, source: str) -> None:
    theirs = site.add(source)
    site.add(source, "b", f"{site.organization}-other")
    body = as_sent(source, sample_of(source, "t", site.now))
    right = headers_of(source, body, theirs, site.now)
    flipped = bytes([body[0], body[1] ^ 1, *body[2:]])
    name = sources.source_named(source).signature.header  # type: ignore[union-attr]
    attempts: list[tuple[str, bytes, dict[str, str], str]] = [
        (source, flipped, right, site.organization),
        (source, body, right, f"{site.organization}-other"),
        (source, body, right, "nobody"),
        (source, body, right, "no/body"),
        ("newsletter", body, right, site.organization),
        ("__init__", body, right, site.organization),
        (source, body, {}, site.organization),
        (source, body, right | {name: ""}, site.organization),
        (source, body, right | {name: right[name][:-3]}, site.organization),
        (source, body, headers_of(source, body, secret_of(source, "b")[0], site.now), site.organization),
    ]
    for each, sent, headers, organization in attempts:
        answered = site.send(each, sent, headers, organization)
        assert answered in (
            REFUSED,
            (404, {"error": {"code": "not_found", "message": "there is no such route"}}),
        )
    scheme = sources.source_named(source).signature
    if scheme and scheme.timestamp_header:
        for seconds in (-301, 301):
            old = headers_of(source, body, theirs, site.now + timedelta(seconds=seconds))
            assert site.send(source, body, old) == REFUSED
    assert site.queued() == []
    assert site.send(source, body, right)[0] == 200


def test_a_secret_is_changed_without_a_gap_and_the_old_one_ends(site: HookSite) -> None:
    old = site.add("ecommerce")
    assert site.signed("ecommerce", secret=old)[0] == 200
    (new, checked), (_, newest) = secret_of("ecommerce", "b"), secret_of("ecommerce", "c")
    assert site.signed("ecommerce", secret=new) == REFUSED
    hook = site.store.get(site.organization, "ecommerce")
    site.store.replace(rotate_hook(hook, checked, site.now, timedelta(hours=1)))
    site.seconds += REREAD_SECONDS
    assert [site.signed("ecommerce", secret=each)[0] for each in (new, old)] == [200, 200]
    site.seconds += 3601
    assert site.signed("ecommerce", secret=old) == REFUSED
    assert site.signed("ecommerce", secret=new)[0] == 200
    hook = rotate_hook(site.store.get(site.organization, "ecommerce"), newest, site.now, timedelta())
    assert hook.secrets == (HookSecret(newest),), "an overlap of nothing ends the old one at once"
    site.store.remove(site.organization, "ecommerce")
    site.seconds += CACHE_SECONDS
    assert site.signed("ecommerce", secret=new) == REFUSED


def test_a_hook_whose_secret_has_a_replica_is_removed_with_it() -> None:
    """As moto has it: the emulator deletes a secret that has replicas, and AWS does not."""
    with mock_aws():
        secrets, replicas = (boto3.client("secretsmanager", region) for region in ("us-east-1", "us-west-2"))
        store = HookStore(secrets, "streakline/endpoints/")
        store.create(Hook("acme", "e", (HookSecret("s"),)))
        name = "streakline/endpoints/acme/e"
        secrets.replicate_secret_to_regions(SecretId=name, AddReplicaRegions=[{"Region": "us-west-2"}])
        store.remove("acme", "e")
        assert [each.list_secrets()["SecretList"] for each in (secrets, replicas)] == [[], []]


def flood(site: HookSite, names: int = 100) -> list[int]:
    """Ask for hooks that nobody has, each from another address."""
    return [
        site.signed("ecommerce", organization=f"nobody{number}", address=f"198.51.100.{number}")[0]
        for number in range(names)
    ]


def test_a_hook_is_read_once_a_minute_and_strangers_cost_little_and_delay_nobody_who_fits(
    site: HookSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source in ("ecommerce", "whatsapp"):
        site.add(source)
    for _ in range(5):
        site.signed("ecommerce")
    assert len(site.reads) == 1
    for _ in range(5):  # wrong signatures: one reading in two seconds
        site.signed("ecommerce", secret="wrong")
    site.seconds += CACHE_SECONDS
    site.reads.clear()
    assert set(flood(site)) == {401, 503}
    assert (len(site.reads), len(site.lists)) == (STRANGERS_BURST, 2)
    assert [site.signed(each)[0] for each in ("ecommerce", "whatsapp")] == [200, 200]
    site.seconds += REREAD_SECONDS
    assert Counter(flood(site))[401] == REREAD_SECONDS * STRANGERS_PER_SECOND
    monkeypatch.setattr(hooks, "NAMES_MAX", 30)
    for _ in range(4):
        site.seconds += 3
        flood(site, 12)
    assert len(site.known._hooks) <= 30


def test_nobody_learns_under_a_flood_which_hooks_there_are(site: HookSite) -> None:
    """Two names are asked in turn, a real one and an invented one, at the same moments beside the same flood."""
    site.add("ecommerce")
    answers: dict[str, list[tuple[int, Any]]] = {}
    for name in (site.organization, f"{site.organization}-invented"):
        site.seconds += 3600
        told = answers.setdefault(name, [])
        for pause in (0.0, 0.1, 1.0, REREAD_SECONDS, CACHE_SECONDS):
            assert site.signed("ecommerce")[0] == 200
            told.append(site.signed("ecommerce", secret="wrong", organization=name))
            flood(site, 30)
            told.append(site.signed("ecommerce", secret="wrong", organization=name))
            site.seconds += pause
    real, invented = answers.values()
    assert real == invented
    assert real[0] == REFUSED


@pytest.mark.parametrize("addresses", [["192.0.2.1"], ["2001:db8::1", "2001:db8:0:0:ffff::9"]])
def test_one_sender_does_not_use_up_what_others_need(site: HookSite, addresses: list[str]) -> None:
    for number in range(60):
        site.signed("ecommerce", organization=f"nobody{number}", address=addresses[number % len(addresses)])
    site.add("ecommerce")  # a hook that is not on the list yet
    assert site.signed("ecommerce", address="203.0.113.9")[0] == 200
    assert site.signed("ecommerce", secret="wrong", organization="another", address=addresses[0])[0] == 503


def test_an_address_has_so_many_requests_a_minute_and_others_are_not_concerned(site: HookSite) -> None:
    site.add("ecommerce")
    body = as_sent("ecommerce", sample_of("ecommerce", "t", NOW))
    headers = headers_of("ecommerce", body, secret_of("ecommerce", "a")[0], site.now)
    told = Counter(
        site.send("ecommerce", body, headers, "nobody", address=f"2001:db8:a::{number:x}")[0]
        for number in range(REQUESTS_PER_MINUTE_OF_ADDRESS + 100)
    )
    assert told[429] == 100
    assert site.headers["retry-after"] == str(60 - site.now.second)
    assert site.send("ecommerce", body, headers, address="2001:db8:a:1::1")[0] == 200
    assert site.send("ecommerce", body, headers, address="2001:db8:a::1")[0] == 429, "also one that would fit"
    site.seconds += 60
    assert site.send("ecommerce", body, headers, address="2001:db8:a::1")[0] == 200


def test_a_new_hook_works_though_the_list_of_hooks_is_old_or_cannot_be_read(
    site: HookSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert site.signed("ecommerce") == REFUSED  # the list is read, and is empty
    site.add("ecommerce")
    site.seconds += REREAD_SECONDS
    assert site.signed("ecommerce")[0] == 200

    def fails() -> list[tuple[str, str]]:
        raise EndpointConnectionError(endpoint_url="x")

    monkeypatch.setattr(site.store, "names", fails)
    site.seconds += CACHE_SECONDS
    assert site.signed("ecommerce")[0] == 200
    assert site.signed("ecommerce", organization="nobody") == REFUSED


def test_meta_reads_its_number_back_by_the_token_alone(site: HookSite) -> None:
    secret = site.add("whatsapp")
    query = {"hub.mode": "subscribe", "hub.challenge": "1158201444"}

    def ask(**more: str) -> tuple[int, Any]:
        return site.call("GET", "whatsapp", site.organization, queryStringParameters={**query, **more})

    assert ask(**{"hub.verify_token": challenge_token(secret)}) == (200, "1158201444")
    assert site.headers["content-type"] == "text/plain"
    for wrong in ({"hub.verify_token": "x"}, {"hub.verify_token": secret}, {}, {"hub.verify_token": "ä"}):
        assert ask(**wrong) == REFUSED
    right = {"hub.verify_token": challenge_token(secret)}
    assert ask(**right, **{"hub.mode": "unsubscribe"}) == REFUSED
    assert ask(**right, **{"hub.challenge": "a\nb"}) == REFUSED
    assert (
        site.call("GET", "ecommerce", site.organization, queryStringParameters={**query, **right}) == REFUSED
    )


@pytest.mark.parametrize(
    "source",
    SIGNED,
)
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
    assert (
        site.send(source, large, headers_of(source, large, secret_of(source, "wrong")[0], site.now))
        == REFUSED
    )
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
    queued = site.queued()
    assert sorted(len(whole(site, message)["payload"]) for message in queued) == [1, PARTS_MAX]


def whole(site: HookSite, message: dict[str, Any]) -> dict[str, Any]:
    """A message with its payload, which may wait in the bucket."""
    rest = {name: value for name, value in message.items() if name != "payload_ref"}
    waiting = LeadPayloads(lambda: site.s3, "payloads")
    return rest | (
        {"payload": json.loads(waiting.read_inbox(message["payload_ref"]))} if rest != message else {}
    )


def order_of_700_lines() -> dict[str, Any]:
    line = {**shopify_order(1, NOW)["line_items"][0], "properties": [{"name": "n", "value": "x" * 3_000}]}
    return shopify_order(7, NOW, line_items=[{**line, "id": number} for number in range(700)])


def long_webhook(messages: int) -> dict[str, Any]:
    """As Meta sends several messages at once: in one entry."""
    sample = whatsapp_message("x" * 300, "16505551234", NOW)
    (change,) = sample["entry"][0]["changes"]
    (message,) = change["value"]["messages"]
    many = [{**message, "id": f"wamid.{number}"} for number in range(messages)]
    return {**sample, "entry": [{"changes": [{**change, "value": {**change["value"], "messages": many}}]}]}


def opt_outs(number: int) -> dict[str, Any]:
    """As Meta tells of messages that people who opted out did not get."""
    sample = whatsapp_message("", "16505551234", NOW)
    (change,) = sample["entry"][0]["changes"]
    value = {name: each for name, each in change["value"].items() if name not in ("messages", "contacts")}
    status = {"status": "failed", "timestamp": str(int(NOW.timestamp())), "recipient_id": "16505551234"}
    errors = [{"code": 131050, "title": "User has opted out", "error_data": {"details": "x" * 300}}]
    statuses = [{**status, "id": f"wamid.{each}", "errors": errors} for each in range(number)]
    return {**sample, "entry": [{"changes": [{**change, "value": {**value, "statuses": statuses}}]}]}


@pytest.mark.parametrize(
    ("source", "payload", "events"),
    [
        ("ecommerce", order_of_700_lines(), 1),
        ("ecommerce", shopify_order(8, NOW, note="\u00e9" * 1_300_000), 1),
        ("whatsapp", whatsapp_message('"\\' * 700_000, "16505551234", NOW), 1),
        ("whatsapp", opt_outs(3_500), 3_500),
        ("whatsapp", whatsapp_message("x" * 3_000_000, "16505551234", NOW), 1),
        ("whatsapp", long_webhook(3_500), 3_500),
        (
            "email_campaign",
            [sendgrid_event("open", f"p{n}@example.com", NOW, n) for n in range(9_000)],
            9_000,
        ),
    ],
    ids=[
        *("an order of 700 lines", "an order with a note", "a message of signs", "many opt-outs"),
        *("a long message", "many messages", "a batch of mails"),
    ],
)
def test_a_body_of_megabytes_is_taken(site: HookSite, source: str, payload: Any, events: int) -> None:
    theirs, body = site.add(source), as_sent(source, payload)
    assert 1_000_000 < len(body) < WEBHOOK_BYTES_MAX
    assert site.send(source, body, headers_of(source, body, theirs, site.now)) == (200, {"accepted": events})
    queued = site.queued()
    assert len(queued) == -(-events // PARTS_MAX)
    found = [opened(whole(site, each)) for each in queued]
    assert len({name for piece in found for name, _ in piece}) == events


@pytest.mark.parametrize("source", SIGNED)
def test_a_signed_body_that_is_too_large_is_a_413_and_an_operator_has_it(site: HookSite, source: str) -> None:
    theirs, plain = site.add(source), as_sent(source, sample_of(source, "t", site.now))
    fits = plain + b" " * (WEBHOOK_BYTES_MAX - len(plain))
    assert site.send(source, fits, headers_of(source, fits, theirs, site.now))[0] == 200
    assert len(site.queued()) == 1
    nothing: Any = None  # the consumer asks no store
    many = as_sent("email_campaign", [0] * (PIECES_MAX * PARTS_MAX + 1))
    for body in (fits + b" ", *([many] if source == "email_campaign" else [])):
        status, told = site.send(source, body, headers_of(source, body, theirs, site.now))
        assert (status, told["error"]["code"]) == (413, "too_large")
        (message,) = site.queued()
        assert (message["organization_id"], message["source"]) == (site.organization, source)
        with pytest.raises(PoisonMessage, match=rf"the door has refused it: .* it has {len(body)}, sha256 "):
            LeadConsumer(nothing, nothing, nothing, nothing, "USD").handle(message, NOW)
        assert LeadPayloads(lambda: site.s3, "payloads").read_inbox(message["payload_ref"]) == body


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
