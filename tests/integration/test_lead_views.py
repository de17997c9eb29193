"""GET /v1/leads/...: what is known of a lead, on the engine, through the real handler."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl
from uuid import uuid4

import pytest

from adapters.leads.feature_store import FeatureStore
from adapters.leads.lead_event_store import LeadEventStore
from adapters.leads.memory_store import MemoryStore
from ingest.leads import leads_api
from rules.days import DAY, stamp
from rules.leads.feature_items import Change, FeatureItem
from rules.leads.features import Input
from rules.leads.lead_events import Group
from rules.leads.memory import PREFERENCE, PURCHASE, Evidence, memory_entry
from tests.integration.test_lead_event_store import new_event
from tests.support.engine import Engine
from tests.support.http_requests import called
from tests.support.items_read import ItemsRead
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Leads
from tests.support.lead_requests import context
from tests.support.memory import forget

STAMP = "2026-03-10T05:00:00.000000Z"


def get(path: str, query: str = "", scope: str = "streakline/admin") -> tuple[int, Any]:
    full = f"/v1/leads/{path}"
    more: dict[str, Any] = {
        "requestContext": context("GET", full, scope),
        "queryStringParameters": dict(parse_qsl(query)),
    }
    answer = called(leads_api.handler, "GET", full, **more)
    return answer["statusCode"], json.loads(answer["body"], parse_float=Decimal)


def put_event(engine: Engine, leaf: str, second: int = 0) -> str:
    event = new_event(occurred_at=f"2026-03-10T05:00:{second:02}.000000Z")
    store = LeadEventStore(engine.client("dynamodb"), "Event", "IdempotencyKeys")
    store.put_new(replace(event, lead_organization_id=leaf, root_id=leaf), "a")
    return event.id


def features_of(engine: Engine, lead: str) -> FeatureStore:
    store = FeatureStore(engine.client("dynamodb"), "Feature", 2)
    values: dict[str, Any] = {"monetary_total": Decimal("11.77"), "has_purchased": True, "recency_days": 3}
    change = Change(values, {}, {Input.PURCHASES: STAMP}, STAMP, None)
    store.write(store.get(lead) or FeatureItem(lead), change)
    return store


def test_an_unknown_lead_is_not_found(served: Engine) -> None:
    for path in ("events", "memory", "features"):
        status, told = get(f"{uuid4()}/{path}")
        assert (status, told["error"]["code"]) == (404, "not_found")


def test_a_lead_of_whom_only_events_are_known(served: Engine) -> None:
    lead = str(uuid4())
    event_id = put_event(served, lead)
    assert get(f"{lead}/features") == (
        200,
        {"lead_id": lead, "features": {}, "money": {}, "money_total": None, "computed_at": None},
    )
    assert get(f"{lead}/memory") == (200, {"lead_id": lead, "memory": []})
    status, told = get(f"{lead}/events")
    assert status == 200
    (event,) = told["events"]
    assert (event["id"], event["payload"]["amount_minor"]) == (event_id, 1177)
    assert "raw_payload" not in event
    assert get(f"{lead}/events", "to=2026-03-09") == (200, {"lead_id": lead, "events": [], "cursor": None})


def test_events_of_one_type_are_found_beside_many_others(served: Engine) -> None:
    leads = Leads(served.own_client("dynamodb"), str(uuid4()))
    views = [leads.event(n, "page_viewed", START - timedelta(seconds=n)) for n in range(200)]
    orders = [
        leads.event(2000 + n, "purchase_completed", START - n // 4 * DAY, "ab"[n % 2]) for n in range(12)
    ]
    leads.store([*views, *orders])
    leads.topology.set(1, [Group(leads.leaf("a"), (leads.leaf("a"), leads.leaf("b")))])
    read, cursor, seen = ItemsRead(leads.client), "", list[str]()
    while cursor is not None:
        query = "type=purchase_completed&limit=3" + (f"&cursor={cursor}" if cursor else "")
        status, told = get(f"{leads.leaf('a')}/events", query)
        assert (status, {each["event_type"] for each in told["events"]} <= {"purchase_completed"}) == (
            200,
            True,
        )
        seen, cursor = [*seen, *(each["id"] for each in told["events"])], told["cursor"]
    newest = sorted(orders, key=lambda each: (each.occurred_at, each.id), reverse=True)
    assert seen == [each.id for each in newest]
    assert read.take() < 100
    spans = "type=purchase_completed&from=2026-01-09&to=2026-01-09"
    assert len(get(f"{leads.leaf('a')}/events", spans)[1]["events"]) == 4
    status, told = get(f"{leads.leaf('a')}/events", "type=orders")
    assert (status, told["error"]["message"].partition(",")[0]) == (
        400,
        "type must be one of campaign_bounced",
    )


def test_features_are_exact(served: Engine) -> None:
    lead = str(uuid4())
    features_of(served, lead)
    status, told = get(f"{lead}/features")
    assert status == 200
    assert told["features"] == {"has_purchased": True, "monetary_total": Decimal("11.77"), "recency_days": 3}
    assert (told["computed_at"], told["as_of"]) == (STAMP, {"purchases": STAMP})


def test_features_are_as_of_the_reading(served: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lead that was silent for two years: no round has touched it since its windows were empty."""
    leads = Leads(served.own_client("dynamodb"), str(uuid4()))
    order = leads.event(1, "purchase_completed", START, amount_minor=10_000)
    sent = leads.event(2, "campaign_sent", START, campaign_id="spring")
    leads.store([order, sent])
    for each in (order, sent):
        leads.both(each)
    for days, recent, spent, ignored in ((2, 2, "100.00", 0), (40, 40, "100.00", 1), (730, 730, "0.00", 0)):
        monkeypatch.setattr("adapters.clock.now", lambda day=days: START + day * DAY)
        status, told = get(f"{leads.leaf('a')}/features")
        assert status == 200
        found = told["features"]
        assert (found["recency_days"], found["monetary_365d"]) == (recent, Decimal(spent))
        assert (found["campaign_ignored"], found["monetary_total"]) == (ignored, Decimal("100.00"))
        assert told["as_of"]["purchases"] == stamp(START + days * DAY)


def test_a_reading_goes_by_the_setting(served: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    days = 3
    monkeypatch.setenv("CAMPAIGN_GRACE_DAYS", str(days))
    forget()
    leads = Leads(served.own_client("dynamodb"), str(uuid4()))
    sent = leads.event(1, "campaign_sent", START, campaign_id="spring")
    leads.store([sent])
    leads.both(sent)
    for later, ignored in ((days - 1, 0), (days, 1)):
        monkeypatch.setattr("adapters.clock.now", lambda day=later: START + day * DAY)
        assert get(f"{leads.leaf('a')}/features")[1]["features"]["campaign_ignored"] == ignored
    forget()


def test_an_absorbed_lead_answers_with_its_root(served: Engine) -> None:
    root, leaf = str(uuid4()), str(uuid4())
    ids = [put_event(served, (root, leaf)[second % 2], second) for second in range(6)]
    leads = Leads(served.own_client("dynamodb"), "")
    leads.topology.set(1, [Group(root, (root, leaf))])
    assert len(leads.people.list_pending(features_of(served, leaf).get(root) or FeatureItem(root))) == 3
    features_of(served, root)
    for asked in (root, leaf):
        seen: list[str] = []
        cursor = ""
        while cursor is not None:
            status, told = get(f"{asked}/events", f"limit=4&cursor={cursor}" if cursor else "limit=4")
            assert (status, told["lead_id"]) == (200, root)
            seen += [each["id"] for each in told["events"]]
            cursor = told["cursor"]
        assert seen == ids[::-1]
        assert get(f"{asked}/features")[1]["features"]["monetary_total"] == Decimal("11.77")


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "cursor=x", "from=yesterday", "to=2026-13-01"])
def test_a_bad_parameter_is_named(query: str, served: Engine) -> None:
    status, told = get(f"{uuid4()}/events", query)
    assert (status, told["error"]["code"]) == (400, "invalid_parameter")
    assert query.partition("=")[0] in told["error"]["message"]


def remember(engine: Engine, lead: str, kind: Any, key: str, value: str, at: str) -> None:
    piece = Evidence(at, f"event-{key}", value, 900, "acme/shop", lead)
    MemoryStore(engine.client("dynamodb"), "Memory").join(lead, [memory_entry(kind, key, [piece])])


def test_memory_by_type_and_key_without_what_has_expired(served: Engine) -> None:
    lead = str(uuid4())
    put_event(served, lead)
    remember(served, lead, PREFERENCE, "size", "42", STAMP)
    remember(served, lead, PREFERENCE, "colour", "red", "2023-01-01T00:00:00.000000Z")
    remember(served, lead, PURCHASE, "product:7", "1", "2025-03-10T05:00:00.000000Z")
    assert {(each["type"], each["key"]) for each in get(f"{lead}/memory")[1]["memory"]} == {
        ("preference", "size"),
        ("purchase", "product:7"),
    }
    (only,) = get(f"{lead}/memory", "type=preference")[1]["memory"]
    assert (only["value"], only["source"], only["source_event_ids"]) == ("42", "acme/shop", ["event-size"])
    assert 0 < only["confidence"] <= Decimal("0.9")
    status, told = get(f"{lead}/memory", "type=purchase&key=product:7")
    assert status == 200
    (single,) = told["memory"]
    assert 0 < single["confidence"] < only["confidence"], "a year has passed"
    assert get(f"{lead}/memory", "type=nosuch")[1]["memory"] == []


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("key=size", 400),
        (f"type=a&key={'x' * 1023}", 400),
        ("type=preference&key=colour", 404),
        ("type=a&key=b", 404),
    ],
)
def test_a_single_memory_that_cannot_be_answered(query: str, status: int, served: Engine) -> None:
    lead = str(uuid4())
    put_event(served, lead)
    remember(served, lead, PREFERENCE, "colour", "red", "2023-01-01T00:00:00.000000Z")
    assert get(f"{lead}/memory", query)[0] == status
