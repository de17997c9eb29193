"""Rewards stream -> the queue Shipments: a message for each redeemed reward (docs/rules.md, rule 13).

The lake gets every change, for restores (rule 21): a stream has at most two readers, so none is added.

A redemption comes on the stream because its transaction has put it there, so none is lost if a process dies.
A message may be sent twice: its `redemption` is the same, and so is what the worker answers.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from adapters import clock, settings
from adapters.engagement.points.redemption_store import redemption_from
from adapters.logs import Logger
from adapters.platform.aws import Unavailable, client
from adapters.platform.batches import chunks
from adapters.platform.failures import FailureQueue
from adapters.platform.sending.firehose import DeliveryStream
from adapters.privacy.erased_records import is_erased_record
from adapters.privacy.tombstones import Erased, tombstones_of
from adapters.settings.engagement import FulfilmentSettings
from processors.kept_items import KeptItems, put_rows
from rules.engagement.ledger import entry_id
from rules.engagement.points.redemptions import Fulfilment, Redemption
from rules.lake.packed_records import RowLine

logger = Logger(service="fulfilment")
CONSUMER = "fulfilment"
SENT_AT_ONCE = 10  # SQS takes no more in a call
Record = Mapping[str, Any]


@dataclass(slots=True)
class ShippedBatch:
    """What became of records: each is sent, to come again, or poison. sent: how many."""

    sent: int = 0
    again: list[str] = field(default_factory=list)
    poison: list[tuple[Any, str]] = field(default_factory=list)


def message_of(redemption: Redemption) -> dict[str, Any]:
    """Return what a worker is told of a redemption. `redemption` and `user` are in its answer's path."""
    return {
        "redemption": entry_id(redemption.created_at),
        "user": redemption.user_id,
        "reward": redemption.reward_id,
        **({"title": redemption.title} if redemption.title else {}),
        "brand": redemption.brand,
        "price_points": redemption.price_points,
        "at": redemption.created_at,
    }


def shipped(sqs: Callable[[], Any], queue_url: str, records: Iterable[Record]) -> ShippedBatch:
    """Send a message for each record of a new redemption; other records are passed over."""
    outcome = ShippedBatch()
    wanted: list[tuple[str, str]] = []
    for record in records:
        image = record["dynamodb"].get("NewImage", {})
        if record["eventName"] != "INSERT" or "fulfilment" not in image:
            continue
        try:
            redemption = redemption_from(image)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            outcome.poison.append((record, f"{type(error).__name__}: {error}"))
            continue
        if redemption.fulfilment is Fulfilment.REQUESTED:
            wanted.append((record["dynamodb"]["SequenceNumber"], json.dumps(message_of(redemption))))
    for chunk in chunks(wanted, SENT_AT_ONCE):
        refused = _refused(sqs, queue_url, [text for _, text in chunk])
        outcome.sent += len(chunk) - len(refused)
        outcome.again += [number for place, (number, _) in enumerate(chunk) if place in refused]
    return outcome


def _refused(sqs: Callable[[], Any], queue_url: str, texts: list[str]) -> set[int]:
    """Send messages in one call; returns the places of those that SQS did not take."""
    entries = [{"Id": str(place), "MessageBody": text} for place, text in enumerate(texts)]
    try:
        answer = sqs().send_message_batch(QueueUrl=queue_url, Entries=entries)
    except Unavailable:
        logger.exception("to come again")
        return set(range(len(texts)))
    return {int(each["Id"]) for each in answer.get("Failed", [])}


def _kept(kept: KeptItems, records: Iterable[Record], erased: Erased) -> Iterator[tuple[Record, RowLine]]:
    """Yield the changes that the lake gets: none of somebody who was erased, and nothing that is poison."""
    for record in records:
        if "NewImage" in record["dynamodb"] and not is_erased_record(record, erased):
            with suppress(KeyError, TypeError, ValueError):
                yield from ((record, row) for row in kept.rows(record))


@cache
def _parts() -> tuple[FailureQueue, str, KeptItems, Erased]:
    config = settings.read(FulfilmentSettings)
    stream = DeliveryStream(client("firehose"), config.table_items_delivery_stream)
    kept = KeptItems({config.rewards_table: "Rewards"}, stream)
    failures = FailureQueue(lambda: client("sqs"), config.failure_queue_url)
    return failures, config.shipment_queue_url, kept, tombstones_of(config)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a batch of the stream. The answer lists the records that must come again."""
    failures, queue_url, kept, erased = _parts()
    outcome = shipped(lambda: client("sqs"), queue_url, event["Records"])
    outcome.again += put_rows(kept.stream, _kept(kept, event["Records"], erased))
    outcome.again = list(dict.fromkeys(outcome.again))
    outcome.again += failures.settle(event, CONSUMER, outcome.poison, clock.now())
    told = {"sent": outcome.sent, "again": len(outcome.again), "poison": len(outcome.poison)}
    logger.info("batch", extra=told)
    return failures.answer(outcome.again)
