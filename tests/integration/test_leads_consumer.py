"""From the queue to the Event table, on real stores: each event is stored once, and a bad one is kept."""

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.leads.identity_store import IdentityStore
from adapters.platform.aws import client
from adapters.platform.queues import PoisonMessage
from adapters.postgresql.postgres import Postgres
from ingest.leads import lead_consumer, sources
from tests.support.engine import Engine
from tests.support.identity_server import Registry
from tests.support.lead_site import Site, order
from tests.support.webhooks import MAIL, NOW, changed, text, whatsapp

pytestmark = pytest.mark.xdist_group("identity")
CONTEXT = SimpleNamespace(
    function_name="f",
    memory_limit_in_mb=128,
    invoked_function_arn="arn",
    aws_request_id="1",
    get_remaining_time_in_millis=lambda: 120_000,
)


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
    trips, requests = site.registry.counting.trips, len(site.requests)
    site.send(order(2))
    # Whatever is known of the order is read first: it may have been told of before, in another state.
    assert site.requests[requests:] == ["GetItem", "TransactWriteItems"]
    assert site.registry.counting.trips == trips + 1


def test_another_body_changes_nothing_and_is_kept(site: Site) -> None:
    site.send(order(1))
    known = site.registry.dump()
    other = order(1, customer={"id": 6, "email": "ada@example.com"})
    with pytest.raises(PoisonMessage, match="conflict: order:1 is stored with another body"):
        site.send(other)
    assert site.registry.dump() == known, "its identities must not have been believed"
    with pytest.raises(PoisonMessage, match="conflict"):
        site.send(order(1, total_price="1.00"))
    assert [each.payload["amount_minor"] for each in site.stored()] == [1177]


def test_a_batch_is_stored_but_for_what_is_bad(site: Site) -> None:
    batch = [MAIL, changed(MAIL, "timestamp", ...), {**MAIL, "sg_event_id": "sg-3"}]
    for _ in range(2):
        with pytest.raises(PoisonMessage, match=r"^payload.1.timestamp is missing$"):
            site.send(batch, "email_campaign")
    assert sorted(each.external_event_id for each in site.stored()) == ["sg-1", "sg-3"]
    assert json.loads(site.stored()[0].raw_payload or "")["email"] == MAIL["email"]


@pytest.mark.parametrize("kind", ["unsubscribe", "group_unsubscribe", "spamreport"])
@pytest.mark.parametrize("campaign", [{}, {"marketing_campaign_id": 7}])
def test_an_opt_out_without_an_id_is_stored_once_whatever_stands_beside_it(
    kind: str, campaign: dict[str, Any], site: Site
) -> None:
    told = {
        "event": kind,
        "email": "ada@example.com",
        "timestamp": 1772000000,
        "sg_message_id": "m",
        **campaign,
    }
    for body in ([told, told], [told], [{**told, "ip": "192.0.2.1"}, {**told, "sg_event_id": ["odd"]}]):
        site.send(body, "email_campaign", is_signed=True)
    assert len(site.stored()) == 1
    site.send([{**told, "sg_message_id": "other"}], "email_campaign", is_signed=True)
    assert len(site.stored()) == 2


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
    with pytest.raises(PoisonMessage, match="the decoder raised ZeroDivisionError: a bug"):
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
    with pytest.raises(PoisonMessage, match=reason):
        site.consumer.handle(site.message(order(1)) | more, NOW)
    assert site.stored() == []


@pytest.fixture
def deployed(engine: Engine, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The handler's own wiring."""
    for name, value in engine.environment("").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("IDENTITY_URL", registry.url)
    monkeypatch.setattr("adapters.clock.now", lambda: NOW)
    client.cache_clear()
    wiring = lead_consumer._parts
    wiring.cache_clear()
    consumer, _ = wiring()
    yield engine
    consumer.identities._database.close()  # or the server would wait for it
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

    up, queue = lead_consumer._parts()
    down = replace(up, identities=IdentityStore(Postgres("postgresql://u:p@127.0.0.1:9/d")))
    monkeypatch.setattr(lead_consumer, "_parts", lambda: (down, queue))
    late = {"messageId": "new", "receiptHandle": "gone", "body": json.dumps(site.message(order(3)))}
    again = {"Records": [late, batch["Records"][0]]}
    assert lead_consumer.handler(again, CONTEXT) == {"batchItemFailures": [{"itemIdentifier": "new"}]}
