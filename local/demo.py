"""`make demo`: starts the laptop cloud, replays real and invented input, and checks the results.

What is invented is in local/demo_input.py. A person does a lesson a day, acts in each part, and spends
points. One lesson waits in a phone without a network, which looks like the end of her streak until it
arrives.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.book_store import Publication
from analytics.what_if.figures import WhatIfQuestion
from analytics.what_if.summary import summary
from analytics.what_if.what_if import what_if
from ingest.rules_api import Proposal, check
from ingest.web.caller import ADMIN
from local import replay, verify
from local.api import Api
from local.cloud import laptop_cloud, patience
from local.command import command
from local.demo_input import (
    FRIEND,
    FRIEND_DAYS,
    PERSON,
    book,
    friend_events,
    person_events,
    synthetic_crowd,
)
from local.event_sources import Body, from_git
from local.operate import html_report, nightly_run
from local.part_demo import PartDemo
from local.paths import LOCAL, REPORT, ROOT
from local.sign_in import bearer, page_link
from local.stack import Stack
from local.stores import books_of, lake_of
from local.what_if.page import page
from rules.book.document import read_book
from rules.days import stamp
from rules.parts import said

PARTS: list[PartDemo] = list(said("demo"))
CROWD_USERS = 250
CROWD_EVENTS = 3000
CROWD_SEED = 20
START_FILE = LOCAL / "demo-started"  # the instant at which the demo first ran on this cloud
WHAT_IF = LOCAL / "what-if.html"
# The book has been in force for so long: weeks and months that began before do not count for its streaks.
BOOK_DAYS = 100
PUBLISHED_DAYS = 9  # and known for so long: longer than any week has gone on


@command("demo")
def demo_command() -> None:
    """Start the laptop cloud, replay real input through both doors, check the results, and show them."""
    demo()


def demo() -> None:
    """Run the demo. The page's link comes as soon as the page has a person to show.

    Raises RuntimeError if any answer differs from the independent calculation.
    """
    if not (ROOT / ".git").exists():
        raise RuntimeError("`demo` replays this repository's history: run it in a checkout, by `make demo`")
    began = time.monotonic()
    stack = laptop_cloud.up()
    now = _first_start()
    history = list(from_git(ROOT))
    crowd_events = synthetic_crowd(CROWD_USERS, CROWD_EVENTS, CROWD_SEED, now)
    _publish_book(stack, now)
    _act_as_person(stack, now)
    laptop_cloud.build_ranks(stack)
    link = page_link(stack, bearer(stack, PERSON, ADMIN))
    print(f"\nThe page, as {PERSON} sees it, who may publish books too:\n  {link}")
    print("Look at it now: its boards fill up while the rest of the demo runs.", flush=True)
    print(f"\nreplaying this repository's history over HTTP: {len(history)} commits", flush=True)
    _print_outcome(replay.replay(stack, history))
    print(
        f"replaying a crowd over HTTP and Kinesis, late, unordered, some twice: {len(crowd_events)}",
        flush=True,
    )
    _print_outcome(replay.replay(stack, crowd_events, via="both"))
    _check_users(stack, [*history, *crowd_events], now)
    _print_leaderboards(stack)
    for part in PARTS:
        if part.part in stack.parts:
            part.send(stack, now, CROWD_SEED)
    _run_night(stack)
    _ask_what_if(stack)
    html_report.write(stack, REPORT)
    print(f"\nThe cloud stays up ({time.monotonic() - began:.0f} s so far): `make down` stops it.")
    print("Ask it in a shell after `source .venv/bin/activate`: `streakline --help`. Or look:\n")
    print(f"The page, as {PERSON} sees it:\n  {link}")
    print(f"The report:\n  {REPORT.as_uri()}")


def _first_start() -> datetime:
    """Return when the demo first ran on this cloud.

    The crowd's dates count from then, so a second run sends the same events again.
    """
    if not START_FILE.exists():
        START_FILE.write_text(datetime.now(UTC).replace(microsecond=0).isoformat())
    return datetime.fromisoformat(START_FILE.read_text())


def _publish_book(stack: Stack, now: datetime) -> None:
    """Publish the demo's book, in force since before the first event; not again when the demo runs again."""
    document, store = book(), books_of(stack)
    if store.document(store.look().newest.number) == document:
        return
    proposal = Proposal(
        document, now - timedelta(days=BOOK_DAYS), "demo", "rewards, streaks and achievements", rerate=True
    )
    effective = check(store, proposal, now)
    # Whoever publishes today has a board of the next week. The demo's has begun: nobody can wait for Monday.
    published = now - timedelta(days=PUBLISHED_DAYS)
    store.publish(Publication(document, effective, published, proposal.author, proposal.note))
    sizes = ", ".join(f"{len(document[part])} {part}" for part in ("rewards", "streaks", "achievements"))
    print(f"published a book of rules of its own: {sizes}")


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
        print(f"her streak is {after} days.")
    for part in PARTS:
        if part.part in stack.parts:
            part.act(stack, _post)
    price = book()["rewards"]["coffee"]["price_points"]
    redemption = {"reward": "coffee", "price_points": price, "idempotency_key": "demo-coffee"}
    _post(person, f"/v1/users/{PERSON}/redemptions", redemption)
    patience.drain(stack)
    achievements = person.get(f"/v1/users/{PERSON}/achievements")["achievements"]
    titles = [achievement["title"] for achievement in achievements if achievement["achieved"]]
    balance = person.get(f"/v1/users/{PERSON}/balance")["available"]
    print(f"She has earned {len(titles)} achievements: {', '.join(titles)}.")
    print(f"She has bought a coffee for {price} points, and has {balance} left.")
    replay.replay(stack, friend_events(now))
    since = {"since": stamp(now - timedelta(days=FRIEND_DAYS))}
    Api(stack).call("PUT", f"/v1/users/{PERSON}/friends/{FRIEND}", since)
    Api(stack, "lena", admin=False).call("PUT", f"/v1/users/lena/friends/{PERSON}", {})
    (friend,) = person.get(f"/v1/users/{PERSON}/friends")["friends"]
    print(f"With {FRIEND} she has a streak of {friend['streak']} days in common. Lena asks to be her friend.")


def _post(api: Api, path: str, body: Body) -> Any:
    """Post a body and return the answer, also that of 409, where an earlier run of the demo has posted it.

    Raises RuntimeError for any other refusal.
    """
    status, answer = api.call("POST", path, body)
    if status >= 300 and status != 409:
        raise RuntimeError(f"POST {path}: {status} {answer}")
    return answer


def _print_leaderboards(stack: Stack) -> None:
    laptop_cloud.build_ranks(stack)  # all of the replay may have come since the last snapshot
    api = Api(stack)
    for board, unit in (("streaks", "days"), ("points", "points")):
        print(f"\n{board:<22}{'rank':>5}{unit:>9}")
        for row in api.get(f"/v1/leaderboards/{board}?limit=8")["entries"]:
            print(f"{row['alias']:<22}{row['rank']:>5}{row['score']:>9}")
    status, shown = Api(stack, PERSON, admin=False).call("GET", f"/v1/users/{PERSON}/league")
    if status == 200 and shown["league"]:  # not in the ten minutes after a closing
        print(f"\n{'league of ' + PERSON + ', ' + shown['division']['name']:<22}{'rank':>5}{'points':>9}")
        for row in shown["league"]["entries"][:8]:
            print(f"{row['alias']:<22}{row['rank']:>5}{row['points']:>9}  {row['zone']}")


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


def _ask_what_if(stack: Stack) -> None:
    document = book()
    document["event_types"]["LESSON_COMPLETED"] = {"points": 12, "cap": {"points": 36, "per": "day"}}
    answer = what_if(lake_of(stack), WhatIfQuestion(read_book(document), datetime.now(UTC)))
    figures = summary(answer, "a book with 12 points a lesson, 36 a day at most,")
    WHAT_IF.write_text(page(figures), encoding="utf-8")
    users = figures["users"]
    print("\nwhat if a lesson had earned 12 points instead of 10, and lessons at most 36 a day?")
    print(f"Of {users['all']} users {users['gain']} would have more points, {users['lose']} fewer.")
    print(f"In full: {WHAT_IF.relative_to(ROOT)}")
