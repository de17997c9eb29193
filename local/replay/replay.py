"""Sends events to the deployed stack, through HTTP and Kinesis, and waits until they are processed."""

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from aws_kinesis_agg.aggregator import RecordAggregator

from adapters.platform.tables import chunks
from local.api import Api
from local.cloud.patience import drain
from local.paths import LOCAL
from local.replay.applied import wait_until_applied
from local.replay.event_sources import Body
from local.stack import Stack

BATCH = 100
POSTERS = 4
KINESIS_RECORDS_MAX = 100
REFUSED_FILE = LOCAL / "replay-refused.ndjson"


@dataclass(slots=True)
class ReplayResult:
    """What became of the events: how many by status, and the refused ones with the reason."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def progress_bar(total: int, what: str) -> Callable[[int], None]:
    """Return a function that is called with how many more are done; on a terminal it draws a bar."""
    done, started, shown = 0, time.monotonic(), 0.0

    def more(number: int) -> None:
        nonlocal done, shown
        done += number
        now = time.monotonic()
        last = done >= total
        if sys.stderr.isatty() and (last or now - shown > 0.2):
            shown = now
            bar = "#" * (30 * done // max(total, 1))
            rate = done / max(now - started, 1e-9)
            end = "\n" if last else ""
            print(f"\r{what} [{bar:30}] {done}/{total} {rate:,.0f}/s", end=end, file=sys.stderr, flush=True)

    return more


def post_events(stack: Stack, events: Sequence[Body], batch: int = BATCH) -> ReplayResult:
    """Post events over HTTP, as an admin (who may backfill), batches in parallel."""
    api, outcome = Api(stack), ReplayResult()
    more = progress_bar(len(events), "HTTP   ")
    started = time.monotonic()

    def send(some: list[Body]) -> tuple[list[Body], int, Any]:
        status, answer = api.call("POST", "/v1/events", {"events": some})
        more(len(some))
        return some, status, answer

    with ThreadPoolExecutor(POSTERS) as posters:
        for some, status, answer in posters.map(send, chunks(events, batch)):
            results = answer.get("results") or answer.get("error", {}).get("details")
            if not isinstance(results, list) or len(results) != len(some):
                results = [{"status": f"http {status}", "error": answer.get("error")}] * len(some)
            for body, result in zip(some, results, strict=True):
                outcome.counts[result["status"]] += 1
                if result["status"] not in ("accepted", "duplicate"):
                    outcome.refused.append({"event": body, "result": result})
    outcome.seconds = time.monotonic() - started
    return outcome


def put_on_stream(stack: Stack, events: Sequence[Body]) -> ReplayResult:
    """Put events on the Kinesis stream. Every other batch is KPL-aggregated, the others are plain."""
    kinesis, stream = stack.client("kinesis"), stack.output("EventsStreamName", "Kinesis door")
    outcome, started = ReplayResult(), time.monotonic()
    more = progress_bar(len(events), "Kinesis")
    for number, some in enumerate(chunks(events, KINESIS_RECORDS_MAX)):
        records = aggregated_records(some) if number % 2 else plain_records(some)
        while records:
            answer = kinesis.put_records(StreamName=stream, Records=records)
            pairs = zip(records, answer["Records"], strict=True)
            records = [record for record, result in pairs if result.get("ErrorCode")]
        outcome.counts["sent"] += len(some)
        more(len(some))
    outcome.seconds = time.monotonic() - started
    return outcome


def plain_records(events: Iterable[Body]) -> list[dict[str, Any]]:
    """Return a Kinesis record for each event."""
    return [{"Data": json.dumps(each).encode(), "PartitionKey": each["user_id"]} for each in events]


def aggregated_records(events: Iterable[Body]) -> list[dict[str, Any]]:
    """Return one KPL record for each user: the record goes to one shard, which keeps the user's order."""
    records = []
    by_user: dict[str, list[Body]] = {}
    for each in events:
        by_user.setdefault(each["user_id"], []).append(each)
    for user, some in by_user.items():
        aggregator = RecordAggregator()
        for each in some:
            aggregator.add_user_record(user, json.dumps(each))
        key, _, data = aggregator.clear_and_get().get_contents()
        records.append({"Data": data, "PartitionKey": key})
    return records


def replay(stack: Stack, events: Sequence[Body], via: str = "http") -> ReplayResult:
    """Send events through a door ("http", "kinesis", "both": half of them each), and wait for the effects."""
    sent_from = time.time()
    if via == "both":
        outcome = post_events(stack, events[::2])
        sent = put_on_stream(stack, events[1::2])
        outcome.counts += sent.counts
        outcome.seconds += sent.seconds
    else:
        outcome = (post_events if via == "http" else put_on_stream)(stack, events)
    started = time.monotonic()
    _settle(stack, events, outcome, sent_from)
    outcome.seconds += time.monotonic() - started
    if outcome.refused:
        REFUSED_FILE.write_text("".join(json.dumps(each) + "\n" for each in outcome.refused))
    return outcome


def _settle(stack: Stack, events: Sequence[Body], outcome: ReplayResult, sent_from: float) -> None:
    if stack.is_laptop:
        drain(stack)
        return
    refused = {(each["event"]["user_id"], each["event"]["idempotency_key"]) for each in outcome.refused}
    taken = [each for each in events if (each["user_id"], each["idempotency_key"]) not in refused]
    wait_until_applied(stack, taken, sent_from)


def shuffled(events: Sequence[Body], seed: int) -> list[Body]:
    """Return the events in random order; the same seed gives the same order."""
    mixed = list(events)
    random.Random(seed).shuffle(mixed)
    return mixed
