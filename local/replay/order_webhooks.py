"""Sends the purchases of a CSV file through the leads' doors, as a shop's order webhooks."""

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from adapters.platform.tables import chunks
from local.api import Api
from local.replay.event_sources import Purchase
from local.replay.replay import ReplayResult, progress_bar
from local.stack import Stack

ORGANIZATION = "cdnow"
POSTERS = 4
SEND_MAX = 10
Webhook = dict[str, Any]


def webhook(purchase: Purchase, organization: str = ORGANIZATION) -> Webhook:
    """Return a purchase as a shop's webhook: one order of one product."""
    return {
        "organization_id": organization,
        "source": "ecommerce",
        "payload": {
            "id": f"{purchase.customer}-{purchase.number}",
            "created_at": purchase.placed.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "currency": "USD",
            "total_price": str(purchase.amount),
            "customer": {"id": purchase.customer},
            "line_items": [{"product_id": "cd", "quantity": purchase.quantity}],
        },
    }


def post(stack: Stack, webhooks: Iterable[Webhook]) -> ReplayResult:
    """Post webhooks over HTTP, one in each request."""
    api, outcome, listed = Api(stack), ReplayResult(), list(webhooks)
    more = progress_bar(len(listed), "HTTP   ")

    def send(webhook: Webhook) -> tuple[Webhook, int, Any]:
        status, answer = api.call("POST", "/v1/leads/events", webhook)
        more(1)
        return webhook, status, answer

    with ThreadPoolExecutor(POSTERS) as posters:
        for webhook, status, answer in posters.map(send, listed):
            outcome.counts["accepted" if status == 202 else f"http {status}"] += 1
            if status != 202:
                outcome.refused.append({"event": webhook, "result": answer})
    return outcome


def send(stack: Stack, webhooks: Iterable[Webhook]) -> ReplayResult:
    """Put webhooks on the lead-ingestion queue directly, ten in each call."""
    sqs, url, outcome = stack.client("sqs"), stack.outputs["LeadIngestionUrl"], ReplayResult()
    for some in chunks(webhooks, SEND_MAX):
        entries = [{"Id": str(place), "MessageBody": json.dumps(each)} for place, each in enumerate(some)]
        while entries:
            answer = sqs.send_message_batch(QueueUrl=url, Entries=entries)
            failed = {each["Id"] for each in answer.get("Failed", ())}
            entries = [each for each in entries if each["Id"] in failed]
        outcome.counts["sent"] += len(some)
    return outcome
