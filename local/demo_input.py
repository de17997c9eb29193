"""What the demo sends: a shop's webhooks, a person's days, the questions that she asks, and a book of rules.

The person does a lesson a day, answers a question, and spends points. One lesson waits in a phone without a
network, which looks like the end of her streak until it arrives.
"""

import random
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import yaml

from adapters.book import shipped_document
from local.event_sources import Body
from local.paths import ROOT

ORGANIZATION = "demo-shop"
MESSAGES = (
    "I love it, thank you, great service",
    "This is too expensive for me",
    "It arrived broken and late, terrible",
    "Is there one in blue?",
)
CATEGORIES = ("shoes", "bags", "books")
PERSON, ZONE = "grace", ZoneInfo("Europe/Berlin")
PERSON_DAYS = 44
LATE_DAYS = 2
# The book has been in force for so long: weeks and months that began before do not count for its streaks.
BOOK_DAYS = 100
READERS = [f"reader-{number}" for number in range(1, 6)]
CHOICE = {
    "type": "multiple_choice",
    "prompt": "What keeps you coming back?",
    "options": ["The streak", "The points", "What I learn", "My friends"],
    "required_responses": 20,
    "category": "research",
}
TEXT = {
    "type": "text",
    "prompt": "What should we build next?",
    "required_responses": 20,
    "category": "ideas",
}
IDEAS = (
    "A duel with a friend",
    "Lessons without a network",
    "A dark theme",
    "Shorter lessons",
    "A tree a month",
)
Webhook = dict[str, Any]


def book() -> Body:
    """Return the demo's book of rules: the shipped one, with rewards, and more streaks and achievements."""
    shipped = shipped_document()
    additions = yaml.safe_load((ROOT / "local" / "demo.yaml").read_text(encoding="utf-8"))
    first_answer = shipped["achievements"]["first_answer"]
    return shipped | {
        "rewards": additions["rewards"],
        "streaks": shipped["streaks"] | additions["streaks"],
        "achievements": {"first_answer": first_answer} | additions["achievements"],
    }


def person_events(now: datetime) -> tuple[list[Body], Body]:
    """Return the person's punctual events up to now, and the one that comes late.

    A lesson on each of PERSON_DAYS dates and a second one on some, a check-in on most, a workout on each
    third.
    """
    today = now.astimezone(ZONE).date()
    punctual: list[Body] = []
    late: list[Body] = []
    for days_ago in range(PERSON_DAYS):
        day = today - timedelta(days=days_ago)
        six_o_clock = datetime.combine(day, datetime.min.time(), ZONE) + timedelta(hours=18)
        for index, kind in enumerate(_kinds_of_day(days_ago)):
            evening = six_o_clock + timedelta(minutes=7 * index)
            # Today's evening may not have come yet.
            at = evening if days_ago else now - timedelta(minutes=5 - index)
            event = {
                "user_id": PERSON,
                "idempotency_key": f"{PERSON}-{day}-{index}",
                "event_type": kind,
                "occurred_at": at.astimezone(ZONE).isoformat(timespec="seconds"),
                "timezone": ZONE.key,
                "source": "ios",
            }
            (late if days_ago == LATE_DAYS else punctual).append(event)
    (late_event,) = late  # on that date there is a lesson, and nothing else
    return punctual, late_event


def _kinds_of_day(days_ago: int) -> list[str]:
    """Return what the person does on a date, in the order of the evening."""
    kinds = ["LESSON_COMPLETED"]
    if days_ago % 4 == 1:
        kinds.append("LESSON_COMPLETED")
    if days_ago % 5 != 2:
        kinds.append("CHECK_IN")
    if days_ago % 3 == 0:
        kinds.append("WORKOUT_COMPLETED")
    if days_ago % 9 == 4:
        kinds.append("CHALLENGE_COMPLETED")
    return kinds


def webhooks(customers: int, seed: int, now: datetime) -> list[Webhook]:
    """Return webhooks of four sources in random order; one in ten comes twice.

    A customer orders with the shop's customer number and an e-mail address, and writes from a phone. Only the
    first order names the phone number too, so it alone shows that both are one person.
    """
    chance = random.Random(seed)
    hooks = [hook for number in range(customers) for hook in _customer_webhooks(number, chance, now)]
    hooks += [hook for hook in hooks if chance.random() < 0.1]
    chance.shuffle(hooks)
    return hooks


def counts_by_source(sent: Sequence[Webhook]) -> str:
    """Return how many webhooks came from each source, as text."""
    counts = Counter(webhook["source"] for webhook in sent)
    return ", ".join(f"{count} {source}" for source, count in counts.items())


def _customer_webhooks(number: int, chance: random.Random, now: datetime) -> list[Webhook]:
    """Return what a customer does: orders, and some messages, views of pages and an e-mail of a campaign."""
    customer = {"id": f"{number:03d}", "email": f"customer-{number:03d}@example.com"}
    phone = f"49151{27_182_818 + number}"
    order_count = 1 + int(chance.expovariate(1 / 3))
    orders = [_order(customer, phone, index, chance, now) for index in range(order_count)]
    messages = [_message(phone, f"{number}-{index}", chance, now) for index in range(chance.randrange(3))]
    views = [
        _view(customer["email"], f"{number}-{index}", chance, now) for index in range(chance.randrange(3))
    ]
    return [*orders, *messages, *views, _campaign(customer["email"], number, chance, now)]


def _order(customer: dict[str, str], phone: str, index: int, chance: random.Random, now: datetime) -> Webhook:
    payload = {
        "id": f"{customer['id']}-{index}",
        "created_at": _ago(chance, now).isoformat(timespec="seconds"),
        "currency": "USD",
        "total_price": f"{chance.lognormvariate(3, 0.6):.2f}",
        "customer": {**customer, "phone": f"+{phone}"} if index == 0 else customer,
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
    """Return an event of an e-mail. at: epoch seconds."""
    event_id = f"{kind}-{number}"
    return {"event": kind, "email": email, "timestamp": at, "sg_event_id": event_id, "campaign_id": "autumn"}


def _hook(source: str, payload: Any) -> Webhook:
    return {"organization_id": ORGANIZATION, "source": source, "payload": payload}


def _ago(chance: random.Random, now: datetime, days: int = 400) -> datetime:
    """Return a random instant of the last days; recent ones are likelier."""
    return now - timedelta(
        days=min(days, int(chance.expovariate(1 / 80))), minutes=1 + chance.randrange(1000)
    )
