"""Webhooks through the deployed stack, as vendors send them, with IAM enforced: they land, once, with effects."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import urllib3

from local.api import Api
from local.cloud.patience import drain_leads
from local.stack import Stack
from tests.e2e.conftest import printed
from tests.support.lead_orders import Lead
from tests.support.vendor_bodies import as_sent, shopify_order, shopify_refund, shopify_sample
from tests.support.webhook_senders import headers_of

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")
SIGNED = ("ecommerce", "email_campaign", "generic", "whatsapp")
POOL = urllib3.PoolManager(retries=False)
ORIGIN = "https://acme.example"


def hook(*arguments: str) -> dict[str, Any]:
    """What `streakline hook` prints."""
    found: dict[str, Any] = json.loads(printed("hook", *arguments, "--json"))
    return found


def post(url: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
    answer = POOL.request("POST", url, body=body, headers=headers, timeout=60)
    return answer.status, json.loads(answer.data or b"null")


def external_id(source: str, body: Any) -> str:
    if source == "ecommerce":
        return f"order:{body['id']}"
    if source == "whatsapp":
        return str(body["entry"][0]["changes"][0]["value"]["messages"][0]["id"])
    return str(body[0]["sg_event_id"] if source == "email_campaign" else body["external_event_id"])


def test_a_shop_s_order_from_beginning_to_end(stack: Stack, organization: str, lead_of: Lead) -> None:
    """Pending refund before the order, the sample order, a second currency: one answer, with IAM enforced."""
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=2)
    made = hook("add", "--organization", organization, "--source", "ecommerce")
    order = shopify_order(7, now, "100.00")
    euro = shopify_order(8, now, "70.00", currency="EUR") | {"customer": order["customer"], "email": None}
    cancelled = shopify_order(9, now, "55.00") | {"customer": order["customer"]}
    at = (now + timedelta(minutes=1)).isoformat()
    for body, topic in (
        (shopify_refund(1, 7, now, "30.00", "pending"), "refunds/create"),
        (shopify_refund(1, 7, now, "30.00"), "refunds/create"),
        (order, "orders/create"),
        (euro, "orders/create"),
        (cancelled, "orders/create"),
        (
            {**cancelled, "updated_at": at, "cancelled_at": at, "financial_status": "voided"},
            "orders/cancelled",
        ),
        (shopify_sample(now), "orders/create"),
    ):
        sent = as_sent("ecommerce", body)
        headers = headers_of("ecommerce", sent, made["secret"], now, topic=topic)
        assert post(made["url"], sent, headers)[0] == 200
    drain_leads(stack)
    lead = lead_of(organization, "order:7")
    told = Api(stack).get(f"/v1/leads/{lead}/features")
    assert told["money"] == {"EUR": {"orders": 1, "spent": 70}, "USD": {"orders": 1, "spent": 70}}
    found = {name: told["features"][name] for name in ("monetary_total", "frequency_purchases_90d")}
    assert found == {"monetary_total": 70, "frequency_purchases_90d": 2}
