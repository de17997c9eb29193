"""The input that the demo invents: a crowd's events, a person's, a shop's webhooks, and a book.

The same seed and instant give the same input, so a demo that runs again sends it again.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import yaml

from adapters.book_store import shipped_document
from local.event_sources import Body
from local.paths import ROOT

# The crowd's phones and time zones, which have daylight saving time or not.
SOURCES = ("ios", "android", "web")
ZONES = (
    *("America/New_York", "America/Los_Angeles", "America/Sao_Paulo", "Europe/Berlin", "Europe/London"),
    *("Africa/Cairo", "Asia/Kolkata", "Asia/Tokyo", "Australia/Sydney", "Pacific/Auckland"),
)
# The shop, what its customers write, and what they buy.
ORGANIZATION = "demo-shop"
MESSAGES = (
    "I love it, thank you, great service",
    "This is too expensive for me",
    "It arrived broken and late, terrible",
    "Is there one in blue?",
)
CATEGORIES = ("shoes", "bags", "books")
PERSON, ZONE = "grace", ZoneInfo("Europe/Berlin")
FRIEND, FRIEND_DAYS = "hedy", 12  # the person's friend, and how many dates ago they became friends
PERSON_DAYS = 44  # up to today
LATE_DAYS = 2  # for so many days a lesson waits in her phone
Webhook = dict[str, Any]


def synthetic_crowd(users: int, events: int, seed: int, now: datetime, days: int = 45) -> list[Body]:
    """Return a synthetic crowd's events, in the order in which they would arrive.

    Activity follows Zipf's law. Users live in zones with and without daylight saving time. One event in ten
    comes late, in a batch, when its phone is online again. One in twenty comes twice.
    """
    chance = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(users)]
    common = ("LESSON_COMPLETED", "CHECK_IN", "WORKOUT_COMPLETED", "APP_OPENED", "CHALLENGE_COMPLETED")
    kinds = (*common, *common, *common, "PURCHASE_COMPLETED")
    arrivals: list[tuple[datetime, Body]] = []
    for number, user in enumerate(chance.choices(range(users), weights, k=events)):
        zone = ZoneInfo(ZONES[user % len(ZONES)])
        occurred = _habitual_moment(chance, user, zone, now, days)
        offline = timedelta(hours=chance.expovariate(1 / 20)) if chance.random() < 0.1 else timedelta()
        body: Body = {
            "user_id": f"crowd-{user:04d}",
            "occurred_at": occurred.astimezone(zone).isoformat(timespec="seconds"),
            "timezone": zone.key,
            "idempotency_key": f"crowd-{seed}-{number}",
            "event_type": chance.choice(kinds),
            "source": SOURCES[user % len(SOURCES)],
        }
        if body["event_type"] == "PURCHASE_COMPLETED":
            body["properties"] = {"amount": f"{chance.lognormvariate(3, 0.6):.2f}", "quantity": 1}
        arrivals.append((occurred + offline, body))
        if chance.random() < 0.05:
            arrivals.append((occurred + timedelta(hours=chance.expovariate(1 / 10)), body))
    return [
        body for _, body in sorted(arrivals, key=lambda arrival: (arrival[0], arrival[1]["idempotency_key"]))
    ]


def _habitual_moment(chance: random.Random, user: int, zone: ZoneInfo, now: datetime, days: int) -> datetime:
    """Return a random moment of a user's recent past, near the hour at which this user is usually active."""
    hour = (user * 7 % 24 + chance.gauss(0, 2.5)) % 24
    day = (now - timedelta(days=min(days - 1, int(chance.expovariate(1 / 12))))).astimezone(zone).date()
    local = datetime(day.year, day.month, day.day, int(hour), chance.randrange(60), tzinfo=zone)
    return min(local.astimezone(UTC), now - timedelta(seconds=chance.randrange(1, 600)))


def book() -> Body:
    """Return the demo's book of rules: the shipped one, with rewards, and more streaks and achievements."""
    shipped = shipped_document()
    additions = yaml.safe_load((ROOT / "local" / "demo.yaml").read_text(encoding="utf-8"))
    first_answer = shipped["achievements"]["first_answer"]
    return shipped | {
        "rewards": additions["rewards"],
        "streaks": shipped["streaks"] | additions["streaks"],
        "achievements": {"first_answer": first_answer} | additions["achievements"],
        "boards": additions["boards"],
        "leagues": additions["leagues"],
    }


def person_events(now: datetime) -> tuple[list[Body], Body]:
    """Return the person's punctual events up to now, and the one that comes late.

    A lesson on each of PERSON_DAYS dates and a second one on some, a check-in on most and a second one, which
    earns nothing, on some, a workout on each third.
    """
    punctual_days = [days_ago for days_ago in range(PERSON_DAYS) if days_ago != LATE_DAYS]
    punctual = [event for days_ago in punctual_days for event in _events_of_day(days_ago, now)]
    (late,) = _events_of_day(LATE_DAYS, now)  # on that date there is a lesson, and nothing else
    return punctual, late


def friend_events(now: datetime) -> list[Body]:
    """Return a lesson on each date since the person's friend came; they have a streak in common."""
    return [
        event | {"user_id": FRIEND, "idempotency_key": str(event["idempotency_key"]).replace(PERSON, FRIEND)}
        for days_ago in range(FRIEND_DAYS)
        for event in islice(_events_of_day(days_ago, now), 1)
    ]


def _events_of_day(days_ago: int, now: datetime) -> Iterator[Body]:
    day = now.astimezone(ZONE).date() - timedelta(days=days_ago)
    six_o_clock = datetime.combine(day, datetime.min.time(), ZONE) + timedelta(hours=18)
    for index, kind in enumerate(_kinds_of_day(days_ago)):
        # Today's evening may not have come yet.
        at = six_o_clock + timedelta(minutes=7 * index) if days_ago else now - timedelta(minutes=5 - index)
        yield {
            "user_id": PERSON,
            "idempotency_key": f"{PERSON}-{day}-{index}",
            "event_type": kind,
            "occurred_at": at.astimezone(ZONE).isoformat(timespec="seconds"),
            "timezone": ZONE.key,
            "source": "ios",
        }


def _kinds_of_day(days_ago: int) -> list[str]:
    kinds = ["LESSON_COMPLETED"]
    if days_ago % 4 == 1:
        kinds.append("LESSON_COMPLETED")
    if days_ago % 5 != 2:
        kinds.append("CHECK_IN")
    if days_ago % 3 == 0:
        kinds.append("WORKOUT_COMPLETED")
    if days_ago % 9 == 4:
        kinds.append("CHALLENGE_COMPLETED")
    if days_ago % 5 == 1:
        kinds.append("CHECK_IN")
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


def _customer_webhooks(number: int, chance: random.Random, now: datetime) -> list[Webhook]:
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
