"""POST /v1/leads/events tells the sender at once what is wrong with a webhook, and queues the rest."""

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.leads.lead_queue import MESSAGE_BYTES_MAX, LeadPayloads, LeadQueue
from ingest.leads import leads_api, sources
from ingest.leads.lead_accept import PARTS_MAX, open_payload, read_envelope
from ingest.web.bodies import WEBHOOK_BYTES_MAX
from ingest.web.caller import DETAILS_MAX
from tests.support.examples import examples
from tests.support.http_requests import called
from tests.support.lead_requests import context
from tests.support.webhooks import GENERIC, MAIL, NOW, changed, text, whatsapp

SENT: dict[str, Any] = {"organization_id": "acme", "source": "generic", "payload": GENERIC}


class Aws:
    """SQS and S3 that note what they get."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.objects: dict[str, bytes] = {}
        self.is_down = False

    def send_message(self, QueueUrl: str, MessageBody: str) -> None:  # noqa: N803
        if self.is_down:
            raise EndpointConnectionError(endpoint_url="http://sqs")
        self.messages.append(MessageBody)

    def put_object(self, Bucket: str, Key: str, Body: bytes, ContentType: str) -> None:  # noqa: N803
        self.objects[f"s3://{Bucket}/{Key}"] = Body


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Aws:
    aws = Aws()
    parts = SimpleNamespace(
        queue=LeadQueue(aws, "q", LeadPayloads(lambda: aws, "b")),
        views=None,
        currency="USD",
        phone_regions="GB acme=US",
    )
    monkeypatch.setattr(leads_api, "_parts", lambda: parts)
    monkeypatch.setattr("adapters.clock.now", lambda: NOW)
    return aws


def post(body: Any, scope: str = "streakline/leads/acme", path: str = "/v1/leads/events") -> tuple[int, Any]:
    raw = body if isinstance(body, str) else json.dumps(body)
    event: dict[str, Any] = {"body": raw, "requestContext": context("POST", path, scope)}
    answer = called(leads_api.handler, "POST", path, **event)
    return answer["statusCode"], json.loads(answer["body"])


def test_what_is_accepted_is_on_the_queue(aws: Aws) -> None:
    status, told = post(SENT)
    assert (status, told) == (
        202,
        {"accepted": 1, "events": [{"external_event_id": "g-1", "event_type": "purchase_completed"}]},
    )
    (message,) = map(json.loads, aws.messages)
    assert message == {**SENT, "integration": "generic", "received_at": "2026-03-10T06:00:00.000000Z"}
    sent = read_envelope(message, "USD", NOW)
    assert [event.external_event_id for event, _ in open_payload(sent.payload, sent, NOW).events] == ["g-1"]


@pytest.mark.parametrize("scope", ["", "openid", "streakline/other", "streakline/leads", "streakline/leads/"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/leads/events"),
        ("GET", "/v1/leads/l/events"),
        ("GET", "/v1/leads/l/memory"),
        ("GET", "/v1/leads/l/features"),
        ("POST", "/v1/leads/changes/1/reversal"),
    ],
)
def test_others_are_refused_before_anything_is_read(scope: str, method: str, path: str, aws: Aws) -> None:
    event: dict[str, Any] = {"body": "{", "requestContext": context(method, path, scope)}
    answer = called(leads_api.handler, method, path, **event)
    assert answer["statusCode"] == 403
    assert aws.messages == []


def test_admins_may_undo_merges(aws: Aws) -> None:
    path = "/v1/leads/changes/7/reversal"
    assert post({"reason": "two people"}, "streakline/admin", path) == (202, {"change": 7})
    command = {"command": "unmerge", "change": 7, "reason": "two people", "by": "crm"}
    named = {"reason": "two people", "organization_id": "acme"}
    assert post(named, "streakline/admin", path)[0] == 202
    both = [command, {**command, "organization_id": "acme"}]
    assert [json.loads(each) for each in aws.messages] == both


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/leads/changes/0/reversal", {"reason": "r"}, 400),
        ("/v1/leads/changes/-1/reversal", {"reason": "r"}, 400),
        ("/v1/leads/changes/x/reversal", {"reason": "r"}, 400),
        ("/v1/leads/changes/9999999999999999999/reversal", {"reason": "r"}, 400),
        ("/v1/leads/changes/1/reversal", {"reason": ""}, 422),
        ("/v1/leads/changes/1/reversal", {"reason": "a\x00b"}, 422),
        ("/v1/leads/changes/1/reversal", {}, 422),
    ],
)
def test_a_bad_reversal(path: str, body: Any, status: int, aws: Aws) -> None:
    assert post(body, "streakline/admin", path)[0] == status
    assert aws.messages == []


def test_a_webhook_of_megabytes_waits_in_the_bucket(aws: Aws) -> None:
    batch = [{**MAIL, "sg_event_id": f"sg-{number}", "url": "x" * 5_000} for number in range(PARTS_MAX)]
    batch[900] = {**MAIL, "email": "nobody"}
    status, told = post({**SENT, "source": "email_campaign", "payload": batch})
    assert (status, told["accepted"]) == (202, PARTS_MAX - 1)
    assert [each["field"] for each in told["rejected"]] == ["payload.900.email"]
    (message,) = map(json.loads, aws.messages)
    assert json.loads(aws.objects[message["payload_ref"]]) == batch


@pytest.mark.parametrize(
    ("body", "status", "field", "reason"),
    [
        ("{", 400, None, "not JSON"),
        ('{"organization_id": NaN}', 422, "organization_id", "no number"),
        ({}, 422, "organization_id", "is missing"),
        ({**SENT, "source": "nosuch"}, 422, "source", "must be one of ecommerce"),
        ({**SENT, "integration": "identity"}, 422, "integration", "our own"),
        ({**SENT, "payload": "text"}, 422, "payload", "must be object or array"),
        ({**SENT, "payload_ref": "s3://b/leads/inbox/x"}, 422, "body", "unknown"),
        ({**SENT, "received_at": "2020-01-01T00:00:00Z"}, 422, "body", "unknown"),
        (
            {**SENT, "payload": changed(GENERIC, "occurred_at", "soon")},
            422,
            "payload.occurred_at",
            "RFC 3339",
        ),
        (
            {**SENT, "payload": changed(GENERIC, "occurred_at", "2027-01-01T00:00:00Z")},
            422,
            "payload.occurred_at",
            "future",
        ),
        ({**SENT, "source": "ecommerce"}, 422, "payload.id", "is missing"),
        ({**SENT, "source": "email_campaign", "payload": [{}, {}]}, 422, "payload.0.event", "is missing"),
        pytest.param("x" * (WEBHOOK_BYTES_MAX + 1), 413, None, "over", id="too large"),
    ],
)
def test_what_is_wrong_is_told_at_once(
    body: Any, status: int, field: str | None, reason: str, aws: Aws
) -> None:
    told_status, told = post(body)
    assert told_status == status
    assert reason in told["error"]["message"]
    if field:
        assert told["error"]["details"][0]["field"] == field
    assert aws.messages == []


def test_a_bad_event_of_a_batch_is_told_and_goes_along_to_be_kept(aws: Aws) -> None:
    batch = [MAIL, changed(MAIL, "timestamp", ...)]
    status, told = post({**SENT, "source": "email_campaign", "payload": batch})
    assert (status, told["accepted"]) == (202, 1)
    assert told["rejected"] == [{"field": "payload.1.timestamp", "reason": "is missing"}]
    assert json.loads(aws.messages[0])["payload"] == batch


def test_a_webhook_without_events_is_done(aws: Aws) -> None:
    body = {**SENT, "source": "whatsapp", "payload": whatsapp(text("a", type="system"))}
    assert post(body) == (202, {"accepted": 0, "events": []})
    assert aws.messages == []


def test_what_breaks_a_decoder_is_queued_all_the_same(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        parts = staticmethod(sources.source_named("generic").parts)

        def decode(self, payload: Any, context: Any) -> Any:
            raise ZeroDivisionError("a bug")

    monkeypatch.setattr(sources, "source_named", lambda name: Broken())
    assert post(SENT) == (202, {"accepted": 0, "events": [], "undecoded": 1})
    assert json.loads(aws.messages[0])["payload"] == GENERIC


def test_while_the_queue_is_down_the_sender_is_told_to_come_again(aws: Aws) -> None:
    aws.is_down = True
    assert post(SENT)[0] == 503


@pytest.mark.parametrize(
    "filler", ["x" * 300_000, '"' * 60_000, "é" * 40_000], ids=["long", "quotes", "accents"]
)
def test_a_large_payload_goes_to_the_bucket(filler: str, aws: Aws) -> None:
    payload = changed(GENERIC, "data", {"text": filler})
    payload["event_type"] = "message_received"
    assert post({**SENT, "payload": payload})[0] == 202
    message = json.loads(aws.messages[0])
    assert "payload" not in message
    ((url, body),) = aws.objects.items()
    assert message["payload_ref"] == url
    assert url.startswith("s3://b/leads/inbox/")
    assert json.loads(body) == payload


@given(st.integers(0, 70_000), st.sampled_from(['"', "x", "é", "\\"]))
@settings(max_examples=examples(30))
def test_any_message_fits_the_queue_with_its_reason_around_it(size: int, character: str) -> None:
    aws = Aws()
    LeadQueue(aws, "q", LeadPayloads(lambda: aws, "b")).put({**SENT, "payload": {"a": character * size}})
    assert len(json.dumps(aws.messages[0])) <= MESSAGE_BYTES_MAX


@pytest.mark.parametrize("lead_id", ["a%00", "-a", "x" * 129], ids=["zero", "dash", "long"])
def test_a_lead_that_cannot_be_is_refused_by_name(lead_id: str, aws: Aws) -> None:
    path = f"/v1/leads/{lead_id}/features"
    event: dict[str, Any] = {"requestContext": context("GET", path, "streakline/leads/acme")}
    answer = called(leads_api.handler, "GET", path, **event)
    assert (answer["statusCode"], "lead_id" in answer["body"]) == (400, True)


def test_a_thousand_parts_are_taken_and_more_are_refused_before_they_are_read(aws: Aws) -> None:
    """980 KB of `[good, 0, 0, ...]` took 20 seconds, and answered 37 MB after it had queued."""
    batch: list[Any] = [MAIL, *[0] * (PARTS_MAX - 1)]
    status, told = post({**SENT, "source": "email_campaign", "payload": batch})
    assert (status, told["accepted"], len(told["rejected"])) == (202, 1, DETAILS_MAX)
    for payload in ([*batch, 0], [MAIL, *[0] * 300_000], whatsapp(*[{}] * 100_000)):
        source = "whatsapp" if isinstance(payload, dict) else "email_campaign"
        began = time.process_time()
        status, told = post({**SENT, "source": source, "payload": payload})
        assert time.process_time() - began < 3
        assert (status, told["error"]["message"]) == (422, f"payload holds more than {PARTS_MAX} events")
        assert len(json.dumps(told)) < 1000
    assert len(aws.messages) == 1
    all_bad = {**SENT, "source": "email_campaign", "payload": [0] * PARTS_MAX}
    assert len(post(all_bad)[1]["error"]["details"]) == DETAILS_MAX


def test_a_payload_s_own_words_make_no_large_answer(aws: Aws) -> None:
    """Each of them takes six or twelve characters in an answer, and a function may answer 6 MB."""
    sign = "\x01"
    long = sign * (900_000 // len(sign.encode()))
    names: list[Any] = [
        {**GENERIC, "identities": {long: "x"}},
        {**GENERIC, "identities": {"email": long}},
        {**GENERIC, "event_type": long},
        {**GENERIC, "event_type": "preference_stated", "data": {"preferences": {long: [[]]}}},
        {**GENERIC, "occurred_at": long},
        long,
        {long: {}},
    ]
    side_fields = [
        {**GENERIC, long: 1},
        {**GENERIC, "data": {**GENERIC["data"], long: 1}},
        {**GENERIC, "object": {"id": {long: 1}}},
    ]
    for payload in [*names, *side_fields]:
        body = json.dumps({**SENT, "payload": payload}, ensure_ascii=False)
        status, told = post(body.replace("\\u0001", "\x01"))
        assert status == (202 if payload in side_fields else 422), payload
        assert len(json.dumps(told)) < 20_000
    part = long[: len(long) // PARTS_MAX - 20]
    all_bad = json.dumps({**SENT, "source": "email_campaign", "payload": [{part: 1}] * PARTS_MAX})
    for first in ("", f"{json.dumps(MAIL)}, "):
        told = post(all_bad.replace("[", f"[{first}", 1))[1]
        assert len(json.dumps(told)) < 200_000
