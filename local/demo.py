"""`make demo`: starts the laptop cloud, replays real input, and checks the results.

A person does a lesson a day, answers a question, and spends points. One lesson waits in a phone without a
network, which looks like the end of her streak until it arrives.
"""

import random
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import yaml

from adapters.book import shipped_document
from analytics.what_if.figures import WhatIfQuestion
from analytics.what_if.summary import summary
from analytics.what_if.what_if import what_if
from ingest.web.caller import ADMIN, AGENTS
from local import replay, verify
from local.api import Api
from local.cloud import laptop_cloud, patience
from local.command import command
from local.event_sources import Body, from_git, synthetic_crowd
from local.operate import html_report, nightly_run
from local.paths import LOCAL, REPORT, ROOT
from local.sign_in import bearer, page_link
from local.stack import Stack
from local.stores import lake_of
from local.what_if.page import page
from rules.book.document import read_book
from rules.days import stamp

CROWD_USERS = 250
CROWD_EVENTS = 3000
CROWD_SEED = 20
SHOP_CUSTOMERS = 40
START_FILE = LOCAL / "demo-started"  # the instant at which the demo first ran on this cloud
WHAT_IF = LOCAL / "what-if.html"
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


def demo() -> None:
    """Run the demo. Raises RuntimeError if any answer differs from the independent calculation."""
    if not (ROOT / ".git").exists():
        raise RuntimeError("`demo` replays this repository's history: run it in a checkout, by `make demo`")
    began = time.monotonic()
    stack = laptop_cloud.up()
    now = _first_start()
    history = list(from_git(ROOT))
    crowd_events = synthetic_crowd(CROWD_USERS, CROWD_EVENTS, CROWD_SEED, now)
    _publish_book(stack, now)
    print(f"\nreplaying this repository's history over HTTP: {len(history)} commits", flush=True)
    _print_outcome(replay.replay(stack, history))
    print(
        f"replaying a crowd over HTTP and Kinesis, late, unordered, some twice: {len(crowd_events)}",
        flush=True,
    )
    _print_outcome(replay.replay(stack, crowd_events, via="both"))
    _check_users(stack, [*history, *crowd_events], now)
    _act_as_person(stack, now)
    _print_leaderboards(stack)
    _send_webhooks(stack, now)
    _run_night(stack)
    _ask_what_if(stack)
    html_report.write(stack, REPORT)
    print(f"\nThe cloud stays up ({time.monotonic() - began:.0f} s so far): `make down` stops it.")
    print("Ask it in a shell after `source .venv/bin/activate`: `streakline --help`. Or look:\n")
    print(f"The page, as {PERSON} sees it, who may publish books too:\n  {_page_link(stack)}")
    print(f"The report:\n  {REPORT.as_uri()}")


def _page_link(stack: Stack) -> str:
    return page_link(stack, bearer(stack, PERSON, ADMIN))


def _publish_book(stack: Stack, now: datetime) -> None:
    """Publish the demo's book, in force since before the first event; not again when the demo runs again."""
    api, document = Api(stack), book()
    if api.get("/v1/rules")["book"] == document:
        return
    body = {"book": document, "effective": stamp(now - timedelta(days=BOOK_DAYS)), "rerate": True}
    status, answer = api.call("POST", "/v1/rules", body | {"note": "rewards, streaks and achievements"})
    if status != 201:
        raise RuntimeError(f"the demo's book was refused: {answer}")
    sizes = ", ".join(f"{len(document[part])} {part}" for part in ("rewards", "streaks", "achievements"))
    print(f"published a book of rules of its own: {sizes}")


def _act_as_person(stack: Stack, now: datetime) -> None:
    punctual, late = person_events(now)
    person = Api(stack, PERSON, admin=False)
    replay.replay(stack, punctual)
    before = person.get(f"/v1/users/{PERSON}")["current_streak"]
    replay.replay(stack, [late])
    after = person.get(f"/v1/users/{PERSON}")["current_streak"]
    if before < after:
        day = f"{datetime.fromisoformat(late['occurred_at']):%A}"
        print(
            f"\n{PERSON} did nothing on {day}, it seemed: her streak of {after - before - 1} days was lost."
        )
        print(f"Now {day}'s lesson comes in, from a phone that had no network. The loss is overturned:")
        print(f"her streak is {after} days, and her app is told (streak.corrected).")
    _ask_questions(stack)
    price = book()["rewards"]["coffee"]["price_points"]
    redemption = {"reward": "coffee", "price_points": price, "idempotency_key": "demo-coffee"}
    _post(person, f"/v1/users/{PERSON}/redemptions", redemption)
    patience.drain(stack)
    achievements = person.get(f"/v1/users/{PERSON}/achievements")["achievements"]
    titles = [achievement["title"] for achievement in achievements if achievement["achieved"]]
    balance = person.get(f"/v1/users/{PERSON}/balance")["available"]
    print(f"She has earned {len(titles)} achievements: {', '.join(titles)}.")
    print(f"She has bought a coffee for {price} points, and has {balance} left.")


def _ask_questions(stack: Stack) -> None:
    asker = Api(stack, PERSON, group=AGENTS)
    choices: list[Body] = [{"selected_option": option} for option in (0, 2, 0, 1, 2, 2)]
    ideas: list[Body] = [{"answer": idea} for idea in IDEAS]
    for key, body, people, answers in (
        ("choice", CHOICE, [*READERS, PERSON], choices),
        ("text", TEXT, READERS, ideas),
    ):
        question = _post(asker, "/v1/questions", body | {"idempotency_key": f"demo-{key}"})
        path = f"/v1/questions/{question['question_id']}/responses"
        for number, (user, answer) in enumerate(zip(people, answers, strict=True)):
            details = {"confidence": 3 + number % 3, "response_time_ms": 4000}
            _post(Api(stack, user, admin=False), path, answer | details)
    print(f"She asked {len(READERS)} readers two questions, and they have answered.")


def _post(api: Api, path: str, body: Body) -> Any:
    """Post a body and return the answer, also that of 409, where an earlier run of the demo has posted it.

    Raises RuntimeError for any other refusal.
    """
    status, answer = api.call("POST", path, body)
    if status >= 300 and status != 409:
        raise RuntimeError(f"POST {path}: {status} {answer}")
    return answer


def _ask_what_if(stack: Stack) -> None:
    document = book()
    document["event_types"]["LESSON_COMPLETED"] = {"points": 12, "cap": {"points": 36, "per": "day"}}
    answer = what_if(lake_of(stack), WhatIfQuestion(read_book(document), datetime.now(UTC)))
    figures = summary(answer, "a book with 12 points a lesson, 36 a day at most,")
    WHAT_IF.write_text(page(figures), encoding="utf-8")
    users = figures["users"]
    print("\nwhat if a lesson had earned 12 points instead of 10, and lessons at most 36 a day?")
    print(f"Of {users['all']} users {users['gain']} would have more points, {users['lose']} less.")
    print(f"In full: {WHAT_IF.relative_to(ROOT)}")


def _first_start() -> datetime:
    """Return when the demo first ran on this cloud.

    The crowd's dates count from then, so a second run sends the same events again.
    """
    if not START_FILE.exists():
        START_FILE.write_text(datetime.now(UTC).replace(microsecond=0).isoformat())
    return datetime.fromisoformat(START_FILE.read_text())


def _print_outcome(outcome: replay.ReplayResult) -> None:
    counts = ", ".join(f"{number} {status}" for status, number in sorted(outcome.counts.items()))
    rate = sum(outcome.counts.values()) / max(outcome.seconds, 1e-9)
    print(f"  {counts} in {outcome.seconds:.1f} s, to the last effect ({rate:,.0f}/s)", flush=True)
    if outcome.refused:
        print(f"  refused, with reasons: {replay.REFUSED_FILE}")


def _check_users(stack: Stack, events: Sequence[Body], now: datetime) -> None:
    as_of = (now + timedelta(days=1)).date()
    expected = verify.expect(events, as_of)
    differences = verify.compare(Api(stack), expected, as_of)
    if differences:
        raise RuntimeError(f"{len(differences)} answers are wrong, the first: {differences[0]}")
    print(f"\nchecked: {len(expected)} of {len(expected)} users equal an independent calculation")


def _send_webhooks(stack: Stack, now: datetime) -> None:
    """Send a shop's webhooks, and compare its customers' features with an independent count.

    Half of them go by HTTP, half by the stream. Raises RuntimeError if any is refused or any feature differs.
    """
    events = webhooks(SHOP_CUSTOMERS, CROWD_SEED, now)
    print(f"\na shop's webhooks, unordered, some twice: {counts_by_source(events)}", flush=True)
    began = time.monotonic()
    half = len(events) // 2
    outcome = replay.post(stack, events[:half])
    if set(outcome.counts) != {"accepted"}:
        raise RuntimeError(f"webhooks were refused, the first: {outcome.refused[0]}")
    replay.send(stack, events[half:])
    patience.drain_leads(stack)
    api, expected = Api(stack), verify.expect_features(events, datetime.now(UTC).date())
    if wrong := verify.compare_features(api, expected):
        raise RuntimeError(f"{len(wrong)} customers' features are wrong, the first: {wrong[0]}")
    seconds = time.monotonic() - began
    print(f"  {len(expected)} customers' features equal an independent count, after {seconds:.1f} s")
    lead = api.get(verify.LEAD.format(ORGANIZATION, "000-0"))["lead_id"]
    features = api.get(f"/v1/leads/{lead}/features")["features"]
    print("  the first: " + ", ".join(f"{name} {value}" for name, value in features.items()))


def _run_night(stack: Stack) -> None:
    """Do the nightly run now: load every event into the warehouse, and compare all tables with the lake.

    Raises RuntimeError if they differ.
    """
    print("\nthe nightly run: curate, load, models, tests, recompute, reconcile, repair, report", flush=True)
    patience.drain(stack, lake=True)
    report = nightly_run.run(stack)
    counts = report["counts"]
    print(f"{'entity':<16}{'rows in':>9}{'curated':>9}{'doubles':>9}{'refused':>9}")
    for row in report["curation"]:
        figures = (row["rows_in"], row["curated"], row["duplicates"], row["quarantined"])
        print(f"{row['entity']:<16}" + "".join(f"{figure:>9}" for figure in figures))
    sql_differences, failed = report["warehouse_and_lake"], report["failed_tests"]
    print(f"{counts['users']} users recomputed from the lake: {counts['different']} differ from the tables,")
    print(f"{len(sql_differences)} from the recompute in SQL; tests of models that failed: {len(failed)}")
    if counts["different"] or sql_differences or failed:
        raise RuntimeError(f"lake, warehouse and live tables disagree: {report['run_id']}")


def _print_leaderboards(stack: Stack) -> None:
    laptop_cloud.build_ranks(stack)  # all of the replay may have come since the last snapshot
    api = Api(stack)
    for board, unit in (("streaks", "days"), ("points", "points")):
        print(f"\n{board:<22}{'rank':>5}{unit:>9}")
        for row in api.get(f"/v1/leaderboards/{board}?limit=8")["entries"]:
            print(f"{row['alias']:<22}{row['rank']:>5}{row['score']:>9}")


@command("demo")
def demo_command() -> None:
    """Start the laptop cloud, replay real input through both doors, check the results, and show them."""
    demo()
