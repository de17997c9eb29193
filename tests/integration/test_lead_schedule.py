"""The daily schedule, and a shop's real purchases through the real handlers, with the clock set."""

import json
import random
from collections import defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.leads.feature_requests import FeatureQueue
from adapters.leads.feature_store import ActiveLeads, FeatureStore, shard_of
from adapters.leads.memory_store import MemoryStore
from adapters.platform.aws import client
from adapters.platform.items import encode_item
from adapters.platform.tables import chunks, put_all
from processors.leads import features, memory, refresh
from rules.days import DAY, stamp
from rules.leads.lead_events import LeadEvent, from_item, to_item
from tests.integration.test_feature_purchases import DATES, direct
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Leads, Requests, message
from tests.support.real_input import Purchase, purchases
from tests.support.template import ROOT

CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)
SAMPLE = effort(15, soak=40)


@pytest.fixture
def queue_url(engine: Engine, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The functions' environment, with a feature queue of its own."""
    url: str = engine.client("sqs").create_queue(QueueName=f"features-{abs(hash(request.node.name))}")[
        "QueueUrl"
    ]
    for name, value in {**engine.environment(), "FEATURE_QUEUE_URL": url}.items():
        monkeypatch.setenv(name, value)
    for each in (client, features._parts, refresh._parts):
        each.cache_clear()
    return url


def set_clock(monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
    monkeypatch.setattr("adapters.clock.now", lambda: now)


def deliver(bodies: list[Any]) -> None:
    """Hand messages to the feature processor, ten at a time."""
    for number, chunk in enumerate(chunks(bodies, 10)):
        records = [{"messageId": f"{number}-{n}", "body": json.dumps(body)} for n, body in enumerate(chunk)]
        assert features.handler({"Records": records}, CONTEXT) == {"batchItemFailures": []}


def queued(sqs: Any, url: str) -> list[Any]:
    bodies: list[Any] = []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        bodies += [json.loads(each["Body"]) for each in messages]
        for each in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
    return bodies


def order(row: Purchase) -> LeadEvent:
    return LeadEvent(
        organization_id="shop",
        lead_organization_id=f"cdnow-{row.customer}",
        root_id=f"cdnow-{row.customer}",
        source="shop/orders",
        source_type="ecommerce",
        external_event_id=f"{row.customer}-{row.number}",
        event_type="purchase_completed",
        occurred_at=row.occurred_at,
        received_at=row.occurred_at,
        payload={"order_id": f"{row.customer}-{row.number}", "amount_minor": row.cents, "currency": "USD"},
    )


def milled(features_: Any) -> dict[str, Any]:
    """Amounts in cents again; the rest as it is."""
    return {
        name: int(value * 100) if isinstance(value, Decimal) else value
        for name, value in features_.items()
        if name != "campaign_ignored"
    }


def test_real_customers_at_three_dates_and_a_day_later(
    engine: Engine, queue_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, by_customer = random.Random(8), defaultdict(list)
    for row in purchases():
        by_customer[row.customer].append(row)
    chosen = chance.sample(sorted(by_customer), SAMPLE)
    store, sqs = FeatureStore(engine.client("dynamodb"), "Feature"), engine.client("sqs")
    after = date(1900, 1, 1)
    for on in DATES:
        arriving = [order(row) for each in chosen for row in by_customer[each] if after < row.day <= on]
        chance.shuffle(arriving)
        put_all(client("dynamodb"), "Event", [encode_item(to_item(each)) for each in arriving])
        noon = datetime(on.year, on.month, on.day, 13, tzinfo=UTC)
        set_clock(monkeypatch, noon)
        deliver([message(each) for each in arriving])
        for now in (noon, noon + DAY):
            set_clock(monkeypatch, now)
            in_index = set(ActiveLeads(client("dynamodb"), "Feature", 2).ids())
            answer = refresh.handler({}, CONTEXT)
            assert answer["messages"] >= -(-answer["leads"] // 50)
            deliver(queued(sqs, queue_url))
            rows = {each: [(r.day, r.cents) for r in by_customer[each] if r.day <= on] for each in chosen}
            found = store.get_many(f"cdnow-{each}" for each in chosen)
            checked = 0
            for each in chosen:
                if rows[each] and f"cdnow-{each}" in in_index:
                    assert milled(found[f"cdnow-{each}"].features) == direct(rows[each], now.date()), each
                    checked += 1
            assert checked >= SAMPLE // 10
        after = on


def listed(leads: Leads, first: int, count: int) -> list[str]:
    """Put the items of active leads, as the real code writes them; returns their ids."""
    ids = [leads.leaf(f"active{number}") for number in range(first, first + count)]
    sample = leads.event(1, "purchase_completed", START, f"model{first}")
    leads.store([sample])
    leads.feature(sample)
    key = {"lead_organization_id": {"S": sample.lead_organization_id}}
    model = leads.client.get_item(TableName="Feature", Key=key)["Item"]
    leads.client.delete_item(TableName="Feature", Key=key)
    shards = {each: {"S": shard_of(each, 2)} for each in ids}
    put_all(
        leads.client,
        "Feature",
        [{**model, "lead_organization_id": {"S": each}, "active_shard": shards[each]} for each in ids],
    )
    return ids


def idle(leads: Leads, first: int, count: int) -> None:
    """Put the items of leads that have left the index."""
    items = [
        {"lead_organization_id": leads.leaf(f"idle{n}"), "version": 2} for n in range(first, first + count)
    ]
    put_all(leads.client, "Feature", [encode_item(each) for each in items])


def unlist_others(dynamodb: Any) -> None:
    """Take what other tests have left out of the index."""
    for lead in list(ActiveLeads(dynamodb, "Feature", 2).ids()):
        key = {"lead_organization_id": {"S": lead}}
        dynamodb.update_item(TableName="Feature", Key=key, UpdateExpression="REMOVE active_shard, active_on")


def test_requests_follow_the_active_leads_and_not_the_table(engine: Engine, queue_url: str) -> None:
    leads, sqs = Leads(engine.own_client("dynamodb"), "size"), engine.client("sqs")
    unlist_others(leads.client)
    ids, counted = listed(leads, 0, 100), []
    requests = Requests(leads.client)

    def a_day_later(days: int) -> int:
        requests.take()
        found = list(ActiveLeads(leads.client, "Feature", 2).ids())
        assert sorted(found) == sorted(ids)
        asked = FeatureQueue(sqs, queue_url).request_refresh(stamp(START + days * DAY), found)
        assert asked == (len(ids), len(ids) // 50)
        for body in queued(sqs, queue_url):
            leads.feature_processor.handle(body, START + days * DAY)
        assert requests.calls["Scan"] == 0
        for each in (ids[0], ids[-1]):
            told = leads.features.get(each)
            assert told and told.features["recency_days"] == days
        return sum(requests.take()) - 2

    idle(leads, 0, 100)
    counted.append(a_day_later(1))
    idle(leads, 100, effort(300, soak=900))
    counted.append(a_day_later(2))
    ids += listed(leads, 100, 50)
    counted.append(a_day_later(3))
    # Two queries of the index, a bulk read for each 50 leads, a write for each lead.
    assert counted == [2 + 2 + 100, 2 + 2 + 100, 2 + 3 + 150]
    a_day_later(365)
    assert list(ActiveLeads(leads.client, "Feature", 2).ids()) == [], "they left with their last refresh"


def test_the_schedule_asks_for_every_listed_lead_once(
    engine: Engine, queue_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leads = Leads(engine.own_client("dynamodb"), "listed")
    ids = listed(leads, 0, 70)
    set_clock(monkeypatch, START + DAY)
    answer = refresh.handler({"as_of": "2026-01-11T06:00:00Z"}, CONTEXT)
    bodies = queued(engine.client("sqs"), queue_url)
    assert {each["refresh"]["as_of"] for each in bodies} == {"2026-01-11T06:00:00.000000Z"}
    asked = [lead for each in bodies for lead in each["refresh"]["leads"]]
    assert len(asked) == len(set(asked)) == answer["leads"]
    assert set(ids) <= set(asked)
    assert max(len(each["refresh"]["leads"]) for each in bodies) == 50
    store = FeatureStore(leads.client, "Feature")
    before = store.get(ids[0])
    deliver(bodies)
    deliver(bodies)
    after = store.get(ids[0])
    assert before
    assert after
    assert after.version == before.version + 1


def test_an_instant_too_far_ahead_is_refused_with_the_last_one(
    engine: Engine, queue_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, START)
    monkeypatch.setattr(refresh, "AHEAD_MAX", 2 * DAY)
    too_late, last = stamp(START + 3 * DAY), stamp(START + 2 * DAY)
    inner: Any = refresh.handler
    with pytest.raises(ValueError, match=f"as_of {too_late} is after {last}"):
        inner.__wrapped__({"as_of": too_late}, CONTEXT)  # what is around it takes the text away


class RefusingOnce:
    """SQS that refuses one message of the first call."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.calls = 0

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, str]]) -> Any:  # noqa: N803
        self.calls += 1
        refused = Entries[:1] if self.calls == 1 else []
        self.taken += [each["MessageBody"] for each in Entries[len(refused) :]]
        return {"Failed": [{"Id": each["Id"]} for each in refused]}


def test_what_sqs_refuses_is_sent_again() -> None:
    sqs = RefusingOnce()
    assert FeatureQueue(sqs, "url").request_refresh("now", [str(n) for n in range(120)]) == (120, 3)
    assert len(sqs.taken) == 3
    assert len({*sqs.taken}) == 3


@pytest.mark.parametrize("function", ["memory", "features", "refresh"])
def test_the_samples_are_handled(engine: Engine, queue_url: str, function: str) -> None:
    module = {"memory": memory, "features": features, "refresh": refresh}[function]
    module._parts.cache_clear()
    event = json.loads((ROOT / "tests" / "events" / f"{function.title()}Function.json").read_text())
    for record in event.get("Records", ()):
        body = json.loads(record["body"])
        if "event_type" in body:
            put_all(client("dynamodb"), "Event", [encode_item(to_item(from_item(body)))])
    answer = module.handler(event, CONTEXT)
    if function == "refresh":
        assert answer["as_of"] == "2026-03-10T06:00:00.000000Z"
        return
    assert answer == {"batchItemFailures": []}
    root = "00000000-0000-5000-8000-000000000001"
    if function == "memory":
        assert MemoryStore(client("dynamodb"), "Memory").get(root, "purchase", "product:cd-17")
    else:
        found = FeatureStore(client("dynamodb"), "Feature").get(root)
        assert found and found.features["monetary_total"] == Decimal("11.77")
