"""Webhooks through the deployed stack, as vendors send them, with IAM enforced: they land, once, with effects."""

import gzip
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import urllib3

from local.api import Api
from local.cloud.patience import drain_leads
from local.stack import Stack
from tests.e2e.conftest import printed
from tests.support.effort import only_soak
from tests.support.lead_orders import Lead
from tests.support.vendor_bodies import as_sent, sample_of, shopify_order, shopify_refund, shopify_sample
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


@pytest.mark.parametrize("source", SIGNED)
@only_soak(
    "test_what_a_vendor_signs_is_queued_and_a_delivery_that_comes_again_is_the_same_event,"
    " test_whatever_does_not_fit_is_the_same_401_and_nothing_is_stored and"
    " test_a_secret_is_changed_without_a_gap_and_the_old_one_ends (tests/integration/test_hooks.py) of each vendor,"
    " test_a_shop_s_order_from_beginning_to_end (tests/e2e/test_hooks.py) on the cloud"
)
def test_a_vendor_s_webhook_lands_once_and_nothing_else_lands(
    stack: Stack, organization: str, lead_of: Lead, source: str
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    made = hook("add", "--organization", organization, "--source", source)
    other = hook("add", "--organization", f"{organization}-other", "--source", source)
    whole = sample_of(source, organization, now)
    body = as_sent(source, whole)
    right = headers_of(source, body, made["secret"], now)
    by_other = headers_of(source, body, other["secret"], now)
    old = headers_of(source, body, made["secret"], now - timedelta(seconds=301))
    bad = sample_of(source, f"{organization}bad", now + timedelta(seconds=1))
    flipped = as_sent(source, bad)
    for url, sent, headers in (
        (made["url"], flipped, right),
        (made["url"], body, by_other),
        (other["url"], body, right),
        (made["url"].replace(organization, "nobody"), body, right),
        *([(made["url"], body, old)] if source in ("email_campaign", "generic") else []),
    ):
        assert post(url, sent, headers)[0] == 401
    packed = gzip.compress(b" " * 20_000_000)
    zipped = headers_of(source, packed, made["secret"], now) | {"content-encoding": "gzip"}
    assert post(made["url"], packed, zipped)[0] in (400, 401, 413, 415)
    for sent in (b"\xff\xfe\x00", b"[" + b" " * 10_000_000 + b"]"):
        assert post(made["url"], sent, headers_of(source, sent, made["secret"], now))[0] in (400, 401, 413)
    for _ in range(3):
        assert post(made["url"], body, right) == (200, {"accepted": 1})
    drain_leads(stack)
    lead = lead_of(organization, external_id(source, whole), source)
    events = Api(stack).get(f"/v1/leads/{lead}/events?limit=100&from=2000-01-01")["events"]
    assert len(events) == 1
    if source == "ecommerce":
        assert Api(stack).get(f"/v1/leads/{lead}/features")["features"]["monetary_total"] == 398
    changed = hook("rotate", "--organization", organization, "--source", source)
    for secret in (made["secret"], changed["secret"]):
        assert post(made["url"], body, headers_of(source, body, secret, now))[0] == 200
    stored = Api(stack).get(f"/v1/leads/{lead}/events?limit=100&from=2000-01-01")["events"]
    drain_leads(stack)
    assert stored == events


@only_soak(
    "test_only_pages_of_the_organization_send_forms_and_no_form_says_who_the_customer_is and"
    " test_an_address_sends_ten_forms_a_minute_whatever_process_counts (tests/integration/test_hook_forms.py),"
    " test_meta_reads_its_number_back_by_the_token_alone (tests/integration/test_hooks.py),"
    " test_a_shop_s_order_from_beginning_to_end (tests/e2e/test_hooks.py) for a hook on the cloud"
)
def test_a_form_and_meta_s_question(stack: Stack, organization: str) -> None:
    form = hook("add", "--organization", organization, "--source", "web_form", "--origin", ORIGIN)
    sent = {"content-type": "application/x-www-form-urlencoded", "origin": ORIGIN}
    body = f"email={organization}%40example.com&message=Hello".encode()
    assert post(form["url"], body, sent) == (200, {"accepted": 1})
    assert post(form["url"], body, sent | {"origin": "https://evil.example"})[0] == 401
    told = [post(form["url"], f"email=x{n}%40example.com".encode(), sent)[0] for n in range(12)]
    assert told[-1] == 429
    made = hook("add", "--organization", organization, "--source", "whatsapp")
    query = f"?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token={made['verify_token']}"
    asked = POOL.request("GET", made["url"] + query)
    assert (asked.status, asked.data) == (200, b"1158201444")
    assert POOL.request("GET", made["url"] + query + "x").status == 401
    drain_leads(stack)
    queue = stack.outputs["LeadIngestionFailuresUrl"]
    waiting = stack.client("sqs").receive_message(QueueUrl=queue, VisibilityTimeout=0, MaxNumberOfMessages=10)
    assert not [each for each in waiting.get("Messages", []) if organization in each["Body"]]
    assert urlsplit(form["url"]).path.endswith(f"/v1/hooks/{organization}/web_form")


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


@only_soak(
    "test_an_order_that_the_shop_deletes_counts_nothing_whatever_comes_later and"
    " test_what_is_not_carried_out_is_kept_for_an_operator_and_changes_nothing (tests/integration/test_shop_orders.py),"
    " test_a_shop_s_request_erases_the_lead_of_its_organization_alone (tests/integration/test_erasure_of_leads.py),"
    " test_a_shop_s_order_from_beginning_to_end (tests/e2e/test_hooks.py) for a shop on the cloud"
)
def test_a_shop_takes_an_order_back_and_has_its_customer_erased(
    stack: Stack, organization: str, lead_of: Lead
) -> None:
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=2)
    made = hook("add", "--organization", organization, "--source", "ecommerce")

    def told(body: dict[str, Any], topic: str) -> None:
        sent = as_sent("ecommerce", body)
        answer = post(made["url"], sent, headers_of("ecommerce", sent, made["secret"], now, topic=topic))
        assert answer == (200, {"accepted": 0 if topic == "shop/redact" else 1})
        drain_leads(stack)

    order = shopify_order(7, now, "100.00")
    order["customer"]["id"] = organization
    told(order, "orders/create")
    told({**order, "id": 8, "total_price": "50.00", "total_price_set": None}, "orders/create")
    lead = lead_of(organization, "order:7")
    told({"id": 8}, "orders/delete")
    assert Api(stack).get(f"/v1/leads/{lead}/features")["features"]["monetary_total"] == 100
    shop = {"shop_id": 954889, "shop_domain": f"{organization}.myshopify.com"}
    told(
        {**shop, "customer": {"id": organization, "email": None}, "orders_to_redact": [7]}, "customers/redact"
    )
    lift = {"organization_id": organization, "email": "jon7@example.com"}
    status, answer = Api(stack).call("POST", "/v1/leads/lift", lift)
    assert (status, answer["error"]["code"]) == (409, "erasure_open"), "it is under way"
    told(shop, "shop/redact")
    waiting = stack.client("sqs").receive_message(
        QueueUrl=stack.outputs["LeadIngestionFailuresUrl"], VisibilityTimeout=0, MaxNumberOfMessages=10
    )
    kept = [each["Body"] for each in waiting.get("Messages", []) if organization in each["Body"]]
    assert any("erase its leads" in each for each in kept)
    for each in waiting.get("Messages", []):
        if organization in each["Body"]:
            stack.client("sqs").delete_message(
                QueueUrl=stack.outputs["LeadIngestionFailuresUrl"], ReceiptHandle=each["ReceiptHandle"]
            )
