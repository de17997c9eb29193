"""From the queue to Event, on real PostgreSQL, DynamoDB, S3 and Redis: once, in any order, over any crash."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from adapters.leads.identity_cache import IdentityCache
from adapters.leads.identity_store import IdentityStore
from adapters.leads.lead_event_store import LeadEventStore
from adapters.leads.lead_payloads import LeadPayloads
from adapters.platform.aws import client
from adapters.platform.batches import get_all
from adapters.platform.failures import FailureQueue
from adapters.platform.items import plain
from adapters.platform.postgres import Postgres
from adapters.platform.queues import Poison
from adapters.platform.redis import Redis
from ingest.leads import lead_consumer, sources
from ingest.leads.lead_consumer import LeadConsumer
from rules.leads.lead_events import SORT_KEY, LeadEvent, from_item
from rules.leads.lead_groups import groups_of
from tests.support.engine import Engine
from tests.support.identity_server import Registry
from tests.support.webhooks import MAIL, NOW, ORDER, changed, text, whatsapp

pytestmark = pytest.mark.xdist_group("identity")
CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)


class Died(BaseException):
    """The process is gone."""


class Mortal:
    """Passes calls on and counts them; dies before or after one of them."""

    def __init__(self, real: Any, life: "Life") -> None:
        self._real, self._life = real, life

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if not callable(real) or name in ("exceptions", "meta"):
            return real

        def call(*args: Any, **kwargs: Any) -> Any:
            self._life.step()
            answer = real(*args, **kwargs)
            self._life.step()
            return answer

        return call


class Life:
    """steps_left: before and after each call is a step; None: immortal."""

    def __init__(self) -> None:
        self.steps_left: int | None = None

    def step(self) -> None:
        if self.steps_left is not None:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise Died


class Site:
    """A consumer over real stores, with an organization of its own."""

    def __init__(self, engine: Engine, registry: Registry, redis_url: str) -> None:
        self.life, self.registry = Life(), registry
        self.dynamodb, self.s3 = engine.client("dynamodb"), engine.client("s3")
        self.organization = f"org-{uuid4()}"
        self.requests: list[str] = []
        note = lambda model, **_: self.requests.append(model.name)  # noqa: E731
        self.dynamodb.meta.events.register("before-call.dynamodb", note)
        mortal_s3 = Mortal(self.s3, self.life)
        identities: Any = Mortal(registry.store, self.life)
        cache: Any = Mortal(IdentityCache(redis_url), self.life)
        self.consumer = LeadConsumer(
            identities,
            cache,
            LeadEventStore(Mortal(self.dynamodb, self.life), "Event", "IdempotencyKeys"),
            LeadPayloads(lambda: mortal_s3, "payloads"),
            "USD",
        )
        self.events = LeadEventStore(self.dynamodb, "Event")

    def message(self, payload: Any, source: str = "ecommerce", **more: Any) -> dict[str, Any]:
        return {"organization_id": self.organization, "source": source, "payload": payload, **more}

    def send(self, payload: Any, source: str = "ecommerce", **more: Any) -> None:
        self.consumer.handle(self.message(payload, source, **more), NOW)

    def stored(self) -> list[LeadEvent]:
        """Every stored event of this organization."""
        return [event for source in (*sources.names(), "identity") for event in self.of_source(source)]

    def of_source(self, source: str) -> list[LeadEvent]:
        found = self.dynamodb.query(
            TableName="Event",
            IndexName="idempotency-index",
            KeyConditionExpression="#source = :source",
            ExpressionAttributeNames={"#source": "source"},
            ExpressionAttributeValues={":source": {"S": f"{self.organization}/{source}"}},
        )
        keys = [{name: each[name] for name in ("lead_organization_id", SORT_KEY)} for each in found["Items"]]
        stored = get_all(self.dynamodb, "Event", map(plain, keys))
        return sorted((from_item(plain(each)) for each in stored), key=lambda each: each.external_event_id)


@pytest.fixture
def site(engine: Engine, registry: Registry, redis_url: str) -> Iterator[Site]:
    Redis(redis_url).call("FLUSHALL")
    yield Site(engine, registry, redis_url)


def order(number: int, **more: Any) -> dict[str, Any]:
    return {**ORDER, "id": number, **more}


def test_an_order_finds_or_makes_its_lead_and_is_stored_once(site: Site) -> None:
    for _ in range(3):
        site.send(order(1))
    (event,) = site.stored()
    (leaf,) = {
        row[0] for row in site.registry.rows("SELECT lead_organization_id FROM identity.lead_organization")
    }
    assert (event.lead_organization_id, event.root_id) == (leaf, leaf)
    assert event.payload["amount_minor"] == 1177
    assert json.loads(event.raw_payload or "") == order(1)
    assert (event.source, event.source_type) == (f"{site.organization}/ecommerce", "ecommerce")


def test_the_budget(site: Site) -> None:
    site.send(order(1))
    Redis(site.consumer.cache._real._redis._url.geturl()).call("FLUSHALL")  # type: ignore[attr-defined]
    costs = []
    for number in (2, 3):
        trips, requests = site.registry.counting.trips, len(site.requests)
        site.send(order(number))
        costs.append((site.registry.counting.trips - trips, site.requests[requests:]))
    assert costs == [(1, ["GetItem", "TransactWriteItems"]), (0, ["TransactWriteItems"])]


def test_another_body_changes_nothing_and_is_kept(site: Site) -> None:
    site.send(order(1))
    known = site.registry.dump()
    other = order(1, customer={"id": 6, "email": "ada@example.com"})
    with pytest.raises(Poison, match="conflict: order:1 is stored with another body"):
        site.send(other)
    assert site.registry.dump() == known, "its identities must not have been believed"
    with pytest.raises(Poison, match="conflict"):
        site.send(order(1, total_price="1.00"))
    assert [each.payload["amount_minor"] for each in site.stored()] == [1177]


def test_a_batch_is_stored_but_for_what_is_bad(site: Site) -> None:
    batch = [MAIL, changed(MAIL, "timestamp", ...), {**MAIL, "sg_event_id": "sg-3"}]
    for _ in range(2):
        with pytest.raises(Poison, match=r"^payload.1.timestamp is missing$"):
            site.send(batch, "email_campaign")
    assert sorted(each.external_event_id for each in site.stored()) == ["sg-1", "sg-3"]
    assert json.loads(site.stored()[0].raw_payload or "")["email"] == MAIL["email"]


def test_several_messages_of_one_webhook(site: Site) -> None:
    site.send(whatsapp(text("caro"), text("ok", 2)), "whatsapp")
    assert len({each.lead_organization_id for each in site.stored()}) == 1
    assert sorted(each.external_event_id for each in site.stored()) == ["wamid.1", "wamid.2"]


def test_a_decoder_that_raises_is_told_with_type_and_text(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decode(*_: Any) -> Any:
        raise ZeroDivisionError("a bug")

    broken = SimpleNamespace(parts=sources.source_named("ecommerce").parts, decode=decode)
    monkeypatch.setattr(sources, "source_named", lambda name: broken)
    with pytest.raises(Poison, match="the decoder raised ZeroDivisionError: a bug"):
        site.send(order(1))
    monkeypatch.undo()
    site.send(order(1))
    assert len(site.stored()) == 1, "what was kept can be sent again"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"source": "nosuch"}, "source must be one of"),
        ({"organization_id": "a/b"}, "organization_id must match"),
        ({"integration": "identity"}, "integration must not be identity"),
        ({"payload": {}}, "payload.id is missing"),
        ({"payload": order(1, created_at="2026-03-10T06:05:01Z")}, "in the future"),
        ({"payload": order(1, created_at="1969-03-10T06:05:01Z")}, "before 1970"),
        ({"command": "drop"}, "command"),
        ({"received_at": "9999-01-01T00:00:00Z"}, "received_at"),
    ],
)
def test_what_nothing_can_mend_says_why(more: dict[str, Any], reason: str, site: Site) -> None:
    with pytest.raises(Poison, match=reason):
        site.consumer.handle(site.message(order(1)) | more, NOW)
    assert site.stored() == []


def by_reference(site: Site, url: str) -> dict[str, Any]:
    message = site.message(None)
    del message["payload"]
    return message | {"payload_ref": url}


def test_a_payload_that_was_put_aside(site: Site) -> None:
    many = [{"sku": f"sku-{number}", "quantity": 1} for number in range(40)]
    url = LeadPayloads(lambda: site.s3, "payloads").put_inbox(json.dumps(order(1, line_items=many)))
    for _ in range(2):
        site.consumer.handle(by_reference(site, url), NOW)
    (event,) = site.stored()
    assert event.raw_payload is None
    key = (event.raw_payload_ref or "").removeprefix("s3://payloads/")
    assert key.startswith(f"leads/{event.id}/")
    assert json.loads(site.s3.get_object(Bucket="payloads", Key=key)["Body"].read()) == order(
        1, line_items=many
    )


def test_another_large_body_does_not_replace_the_first(site: Site) -> None:
    lines = [[{"sku": f"{name}-{number}"} for number in range(60)] for name in "ab"]
    site.send(order(1, line_items=lines[0]))
    with pytest.raises(Poison, match="conflict"):  # its identities are remembered: nobody asks for the claim
        site.send(order(1, line_items=lines[1]))
    (first,) = site.stored()
    key = (first.raw_payload_ref or "").removeprefix("s3://payloads/")
    kept = json.loads(site.s3.get_object(Bucket="payloads", Key=key)["Body"].read())
    assert kept["line_items"] == lines[0]


@pytest.mark.parametrize(
    "url", ["s3://payloads/leads/inbox/none.json", "s3://payloads/leads/other", "s3://x/leads/inbox/y"]
)
def test_a_pointer_that_cannot_be_read_is_told(url: str, site: Site) -> None:
    with pytest.raises(Poison, match="payload_ref cannot be read"):
        site.consumer.handle(by_reference(site, url), NOW)


def test_a_pointer_to_what_is_no_json_is_told(site: Site) -> None:
    url = LeadPayloads(lambda: site.s3, "payloads").put_inbox("{")
    with pytest.raises(Poison, match="payload_ref holds no JSON"):
        site.consumer.handle(by_reference(site, url), NOW)


def apart(site: Site) -> tuple[str, str]:
    """Two leads; returns their leaves."""
    site.send(order(1, customer={"email": "a@example.com"}))
    site.send(order(2, customer={"phone": "+49 151 0000 0001"}))
    leaves = {each.external_event_id: each.lead_organization_id for each in site.stored()}
    return leaves["order:1"], leaves["order:2"]


BOTH = {"email": "a@example.com", "phone": "+49 151 0000 0001"}


def test_leads_that_an_event_proves_to_be_one_are_announced_as_one_and_apart_again(site: Site) -> None:
    one, two = apart(site)
    assert one != two
    site.send(order(3, customer=BOTH))
    (merged,) = site.of_source("identity")
    number, groups = groups_of(merged)
    assert [(each.root, sorted(each.leaves)) for each in groups] == [(one, sorted((one, two)))]
    assert (merged.event_type, merged.external_event_id, merged.root_id) == ("leads_merged", str(number), one)
    assert site.registry.store.pending() == ()

    command = {"command": "unmerge", "change": number, "reason": "two people", "by": "ada"}
    site.consumer.handle(command, NOW + timedelta(hours=1))
    (parted,) = (each for each in site.of_source("identity") if each.event_type == "leads_unmerged")
    assert {(each.root, each.leaves) for each in groups_of(parted)[1]} == {(one, (one,)), (two, (two,))}
    site.consumer.handle(command, NOW + timedelta(hours=2))
    assert len(site.of_source("identity")) == 2

    apart_again = site.registry.dump(but=["identity_change", "change_lead"])
    site.send(order(3, customer=BOTH))
    assert site.registry.dump(but=["identity_change", "change_lead"]) == apart_again, (
        "a resend proves nothing anew"
    )


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ({"change": 99, "reason": "r", "by": "b"}, "change 99 is no merge"),
        ({"change": 0, "reason": "r", "by": "b"}, "change"),
        ({"change": 1, "reason": "", "by": "b"}, "reason"),
        ({"change": 1, "reason": "a\x00b", "by": "b"}, "reason"),
        ({"change": 1, "reason": "r", "by": "\ud800"}, "surrogates"),
        ({"change": 1, "by": "b"}, "reason is missing"),
        ({"change": 1.5, "reason": "r", "by": "b"}, "change"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(command: dict[str, Any], reason: str, site: Site) -> None:
    with pytest.raises(Poison, match=reason):
        site.consumer.handle({"command": "unmerge", **command}, NOW)


def test_a_crash_between_any_two_calls_leaves_one_event_and_everybody_told(site: Site) -> None:
    many = [{"sku": f"sku-{number}", "quantity": 1} for number in range(40)]
    number, died, crashes = 0, True, 0
    while died:
        site.registry.clear()
        Redis(site.consumer.cache._real._redis._url.geturl()).call("FLUSHALL")  # type: ignore[attr-defined]
        site.organization = f"org-{uuid4()}"
        one, two = apart(site)
        site.life.steps_left = number
        try:
            site.send(order(3, customer=BOTH, line_items=many))
            died = False
        except Died:
            crashes += 1
        site.life.steps_left = None
        site.send(order(3, customer=BOTH, line_items=many))
        stored = site.of_source("ecommerce")
        assert sorted(each.external_event_id for each in stored) == ["order:1", "order:2", "order:3"]
        (told,) = site.of_source("identity")
        assert [sorted(each.leaves) for each in groups_of(told)[1]] == [sorted((one, two))]
        assert site.registry.store.pending() == ()
        number += 1
    assert crashes >= 14, "calls to redis, the claim, identities, announcement, S3, the event"


def test_a_crash_while_leads_are_parted_leaves_everybody_told(site: Site) -> None:
    number, died = 0, True
    while died:
        site.registry.clear()
        Redis(site.consumer.cache._real._redis._url.geturl()).call("FLUSHALL")  # type: ignore[attr-defined]
        site.organization = f"org-{uuid4()}"
        apart(site)
        site.send(order(3, customer=BOTH))
        change = int(site.of_source("identity")[0].external_event_id)
        command = {"command": "unmerge", "change": change, "reason": "r", "by": "b"}
        site.life.steps_left = number
        try:
            site.consumer.handle(command, NOW)
            died = False
        except Died:
            pass
        site.life.steps_left = None
        site.consumer.handle(command, NOW)
        assert sorted(each.event_type for each in site.of_source("identity")) == [
            "leads_merged",
            "leads_unmerged",
        ]
        assert site.registry.store.pending() == ()
        number += 1
    assert number >= 6


@pytest.fixture
def deployed(engine: Engine, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The handler's own wiring."""
    for name, value in engine.environment("").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("IDENTITY_URL", registry.server.app(registry.database))
    monkeypatch.setattr("adapters.clock.now", lambda: NOW)
    client.cache_clear()
    wiring = lead_consumer._parts
    wiring.cache_clear()
    consumer, _ = wiring()
    yield engine
    consumer.identities._postgres.close()  # or the server would wait for it
    wiring.cache_clear()
    client.cache_clear()


def test_a_batch_reports_what_must_come_again_and_keeps_what_must_not(
    deployed: Engine, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs = deployed.client("sqs")
    sqs.purge_queue(QueueUrl=deployed.queue_url)
    bodies = [
        json.dumps(site.message(order(1))),
        "{",
        json.dumps(site.message({})),
        json.dumps(site.message(order(2))),
    ]
    batch = {"Records": [{"messageId": str(at), "body": body} for at, body in enumerate(bodies)]}
    assert lead_consumer.handler(batch, CONTEXT) == {"batchItemFailures": []}
    assert sorted(each.external_event_id for each in site.stored()) == ["order:1", "order:2"]
    kept = sqs.receive_message(QueueUrl=deployed.queue_url, MaxNumberOfMessages=10)["Messages"]
    held = {json.loads(each["Body"])["record"]: json.loads(each["Body"])["reason"] for each in kept}
    assert held.keys() == {bodies[1], bodies[2]}
    assert held[bodies[2]] == "payload.id is missing"

    down = replace(
        lead_consumer._parts()[0], identities=IdentityStore(Postgres("postgresql://u:p@127.0.0.1:9/d"))
    )
    monkeypatch.setattr(
        lead_consumer, "_parts", lambda: (down, FailureQueue(lambda: sqs, deployed.queue_url))
    )
    again = {
        "Records": [{"messageId": "new", "body": json.dumps(site.message(order(3)))}, batch["Records"][0]]
    }
    assert lead_consumer.handler(again, CONTEXT) == {"batchItemFailures": [{"itemIdentifier": "new"}]}
