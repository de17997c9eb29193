"""Compares the features of a shop's customers with an independent calculation from its webhooks."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from local.api import Api

LEAD = "/v1/leads?organization_id={}&integration=ecommerce&external_event_id=order:{}"


def expect_features(webhooks: Iterable[Mapping[str, Any]], today: date) -> dict[str, dict[str, Any]]:
    """Return what features say of each customer of a shop, by the path that finds the customer's lead.

    webhooks: as they were sent, in any order and some of them twice; those of other sources count nothing.
    """
    orders: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for webhook in webhooks:
        if webhook["source"] == "ecommerce":
            order = webhook["payload"]
            orders[webhook["organization_id"], order["customer"]["id"]][order["id"]] = order
    return {
        LEAD.format(organization, next(iter(by_id))): _count_orders(list(by_id.values()), today)
        for (organization, _), by_id in orders.items()
    }


def _count_orders(orders: Sequence[Mapping[str, Any]], today: date) -> dict[str, Any]:
    ages = [(today - datetime.fromisoformat(order["created_at"]).date()).days for order in orders]
    return {
        "has_purchased": True,
        "monetary_total": float(sum((Decimal(order["total_price"]) for order in orders), Decimal())),
        "frequency_purchases_90d": sum(age < 90 for age in ages),
        "days_since_last_purchase": min(ages),
    }


def compare_features(api: Api, expected: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return every customer whose features are other than expected."""
    wrong = []
    for path, wanted in expected.items():
        features = api.get(f"/v1/leads/{api.get(path)['lead_id']}/features")["features"]
        got = {name: features.get(name) for name in wanted}
        if got != wanted:
            wrong.append({"lead": path, "got": got, "wanted": wanted})
    return wrong
