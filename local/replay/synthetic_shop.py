"""A synthetic shop and its customers: orders, messages, page views and a campaign, as webhooks."""

import random
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from local.api import Api
from local.stack import Stack

ORGANIZATION = "demo-shop"
MESSAGES = (
    "I love it, thank you, great service",
    "This is too expensive for me",
    "It arrived broken and late, terrible",
    "Is there one in blue?",
)
CATEGORIES = ("shoes", "bags", "books")
Webhook = dict[str, Any]


def webhooks(customers: int, seed: int, now: datetime) -> list[Webhook]:
    """Return webhooks of four sources in random order; one in ten comes twice.

    A customer orders with the shop's customer number and an e-mail address, and writes from a phone. Only the
    first order names the phone number too, so it alone shows that both are one person.
    """
    chance = random.Random(seed)
    made = [hook for number in range(customers) for hook in _customer(number, chance, now)]
    made += [hook for hook in made if chance.random() < 0.1]
    chance.shuffle(made)
    return made


def _customer(number: int, chance: random.Random, now: datetime) -> list[Webhook]:
    customer = {"id": f"{number:03d}", "email": f"customer-{number:03d}@example.com"}
    phone = f"49151{27_182_818 + number}"
    orders = [
        _order(customer, phone, place, chance, now) for place in range(1 + int(chance.expovariate(1 / 3)))
    ]
    messages = [_message(phone, f"{number}-{place}", chance, now) for place in range(chance.randrange(3))]
    views = [
        _view(customer["email"], f"{number}-{place}", chance, now) for place in range(chance.randrange(3))
    ]
    return [*orders, *messages, *views, _campaign(customer["email"], number, chance, now)]


def _ago(chance: random.Random, now: datetime, days: int = 400) -> datetime:
    return now - timedelta(
        days=min(days, int(chance.expovariate(1 / 80))), minutes=1 + chance.randrange(1000)
    )


def _order(customer: dict[str, str], phone: str, place: int, chance: random.Random, now: datetime) -> Webhook:
    known = {**customer, "phone": f"+{phone}"} if place == 0 else customer
    payload = {
        "id": f"{customer['id']}-{place}",
        "created_at": _ago(chance, now).isoformat(timespec="seconds"),
        "currency": "USD",
        "total_price": f"{chance.lognormvariate(3, 0.6):.2f}",
        "customer": known,
        "line_items": [{"product_id": chance.choice(CATEGORIES), "quantity": chance.randrange(1, 4)}],
    }
    return _hook("ecommerce", payload)


def _message(phone: str, name: str, chance: random.Random, now: datetime) -> Webhook:
    message = {
        "id": f"wamid.{name}",
        "from": phone,
        "timestamp": str(int(_ago(chance, now, 40).timestamp())),
        "type": "text",
        "text": {"body": chance.choice(MESSAGES)},
    }
    value = {"messaging_product": "whatsapp", "messages": [message]}
    return _hook("whatsapp", {"entry": [{"changes": [{"field": "messages", "value": value}]}]})


def _view(email: str, name: str, chance: random.Random, now: datetime) -> Webhook:
    payload = {
        "external_event_id": f"view-{name}",
        "event_type": "page_viewed",
        "occurred_at": _ago(chance, now, 60).isoformat(timespec="seconds"),
        "identities": {"email": email},
        "data": {"category": chance.choice(CATEGORIES)},
    }
    return _hook("generic", payload)


def _campaign(email: str, number: int, chance: random.Random, now: datetime) -> Webhook:
    sent = int((now - timedelta(days=10)).timestamp())
    events = [_mail("delivered", email, number, sent)]
    if chance.random() < 0.4:
        events.append(_mail("open", email, number, sent + 3600))
    return _hook("email_campaign", events)


def _mail(kind: str, email: str, number: int, at: int) -> dict[str, Any]:
    event_id = f"{kind}-{number}"
    return {"event": kind, "email": email, "timestamp": at, "sg_event_id": event_id, "campaign_id": "autumn"}


def _hook(source: str, payload: Any) -> Webhook:
    return {"organization_id": ORGANIZATION, "source": source, "payload": payload}


def differences(stack: Stack, sent: Sequence[Webhook], today: date) -> tuple[int, list[str]]:
    """Return how many customers there are, and those whose features differ from an independent count."""
    orders: dict[str, dict[str, Webhook]] = {}
    for each in sent:
        if each["source"] == "ecommerce":
            payload = each["payload"]
            orders.setdefault(payload["customer"]["id"], {})[payload["id"]] = payload
    api = Api(stack)
    wrong = [
        f"{customer}: {found} instead of {expected}"
        for customer, placed in orders.items()
        for expected in [_expected(list(placed.values()), today)]
        if (found := _told(api, next(iter(placed)), expected)) != expected
    ]
    return len(orders), wrong


def _expected(placed: Sequence[dict[str, Any]], today: date) -> dict[str, Any]:
    ages = [(today - datetime.fromisoformat(each["created_at"]).date()).days for each in placed]
    return {
        "monetary_total": float(sum((Decimal(each["total_price"]) for each in placed), Decimal())),
        "frequency_purchases_90d": sum(age < 90 for age in ages),
        "days_since_last_purchase": min(ages),
    }


def _told(api: Api, order: str, names: dict[str, Any]) -> dict[str, Any]:
    found = features(api, order)["features"]
    return {name: found.get(name) for name in names}


def features(api: Api, order: str) -> dict[str, Any]:
    """Return the features of the lead that placed an order."""
    where = f"organization_id={ORGANIZATION}&integration=ecommerce&external_event_id=order:{order}"
    lead = api.get(f"/v1/leads?{where}")["lead_id"]
    answer: dict[str, Any] = api.get(f"/v1/leads/{lead}/features")
    return answer


def counts_by_source(sent: Sequence[Webhook]) -> str:
    """Return how many webhooks came from each source, as text."""
    return ", ".join(
        f"{number} {source}" for source, number in Counter(each["source"] for each in sent).items()
    )
