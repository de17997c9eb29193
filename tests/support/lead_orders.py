"""Orders of a web shop, sent to the deployed stack as webhooks."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from local import replay
from local.event_sources import Purchase
from local.stack import Stack

Lead = Callable[..., str]


def bought(day: date, amount: str, customer: str = "c", number: int = 1, **more: Any) -> dict[str, Any]:
    placed = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    return {"customer": customer, "number": number, "placed": placed, "amount": amount, **more}


def send(stack: Stack, organization: str, *some: dict[str, Any]) -> None:
    webhooks = []
    for each in some:
        purchase = Purchase(each["customer"], each["number"], each["placed"], 1, Decimal(each["amount"]))
        webhook = replay.order_webhook(purchase, organization)
        webhook["payload"]["customer"] |= each.get("identities", {})
        webhooks.append(webhook)
    assert replay.queue_webhooks(stack, webhooks).counts["sent"] == len(webhooks)
