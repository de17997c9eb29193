"""`streakline events replay`: sends events over HTTP, Kinesis or the queue, and waits for their effects."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click
from aws_kinesis_agg.aggregator import RecordAggregator

from adapters.platform.aws import pauses
from adapters.platform.tables import chunks
from local.api import Api
from local.cloud.patience import Sent, drain, drain_leads, failures, records_of, wait_until_applied
from local.command import command, option, show
from local.event_sources import Body, Purchase, from_csv, from_git, from_purchases, purchases
from local.paths import LOCAL
from local.progress import progress_bar
from local.stack import Stack

POST_EVENTS_MAX = 100  # in a request
POSTERS = 4  # threads
KINESIS_EVENTS_MAX = 100  # in a call
SQS_MESSAGES_MAX = 10  # in a call
# How often what a stream or a queue refuses is sent in all, and the longest pause between: about 12 seconds.
SEND_ATTEMPTS_MAX, PAUSE_SECONDS_MAX = 12, 5.0
REFUSED_FILE = LOCAL / "replay-refused.ndjson"
ORGANIZATION = "cdnow"  # of replayed orders
SOURCES = {"csv": from_csv, "git": from_git, "purchases": from_purchases}
ORDERS = "orders"
EVENT_DOORS, ORDER_DOORS = ("http", "kinesis", "both"), ("http", "queue")
Webhook = dict[str, Any]
T = TypeVar("T")


@command("events replay tests/data/commits.csv", "events replay . --format git --via both --shuffle 7")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@option(
    "--format",
    "kind",
    type=click.Choice([*SOURCES, ORDERS]),
    default="csv",
    help="csv: user_id, occurred_at, idempotency_key, ...; git: a repository, each commit a contribution;"
    " purchases: customer_id, date, quantity, amount; orders: the same as order webhooks of leads",
)
@option(
    "--via",
    type=click.Choice(["http", "kinesis", "both", "queue"]),
    default="http",
    help="which door: of events http, kinesis, or both with half of them each; of orders http or queue",
)
@option("--shuffle", type=int, metavar="SEED", help="in another order")
@option("--twice", is_flag=True, help="every event two times")
def replay_command(
    *, stack: Stack, path: Path, kind: str, via: str, shuffle: int | None, twice: bool, as_json: bool
) -> None:
    """Send events of a file or of a git history, as an admin, and wait for their effects."""
    doors = ORDER_DOORS if kind == ORDERS else EVENT_DOORS
    if via not in doors:
        raise click.UsageError(f"--via {via}: --format {kind} goes via {' or '.join(doors)}")
    failed_before = failures(stack)
    if kind == ORDERS:
        outcome = _replay_orders(stack, path, via, shuffle, copies=1 + twice)
    else:
        events = list(SOURCES[kind](path)) * (1 + twice)
        outcome = replay(stack, events if shuffle is None else shuffled(events, shuffle), via)
    show({**outcome.counts, "seconds": round(outcome.seconds, 1)}, as_json=as_json)
    if outcome.refused:
        raise RuntimeError(f"{len(outcome.refused)} refused, with reasons: {REFUSED_FILE}")
    # A stream and a queue take everything: what cannot be processed waits in a failure queue.
    failed = {
        name: more for name, count in failures(stack).items() if (more := count - failed_before[name]) > 0
    }
    if failed:
        queues = ", ".join(f"{count} in {name}" for name, count in failed.items())
        raise RuntimeError(f"messages wait for an operator: {queues}. `streakline queue list` says why")


@dataclass(slots=True)
class ReplayResult:
    """What became of events or webhooks."""

    counts: Counter[str] = field(default_factory=Counter)  # by status
    refused: list[dict[str, Any]] = field(default_factory=list)  # each `event` with its `result`
    seconds: float = 0.0


def replay(stack: Stack, events: Sequence[Body], via: str = "http") -> ReplayResult:
    """Send events, and wait for their effects. via: "http", "both" (half of them each), or Kinesis."""
    started = time.monotonic()
    before = records_of(stack, "Engagement") if stack.is_laptop else 0
    if via == "both":
        outcome = post_events(stack, events[::2])
        outcome.counts += put_on_stream(stack, events[1::2]).counts
    else:
        outcome = (post_events if via == "http" else put_on_stream)(stack, events)
    if stack.is_laptop:
        drain(stack, sent=Sent(before, outcome.counts["accepted"] + outcome.counts["sent"]))
    else:
        refused_keys = {_key_of(refusal["event"]) for refusal in outcome.refused}
        wait_until_applied(stack, (event for event in events if _key_of(event) not in refused_keys))
    return _ended(outcome, started)


def _ended(outcome: ReplayResult, started: float) -> ReplayResult:
    """Return what became of a replay that ends now; what was refused is in REFUSED_FILE."""
    outcome.seconds = time.monotonic() - started
    REFUSED_FILE.unlink(missing_ok=True)
    if outcome.refused:
        REFUSED_FILE.parent.mkdir(parents=True, exist_ok=True)
        REFUSED_FILE.write_text("".join(json.dumps(refusal) + "\n" for refusal in outcome.refused))
    return outcome


def _key_of(event: Body) -> tuple[str, str]:
    return event["user_id"], event["idempotency_key"]


def post_events(stack: Stack, events: Sequence[Body], batch: int = POST_EVENTS_MAX) -> ReplayResult:
    """Post events over HTTP, as an admin (who may backfill), batches in parallel."""
    api, outcome = Api(stack), ReplayResult()
    advance = progress_bar(len(events), "HTTP   ")

    def post_chunk(chunk: list[Body]) -> tuple[list[Body], int, Any]:
        status, answer = api.call("POST", "/v1/events", {"events": chunk})
        advance(len(chunk))
        return chunk, status, answer

    with ThreadPoolExecutor(POSTERS) as posters:
        for chunk, status, answer in posters.map(post_chunk, chunks(events, batch)):
            # If a whole request is refused, the results are the error's details. If it fails, there are none.
            results = answer.get("results") or answer.get("error", {}).get("details")
            if not isinstance(results, list) or len(results) != len(chunk):
                results = [{"status": f"http {status}", "error": answer.get("error")}] * len(chunk)
            for body, result in zip(chunk, results, strict=True):
                outcome.counts[result["status"]] += 1
                if result["status"] not in ("accepted", "duplicate"):
                    outcome.refused.append({"event": body, "result": result})
    return outcome


def put_on_stream(stack: Stack, events: Sequence[Body]) -> ReplayResult:
    """Put events on the Kinesis stream. Every other batch is KPL-aggregated, the others are plain.

    Raises RuntimeError if the stream goes on to refuse any.
    """
    kinesis, stream = stack.client("kinesis"), stack.output("EventsStreamName", "Kinesis door")
    outcome, advance = ReplayResult(), progress_bar(len(events), "Kinesis")

    def put(records: list[dict[str, Any]]) -> list[str]:
        results = kinesis.put_records(StreamName=stream, Records=records)["Records"]
        return [result.get("ErrorCode", "") for result in results]

    for number, chunk in enumerate(chunks(events, KINESIS_EVENTS_MAX)):
        _send_all(aggregated_records(chunk) if number % 2 else plain_records(chunk), put)
        outcome.counts["sent"] += len(chunk)
        advance(len(chunk))
    return outcome


def _send_all(records: list[T], send: Callable[[list[T]], list[str]]) -> None:
    """Send records, and those that are refused again. send: returns why each is refused; "" if it is not.

    Raises RuntimeError if any is refused each time.
    """
    left, reasons = records, [""]
    for _ in pauses(SEND_ATTEMPTS_MAX, longest_seconds=PAUSE_SECONDS_MAX):
        reasons = send(left)
        left = [record for record, reason in zip(left, reasons, strict=True) if reason]
        if not left:
            return
    raise RuntimeError(
        f"{len(left)} of {len(records)} records were refused {SEND_ATTEMPTS_MAX} times: {max(reasons)}"
    )


def plain_records(events: Iterable[Body]) -> list[dict[str, Any]]:
    """Return a Kinesis record for each event."""
    return [{"Data": json.dumps(event).encode(), "PartitionKey": event["user_id"]} for event in events]


def aggregated_records(events: Iterable[Body]) -> list[dict[str, Any]]:
    """Return one KPL record for each user: the record goes to one shard, which keeps the user's order."""
    records = []
    by_user: dict[str, list[Body]] = {}
    for event in events:
        by_user.setdefault(event["user_id"], []).append(event)
    for user, user_events in by_user.items():
        aggregator = RecordAggregator()
        for event in user_events:
            aggregator.add_user_record(user, json.dumps(event))
        key, _, data = aggregator.clear_and_get().get_contents()
        records.append({"Data": data, "PartitionKey": key})
    return records


def _replay_orders(stack: Stack, path: Path, via: str, seed: int | None, copies: int) -> ReplayResult:
    """Send a file's purchases as webhooks of orders, and wait for their effects. seed: see shuffled."""
    webhooks = [order_webhook(purchase) for purchase in purchases(path)] * copies
    if seed is not None:
        webhooks = shuffled(webhooks, seed)
    started = time.monotonic()
    outcome = (post_webhooks if via == "http" else queue_webhooks)(stack, webhooks)
    drain_leads(stack)
    return _ended(outcome, started)


def order_webhook(purchase: Purchase, organization: str = ORGANIZATION) -> Webhook:
    """Return a purchase as a shop's webhook: one order of one product."""
    return {
        "organization_id": organization,
        "source": "ecommerce",
        "payload": {
            "id": f"{purchase.customer}-{purchase.number}",
            "created_at": purchase.placed.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "currency": "USD",
            "total_price": str(purchase.amount),
            "customer": {"id": purchase.customer},
            "line_items": [{"product_id": "cd", "quantity": purchase.quantity}],
        },
    }


def post_webhooks(stack: Stack, webhooks: Iterable[Webhook]) -> ReplayResult:
    """Post webhooks over HTTP, one in each request."""
    api, outcome, webhooks = Api(stack), ReplayResult(), list(webhooks)
    advance = progress_bar(len(webhooks), "HTTP   ")

    def post_one(webhook: Webhook) -> tuple[Webhook, int, Any]:
        status, answer = api.call("POST", "/v1/leads/events", webhook)
        advance(1)
        return webhook, status, answer

    with ThreadPoolExecutor(POSTERS) as posters:
        for webhook, status, answer in posters.map(post_one, webhooks):
            outcome.counts["accepted" if status == 202 else f"http {status}"] += 1
            if status != 202:
                outcome.refused.append({"event": webhook, "result": answer})
    return outcome


def queue_webhooks(stack: Stack, webhooks: Iterable[Webhook]) -> ReplayResult:
    """Put webhooks on the lead-ingestion queue directly, ten in each call.

    Raises RuntimeError if the queue goes on to refuse any.
    """
    sqs, url, outcome = stack.client("sqs"), stack.output("LeadIngestionUrl", "leads"), ReplayResult()

    def put(entries: list[dict[str, str]]) -> list[str]:
        answer = sqs.send_message_batch(QueueUrl=url, Entries=entries)
        codes = {failure["Id"]: failure["Code"] for failure in answer.get("Failed", ())}
        return [codes.get(entry["Id"], "") for entry in entries]

    for chunk in chunks(webhooks, SQS_MESSAGES_MAX):
        messages = [json.dumps(webhook) for webhook in chunk]
        _send_all([{"Id": str(index), "MessageBody": body} for index, body in enumerate(messages)], put)
        outcome.counts["sent"] += len(chunk)
    return outcome


def shuffled(events: Sequence[Body], seed: int) -> list[Body]:
    """Return the events in random order; the same seed gives the same order."""
    mixed = list(events)
    random.Random(seed).shuffle(mixed)
    return mixed
