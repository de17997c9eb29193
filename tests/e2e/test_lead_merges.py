"""A merge joins two leads in the deployed stack, and its reversal restores both."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local import replay
from local.api import Api
from local.cloud.patience import drain_leads
from local.stack import Stack
from tests.support.lead_orders import Lead, bought, send

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")


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
    replay.queue_webhooks(stack, [{"organization_id": organization, "source": "generic", "payload": proof}])
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
