"""Orders of a web shop, sent to the deployed stack as webhooks."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from local import replay
from local.stack import Stack

Lead = Callable[..., str]


def bought(day: date, amount: str, customer: str = "c", number: int = 1, **more: Any) -> dict[str, Any]:
    placed = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    return {"customer": customer, "number": number, "placed": placed, "amount": amount, **more}


def order(
    organization: str, placed: date, amount: str, customer: str = "c", number: int = 1, quantity: int = 1
) -> dict[str, Any]:
    """An order of one product, as a shop's webhook."""
    return {
        "organization_id": organization,
        "source": "ecommerce",
        "payload": {
            "id": f"{customer}-{number}",
            "created_at": placed.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "currency": "USD",
            "total_price": amount,
            "customer": {"id": customer},
            "line_items": [{"product_id": "cd", "quantity": quantity}],
        },
    }


def send(stack: Stack, organization: str, *some: dict[str, Any]) -> None:
    webhooks = []
    for each in some:
        webhook = order(organization, each["placed"], each["amount"], each["customer"], each["number"])
        webhook["payload"]["customer"] |= each.get("identities", {})
        webhooks.append(webhook)
    assert replay.send(stack, webhooks).counts["sent"] == len(webhooks)
