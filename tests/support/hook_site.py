"""The door for webhooks over real stores: Secrets Manager, SQS, S3 and DynamoDB of the engine."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from adapters.hook_store import HookStore
from adapters.leads.lead_queue import LeadPayloads, LeadQueue
from adapters.platform.limits import SharedCounters
from ingest.leads import hooks_api, sources
from ingest.leads.hooks import HookAuthenticator, KnownHooks
from ingest.leads.lead_accept import open_payload, read_envelope
from ingest.web import api
from ingest.web.api import REQUESTS_PER_MINUTE_OF_ADDRESS
from ingest.web.rate_limit import CHEAP_STEP, RateLimit
from rules.hooks import Hook, HookSecret
from tests.support.engine import Engine
from tests.support.http_requests import called
from tests.support.vendor_bodies import as_sent, sample_of
from tests.support.webhook_senders import headers_of, secret_of

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PREFIX = f"hooks-{uuid4()}/"
SIGNED = [name for name in sources.names() if sources.source_named(name).signature]
REFUSED = (
    401,
    {"error": {"code": "unauthorized", "message": "there is no such hook, or its secret did not sign this"}},
)


def opened(message: dict[str, Any]) -> list[tuple[str, str]]:
    """What the queue's consumer makes of a message: (external id, event type) of each event."""
    sent = read_envelope(message, "USD", NOW + timedelta(days=1))
    assert sent.context.is_signed is (message["source"] in SIGNED)
    found = open_payload(sent.payload, sent, NOW + timedelta(days=1))
    assert (found.refusals, found.decoder_bugs) == ([], [])
    return [(each.external_event_id, each.event_type) for each, _ in found.events]


class HookSite:
    """A process of the function, with a clock that the test sets, and a queue of its own."""

    def __init__(self, engine: Engine, patch: pytest.MonkeyPatch) -> None:
        self.secrets = engine.own_client("secretsmanager")
        self.sqs, self.s3 = engine.client("sqs"), engine.client("s3")
        self.queue_url = self.sqs.create_queue(QueueName=f"q-{uuid4()}")["QueueUrl"]
        self.organization, self.seconds = f"org-{uuid4()}", 1000.0
        self.store = HookStore(self.secrets, PREFIX)
        self.known = KnownHooks(self.store, lambda: self.seconds)
        self.reads: list[str] = []
        self.secrets.meta.events.register(
            "before-call.secretsmanager.GetSecretValue", lambda **_: self.reads.append("get")
        )
        self.lists: list[str] = []
        self.secrets.meta.events.register(
            "before-call.secretsmanager.ListSecrets", lambda **_: self.lists.append("list")
        )
        parts = hooks_api._Parts(
            HookAuthenticator(self.known),
            LeadQueue(self.sqs, self.queue_url, LeadPayloads(lambda: self.s3, "payloads")),
            SharedCounters(lambda: engine.client("dynamodb"), "Limits"),
            "USD",
            "",
        )
        patch.setattr(hooks_api, "_parts", lambda: parts)
        counters = SharedCounters(lambda: engine.client("dynamodb"), "Limits")
        limits = [
            RateLimit(counters, kind, REQUESTS_PER_MINUTE_OF_ADDRESS, step=CHEAP_STEP)
            for kind in ("reads", "requests")
        ]
        patch.setattr(api, "_parts", lambda: limits)
        patch.setattr("adapters.clock.now", lambda: self.now)

    @property
    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds - 1000)

    def add(self, source: str, name: str = "a", organization: str = "", **more: Any) -> str:
        """Make a hook; returns the secret as the vendor has it."""
        ours, theirs = secret_of(source, name)[::-1]
        self.store.create(Hook(organization or self.organization, source, (HookSecret(ours),), **more))
        return theirs

    def send(
        self, source: str, body: bytes, headers: dict[str, str], organization: str = "", **more: Any
    ) -> tuple[int, Any]:
        """POST a body as the gateway hands it over: in base64."""
        event = {"body": base64.b64encode(body).decode(), "isBase64Encoded": True, "headers": headers, **more}
        return self.call("POST", source, organization or self.organization, **event)

    def call(self, method: str, source: str, organization: str, **event: Any) -> tuple[int, Any]:
        path = f"/v1/hooks/{organization}/{source}"
        http = {"method": method, "path": path, "sourceIp": event.pop("address", "192.0.2.1")}
        found = called(
            hooks_api.handler, method, path, requestContext={"http": http, "stage": "$default"}, **event
        )
        self.headers = {name.lower(): each for name, each in (found.get("headers") or {}).items()}
        text = found.get("body") or ""
        return found["statusCode"], json.loads(text) if text.startswith("{") else text

    def signed(self, source: str, tag: str = "t", *, secret: str = "", **more: Any) -> tuple[int, Any]:
        """POST a sample of a source, signed."""
        body = as_sent(source, sample_of(source, tag, NOW))
        return self.send(
            source, body, headers_of(source, body, secret or secret_of(source, "a")[0], self.now), **more
        )

    def queued(self) -> list[dict[str, Any]]:
        """Take everything from the queue."""
        found: list[dict[str, Any]] = []
        while messages := self.sqs.receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=10).get(
            "Messages"
        ):
            for each in messages:
                found.append(json.loads(each["Body"]))
                self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=each["ReceiptHandle"])
        return found
