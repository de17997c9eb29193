"""Leads through the deployed stack: every order counted once, two channels one person, nothing lost."""

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from local.cloud import cloud, embedded_postgres, processes
from local.operate.redrive import redrive
from local.paths import LOCAL
from local.replay import order_webhooks
from local.replay.api import Api
from local.replay.draining import drain_leads
from local.replay.event_sources import Purchase, purchases
from local.replay.replay import shuffled
from local.stack import Stack
from tests.e2e.test_survival import workers
from tests.support.template import ROOT

PURCHASES = ROOT.parent / "shared" / "data" / "cdnow_purchases.csv"
CUSTOMERS = 40
# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")


@pytest.fixture
def organization() -> str:
    return f"org{time.time_ns()}"


@pytest.fixture
def lead_of(stack: Stack) -> Callable[..., str]:
    """Find the lead that an integration's event was stored for."""

    def find(organization: str, external_event_id: str, integration: str = "ecommerce") -> str:
        path = f"/v1/leads?organization_id={organization}&integration={integration}"
        answer = Api(stack).get(f"{path}&external_event_id={external_event_id}")
        return str(answer["lead_id"])

    return find


Lead = Callable[..., str]


def bought(day: date, amount: str, customer: str = "c", number: int = 1, **more: Any) -> dict[str, Any]:
    placed = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    return {"customer": customer, "number": number, "placed": placed, "amount": amount, **more}


def send(stack: Stack, organization: str, *some: dict[str, Any]) -> None:
    webhooks = []
    for each in some:
        purchase = Purchase(each["customer"], each["number"], each["placed"], 1, Decimal(each["amount"]))
        webhook = order_webhooks.webhook(purchase, organization)
        webhook["payload"]["customer"] |= each.get("identities", {})
        webhooks.append(webhook)
    assert order_webhooks.send(stack, webhooks).counts["sent"] == len(webhooks)


def direct(rows: list[Purchase], as_of: date) -> dict[str, Any]:
    """The features by the definition, and nothing of the project's code."""
    ages = [(as_of - row.placed.date()).days for row in rows]
    total = sum((row.amount for row in rows), Decimal())
    return {
        "monetary_total": float(total),
        "frequency_purchases_90d": sum(age < 90 for age in ages),
        "days_since_last_purchase": min(ages),
        "has_purchased": True,
        "tenure_days": max(ages),
    }


@pytest.mark.skipif(not PURCHASES.exists(), reason=f"{PURCHASES.name} is not beside the checkout")
def test_real_orders_sent_twice_shuffled_and_through_both_doors(
    stack: Stack, organization: str, lead_of: Lead
) -> None:
    by_customer: dict[str, list[Purchase]] = {}
    for row in purchases(PURCHASES):
        if row.customer not in by_customer and len(by_customer) == CUSTOMERS:
            break
        by_customer.setdefault(row.customer, []).append(row)
    webhooks = [order_webhooks.webhook(row, organization) for rows in by_customer.values() for row in rows]
    mixed = shuffled(webhooks * 2, seed=4)
    posted = order_webhooks.post(stack, mixed[: len(mixed) // 3])
    assert set(posted.counts) == {"accepted"}, posted.refused[:1]
    order_webhooks.send(stack, mixed[len(mixed) // 3 :])
    drain_leads(stack)
    api, today = Api(stack), datetime.now(UTC).date()
    for customer, rows in by_customer.items():
        lead = lead_of(organization, f"order:{customer}-1")
        assert len(api.get(f"/v1/leads/{lead}/events?limit=500&from=1990-01-01")["events"]) == len(rows)
        found = api.get(f"/v1/leads/{lead}/features")["features"]
        expected = direct(rows, today)
        assert {name: found[name] for name in expected} == expected, customer


def test_32_first_events_of_one_person_over_two_channels_are_one_lead(
    stack: Stack, organization: str, lead_of: Lead
) -> None:
    both = {"email": f"{organization}@example.com", "phone": f"+49151{organization[-8:]}"}
    payloads = [
        {
            "id": f"o{number}",
            "created_at": "2026-10-01T10:00:00Z",
            "currency": "USD",
            "total_price": "1.00",
            # Only the first says that both are one person's.
            "customer": both if number == 0 else dict([list(both.items())[number % 2]]),
        }
        for number in range(32)
    ]
    bodies = [{"organization_id": organization, "source": "ecommerce", "payload": each} for each in payloads]
    order_webhooks.send(stack, bodies)
    drain_leads(stack)
    api = Api(stack)
    leads = {lead_of(organization, f"order:o{number}") for number in range(32)}
    roots = {api.get(f"/v1/leads/{lead}/features")["lead_id"] for lead in leads}
    assert len(roots) == 1
    (root,) = roots
    assert len(api.get(f"/v1/leads/{root}/events?limit=100")["events"]) >= 32
    assert api.get(f"/v1/leads/{root}/features")["features"]["monetary_total"] == 32


def test_two_people_on_one_device_stay_two(stack: Stack, organization: str, lead_of: Lead) -> None:
    def form(number: int, **identities: str) -> dict[str, Any]:
        return {
            "organization_id": organization,
            "source": "generic",
            "payload": {
                "external_event_id": f"f{number}",
                "event_type": "page_viewed",
                "occurred_at": f"2026-10-0{1 + number}T10:00:00Z",
                "identities": identities,
                "data": {"category": "shoes"},
            },
        }

    people = [f"{name}-{organization}@example.com" for name in ("ann", "bob")]
    for number, bodies in enumerate((people[0], people[1], people[0])):
        order_webhooks.send(stack, [form(number, email=bodies, device="tablet")])
        drain_leads(stack)
    ann, bob, ann_again = (lead_of(organization, f"f{number}", "generic") for number in range(3))
    assert ann == ann_again
    assert ann != bob
    api = Api(stack)
    assert {api.get(f"/v1/leads/{each}/features")["lead_id"] for each in (ann, bob)} == {ann, bob}


def everything(api: Api, lead: str) -> dict[str, Any]:
    """What is told of a lead, less the times at which it was worked out."""
    features = api.get(f"/v1/leads/{lead}/features")
    memory = api.get(f"/v1/leads/{lead}/memory")["memory"]
    events = api.get(f"/v1/leads/{lead}/events?limit=100")["events"]
    ids = sorted(each["external_event_id"] for each in events if each["source_type"] != "identity")
    return {"lead_id": features["lead_id"], "features": features["features"], "memory": memory, "events": ids}


def test_a_merge_joins_two_leads_and_its_reversal_restores_both(
    stack: Stack, organization: str, lead_of: Lead
) -> None:
    api, today = Api(stack), datetime.now(UTC).date()
    email, phone = f"m-{organization}@example.com", f"+4915{organization[-9:]}"
    send(
        stack,
        organization,
        bought(today - timedelta(days=3), "10.00", "one", identities={"id": None, "email": email}),
        bought(today - timedelta(days=2), "5.50", "two", identities={"id": None, "phone": phone}),
    )
    drain_leads(stack)
    one, two = (lead_of(organization, f"order:{name}-1") for name in ("one", "two"))
    before = [everything(api, lead) for lead in (one, two)]
    assert [each["features"]["monetary_total"] for each in before] == [10, 5.5]

    proof = {
        "external_event_id": "proof",
        "event_type": "page_viewed",
        "occurred_at": datetime.now(UTC).isoformat(),
        "identities": {"email": email, "phone": phone},
        "data": {},
    }
    order_webhooks.send(stack, [{"organization_id": organization, "source": "generic", "payload": proof}])
    drain_leads(stack)
    merged = everything(api, two)
    assert merged == everything(api, one)
    assert merged["features"]["monetary_total"] == 15.5
    assert merged["features"]["days_since_last_purchase"] == 2
    assert set(merged["events"]) == {"order:one-1", "order:two-1", "proof"}

    told = api.get(f"/v1/leads/{one}/events?limit=100")["events"]
    (change,) = [each["payload"]["change"] for each in told if each["event_type"] == "leads_merged"]
    status, _ = api.call("POST", f"/v1/leads/changes/{change}/reversal", {"reason": "two people"})
    assert status == 202
    drain_leads(stack)
    after = [everything(api, lead) for lead in (one, two)]
    # The event that proved the merge stays with the lead that it was first put to.
    holder = [each for each in after if "proof" in each["events"]]
    assert len(holder) == 1
    holder[0]["events"].remove("proof")
    for was, now in zip(before, after, strict=True):
        now["features"].pop("recency_days"), was["features"].pop("recency_days")
        assert now == was


def test_time_alone_moves_what_it_should_for_active_leads_only(
    stack: Stack, organization: str, lead_of: Lead
) -> None:
    today = datetime.now(UTC).date()
    send(
        stack,
        organization,
        bought(today - timedelta(days=5), "10.00", "active"),
        bought(today - timedelta(days=200), "20.00", "quiet"),
    )
    drain_leads(stack)
    api = Api(stack)
    leads = {name: lead_of(organization, f"order:{name}-1") for name in ("active", "quiet")}
    before = {name: api.get(f"/v1/leads/{lead}/features")["features"] for name, lead in leads.items()}
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    answer = stack.client("lambda").invoke(
        FunctionName=stack.outputs["RefreshFunctionName"], Payload=json.dumps({"as_of": tomorrow}).encode()
    )
    assert "FunctionError" not in answer, answer["Payload"].read()
    drain_leads(stack)
    after = {name: api.get(f"/v1/leads/{lead}/features")["features"] for name, lead in leads.items()}
    moved = {"recency_days", "days_since_last_purchase", "tenure_days"}
    for name in moved:
        assert after["active"][name] == before["active"][name] + 1
    assert {name: value for name, value in after["active"].items() if name not in moved} == {
        name: value for name, value in before["active"].items() if name not in moved
    }
    assert after["quiet"] == before["quiet"]


@pytest.fixture
def dying(stack: Stack) -> Iterator[list[int]]:
    """Kill the leads' consumers again and again."""
    stop, killed = threading.Event(), list[int]()

    def kill() -> None:
        while not stop.wait(0.7):
            for name in ("Leads", "Features", "Memory"):
                for pid in workers(stack, name):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    threading.Timer(5, stop.set).start()
    yield killed
    stop.set()
    killer.join()


def test_consumers_killed_and_postgresql_restarted_lose_nothing(
    stack: Stack, organization: str, lead_of: Lead, dying: list[int]
) -> None:
    today = datetime.now(UTC).date()
    some = [bought(today - timedelta(days=number), "2.00", f"c{number % 4}", number) for number in range(40)]
    random.Random(3).shuffle(some)
    send(stack, organization, *some[:20])
    processes.stop("postgres")
    time.sleep(1)
    send(stack, organization, *some[10:])
    cloud.up()
    time.sleep(5)
    drain_leads(stack)
    assert dying
    api = Api(stack)
    for number in range(4):
        lead = lead_of(organization, f"order:c{number}-{number}")
        found = api.get(f"/v1/leads/{lead}/features")["features"]
        assert (found["monetary_total"], found["days_since_last_purchase"]) == (20, number)
    with psycopg.connect(identities()) as database:
        query = "SELECT count(*) FROM identity.lead_organization WHERE organization_id = %s"
        assert database.execute(query, [organization]).fetchall() == [(4,)]


def identities() -> str:
    """The database's URL for its owner: the application's role may only call functions."""
    port = json.loads((LOCAL / "ports.json").read_text())["postgres"]
    return embedded_postgres.url(
        embedded_postgres.OWNER,
        embedded_postgres.initialise(embedded_postgres.FOLDER)["owner"],
        port,
        embedded_postgres.DATABASE,
    )


def test_what_cannot_be_decoded_is_told_or_kept_and_replayed(stack: Stack, organization: str) -> None:
    api = Api(stack)
    good = order_webhooks.webhook(
        Purchase("c", 1, datetime(2026, 1, 1, tzinfo=UTC), 1, Decimal(1)), organization
    )

    def refused(**change: Any) -> tuple[int, str]:
        status, answer = api.call("POST", "/v1/leads/events", {**good, **change})
        return status, json.dumps(answer["error"])

    status, told = refused(source="telegram")
    assert status == 422 and "ecommerce" in told
    status, told = refused(payload={**good["payload"], "id": None})
    assert status == 422 and "id" in told
    status, told = refused(payload={**good["payload"], "total_price": "1.001"})
    assert status == 422 and "total_price" in told
    status, told = refused(payload={**good["payload"], "currency": "EUR"})
    assert status == 422 and "USD" in told
    assert Api(stack, "somebody", admin=False).call("POST", "/v1/leads/events", good)[0] == 403

    bad = {**good, "payload": {**good["payload"], "created_at": f"never, {organization}"}}
    order_webhooks.send(stack, [bad])
    drain_leads(stack)
    (kept,) = [
        each
        for each in redrive(stack, only_list=True)["left"]
        if each["consumer"] == "leads" and organization in str(each["record"])
    ]
    assert "created_at" in kept["reason"]
    assert json.loads(kept["record"]) == bad


def test_a_large_webhook_is_kept_whole(stack: Stack, organization: str, lead_of: Lead) -> None:
    today = datetime(2026, 1, 1, tzinfo=UTC)
    webhook = order_webhooks.webhook(Purchase("big", 1, today, 1, Decimal(3)), organization)
    webhook["payload"]["note"] = "x" * 300_000
    assert Api(stack).call("POST", "/v1/leads/events", webhook)[0] == 202
    drain_leads(stack)
    lead = lead_of(organization, "order:big-1")
    (event,) = stack.client("dynamodb").query(
        TableName=stack.tables["Event"],
        KeyConditionExpression="lead_organization_id = :lead",
        ExpressionAttributeValues={":lead": {"S": lead}},
    )["Items"]
    bucket, _, key = event["raw_payload_ref"]["S"].removeprefix("s3://").partition("/")
    stored = stack.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    assert json.loads(stored) == webhook["payload"]
    assert Path(key).parts[0] == "leads"
