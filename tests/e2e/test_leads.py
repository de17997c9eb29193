"""Leads through the deployed stack: every order counts once, and two channels of one person are one lead."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local import replay
from local.api import Api
from local.cloud.patience import drain_leads
from local.event_sources import Purchase, purchases
from local.replay import shuffled
from local.stack import Stack
from local.verify import compare_features, expect_features
from tests.support.effort import only_soak
from tests.support.lead_orders import Lead, bought, send
from tests.support.real_input import PURCHASES

CUSTOMERS = 40
# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")


@only_soak(
    "test_every_customer_at_three_dates (tests/integration/test_feature_purchases.py) for real orders,"
    " test_consumers_killed_and_postgresql_restarted_lose_nothing (tests/e2e/test_lead_survival.py) for some that come shuffled"
    " and twice, test_a_shop_s_order_from_beginning_to_end (tests/e2e/test_hooks.py) for the other door"
)
def test_real_orders_sent_twice_shuffled_and_through_both_doors(
    stack: Stack, organization: str, lead_of: Lead
) -> None:
    by_customer: dict[str, list[Purchase]] = {}
    for row in purchases(PURCHASES):
        if row.customer not in by_customer and len(by_customer) == CUSTOMERS:
            break
        by_customer.setdefault(row.customer, []).append(row)
    webhooks = [replay.order_webhook(row, organization) for rows in by_customer.values() for row in rows]
    mixed = shuffled(webhooks * 2, seed=4)
    posted = replay.post_webhooks(stack, mixed[: len(mixed) // 3])
    assert set(posted.counts) == {"accepted"}, posted.refused[:1]
    replay.queue_webhooks(stack, mixed[len(mixed) // 3 :])
    drain_leads(stack)
    api, expected = Api(stack), expect_features(webhooks, datetime.now(UTC).date())
    assert len(expected) == CUSTOMERS
    assert compare_features(api, expected) == []
    for customer, rows in by_customer.items():
        lead = lead_of(organization, f"order:{customer}-1")
        assert len(api.get(f"/v1/leads/{lead}/events?limit=500&from=1990-01-01")["events"]) == len(rows)


@only_soak(
    "test_32_concurrent_first_events_of_one_person_over_two_channels_are_one_lead"
    " (tests/integration/test_identity_at_once.py)"
)
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
    replay.queue_webhooks(stack, bodies)
    drain_leads(stack)
    api = Api(stack)
    leads = {lead_of(organization, f"order:o{number}") for number in range(32)}
    roots = {api.get(f"/v1/leads/{lead}/features")["lead_id"] for lead in leads}
    assert len(roots) == 1
    (root,) = roots
    assert len(api.get(f"/v1/leads/{root}/events?limit=100")["events"]) >= 32
    assert api.get(f"/v1/leads/{root}/features")["features"]["monetary_total"] == 32


@only_soak(
    "test_two_people_who_share_a_device_stay_two_whatever_the_order (tests/unit/leads/test_identity_plan.py)"
)
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
        replay.queue_webhooks(stack, [form(number, email=bodies, device="tablet")])
        drain_leads(stack)
    ann, bob, ann_again = (lead_of(organization, f"f{number}", "generic") for number in range(3))
    assert ann == ann_again
    assert ann != bob
    api = Api(stack)
    assert {api.get(f"/v1/leads/{each}/features")["lead_id"] for each in (ann, bob)} == {ann, bob}


def test_time_alone_moves_what_it_should_for_active_leads_only(
    stack: Stack, organization: str, lead_of: Lead
) -> None:
    today = datetime.now(UTC).date()
    send(
        stack,
        organization,
        bought(today - timedelta(days=5), "10.00", "active"),
        bought(today - timedelta(days=500), "20.00", "quiet"),
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
