"""`make demo`: starts the laptop cloud, replays real input through both doors, checks the results."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from local.api import Api
from local.cloud import laptop_cloud, patience
from local.operate import nightly_run
from local.operate.report import html_report
from local.paths import LOCAL, REPORT, ROOT
from local.replay import order_webhooks, replay, synthetic_shop, verify
from local.replay.event_sources import Body, from_git, synthetic_crowd
from local.stack import Stack

CROWD_USERS = 250
CROWD_EVENTS = 3000
CROWD_SEED = 20
SHOP_CUSTOMERS = 40
STARTED = LOCAL / "demo-started"


def demo() -> None:
    """Run the demo. Raises RuntimeError if any answer differs from the independent calculation."""
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
    sent = synthetic_shop.webhooks(SHOP_CUSTOMERS, CROWD_SEED, now)
    print(f"\na shop's webhooks, unordered, some twice: {synthetic_shop.counts_by_source(sent)}", flush=True)
    began = time.monotonic()
    half = len(sent) // 2
    posted = order_webhooks.post(stack, sent[:half])
    if set(posted.counts) != {"accepted"}:
        raise RuntimeError(f"webhooks were refused, the first: {posted.refused[0]}")
    order_webhooks.send(stack, sent[half:])
    patience.drain_leads(stack)
    customers, wrong = synthetic_shop.differences(stack, sent, datetime.now(UTC).date())
    if wrong:
        raise RuntimeError(f"{len(wrong)} customers' features are wrong, the first: {wrong[0]}")
    seconds = time.monotonic() - began
    print(f"  {customers} customers' features equal an independent count, after {seconds:.1f} s")
    told = synthetic_shop.features(Api(stack), "000-0")["features"]
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
