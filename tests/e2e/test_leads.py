"""Leads through the deployed stack: every order counts once, and two channels of one person are one lead."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from local.api import Api
from local.cloud.patience import drain_leads
from local.stack import Stack
from tests.support.lead_orders import Lead, bought, send

CUSTOMERS = 40
# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")


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
