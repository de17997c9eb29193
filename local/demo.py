"""`make demo`: starts the laptop cloud, replays real input through both doors, checks the results."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from local import replay, verify
from local.api import Api
from local.cloud import laptop_cloud, patience
from local.event_sources import Body, from_git, synthetic_crowd
from local.operate import html_report, nightly_run
from local.paths import LOCAL, REPORT, ROOT
from local.stack import Stack

# A synthetic shop and its customers: orders, messages, page views and a campaign, as webhooks.


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


CROWD_USERS = 250
CROWD_EVENTS = 3000
CROWD_SEED = 20
SHOP_CUSTOMERS = 40
STARTED = LOCAL / "demo-started"


def demo() -> None:
    """Run the demo. Raises RuntimeError if any answer differs from the independent calculation."""
    if not (ROOT / ".git").exists():
        raise RuntimeError("`demo` replays this repository's history: run it in a checkout, by `make demo`")
    began = time.monotonic()
    stack = laptop_cloud.up()
    now = _started()
    history = list(from_git(ROOT))
    people = synthetic_crowd(CROWD_USERS, CROWD_EVENTS, CROWD_SEED, now)
    print(f"\nreplaying this repository's history over HTTP: {len(history)} commits", flush=True)
    _say(replay.replay(stack, history))
    print(f"replaying a crowd over HTTP and Kinesis, late, unordered, some twice: {len(people)}", flush=True)
    _say(replay.replay(stack, people, via="both"))
    _check(stack, [*history, *people], now)
    _show(stack)
    _shop(stack, now)
    _nightly(stack)
    html_report.write(stack, REPORT)
    print(f"\nreport: {REPORT.relative_to(ROOT)}")
    print(f"The cloud stays up ({time.monotonic() - began:.0f} s so far): `make down` stops it.")
    print("Ask it, in a shell after `source .venv/bin/activate`:")
    print('curl -H "Authorization: Bearer $(streakline token --user crowd-0000)" \\')
    print(f"  '{stack.api_url}/v1/users/crowd-0000'")
    print("The web page, signed in: streakline page --user crowd-0000")


def _started() -> datetime:
    """Return when the demo first ran on this cloud.

    The crowd's dates count from then, so a second run sends the same events again.
    """
    if not STARTED.exists():
        STARTED.write_text(datetime.now(UTC).replace(microsecond=0).isoformat())
    return datetime.fromisoformat(STARTED.read_text())


def _say(outcome: replay.ReplayResult) -> None:
    counts = ", ".join(f"{number} {status}" for status, number in sorted(outcome.counts.items()))
    rate = sum(outcome.counts.values()) / max(outcome.seconds, 1e-9)
    print(f"  {counts} in {outcome.seconds:.1f} s, to the last effect ({rate:,.0f}/s)", flush=True)
    if outcome.refused:
        print(f"  refused, with reasons: {replay.REFUSED_FILE}")


def _check(stack: Stack, events: Sequence[Body], now: datetime) -> None:
    as_of = (now + timedelta(days=1)).date()
    expected = verify.expect(events, as_of)
    differences = verify.compare(Api(stack), expected, as_of)
    if differences:
        raise RuntimeError(f"{len(differences)} answers are wrong, the first: {differences[0]}")
    print(f"\nchecked: {len(expected)} of {len(expected)} users equal an independent calculation")


def _shop(stack: Stack, now: datetime) -> None:
    """Send a shop's webhooks, and compare its customers' features with an independent count."""
    sent = webhooks(SHOP_CUSTOMERS, CROWD_SEED, now)
    print(f"\na shop's webhooks, unordered, some twice: {counts_by_source(sent)}", flush=True)
    began = time.monotonic()
    half = len(sent) // 2
    posted = replay.post(stack, sent[:half])
    if set(posted.counts) != {"accepted"}:
        raise RuntimeError(f"webhooks were refused, the first: {posted.refused[0]}")
    replay.send(stack, sent[half:])
    patience.drain_leads(stack)
    customers, wrong = differences(stack, sent, datetime.now(UTC).date())
    if wrong:
        raise RuntimeError(f"{len(wrong)} customers' features are wrong, the first: {wrong[0]}")
    seconds = time.monotonic() - began
    print(f"  {customers} customers' features equal an independent count, after {seconds:.1f} s")
    told = features(Api(stack), "000-0")["features"]
    print("  the first: " + ", ".join(f"{name} {value}" for name, value in told.items()))


def _nightly(stack: Stack) -> None:
    """Do the nightly run now: load every event into the warehouse, and compare all tables with the lake."""
    print("\nthe nightly run: curate, load, models, tests, recompute, reconcile, repair, report", flush=True)
    patience.drain(stack, lake=True)
    found = nightly_run.run(stack)
    counts = found["counts"]
    print(f"{'entity':<16}{'rows in':>9}{'curated':>9}{'doubles':>9}{'refused':>9}")
    for row in found["curation"]:
        figures = (row["rows_in"], row["curated"], row["duplicates"], row["quarantined"])
        print(f"{row['entity']:<16}" + "".join(f"{figure:>9}" for figure in figures))
    twin, failed = found["warehouse_and_lake"], found["failed_tests"]
    print(f"{counts['users']} users recomputed from the lake: {counts['different']} differ from the tables,")
    print(f"{len(twin)} from the recompute in SQL; tests of models that failed: {len(failed)}")
    if counts["different"] or twin or failed:
        raise RuntimeError(f"lake, warehouse and live tables disagree: {found['run_id']}")


def _show(stack: Stack) -> None:
    laptop_cloud.list_boards(stack)  # all of the replay may have come within the minute
    api = Api(stack)
    for board, unit in (("streaks", "days"), ("points", "points")):
        print(f"\n{board:<22}{'rank':>5}{unit:>9}")
        for row in api.get(f"/v1/leaderboards/{board}?limit=8")["entries"]:
            print(f"{row['alias']:<22}{row['rank']:>5}{row['score']:>9}")
