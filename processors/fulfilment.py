"""Sends a message to the queue Shipments for each redeemed reward (docs/rules.md, rule 13).

It reads the stream of the table Rewards. Redemptions are written in a transaction, so none is lost if a
process dies. A message may be sent twice, with the same `redemption`; the worker's answer is then the same,
too.

It also sends every change of the table to the lake, for restores (rule 21). PublisherFunction cannot do that,
because a stream has at most two readers. The other reader of this stream is NotificationFunction.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.bootstrap import ClientOf, bootstrap
from adapters.engagement.rewards import redemption_from
from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.publishing import DeliveryStream
from adapters.platform.tables import chunks
from adapters.privacy.tombstones import ErasureCheck, is_erased_record, tombstones_of
from processors.batches import BatchResult, ConsumerSettings, Record, sequence_number_of, stream_consumer
from processors.publisher import TableItemRows, put_rows
from rules.book.rewards import Fulfilment, Redemption
from rules.engagement.ledger import entry_id
from rules.lake.packed_records import RowLine

logger = Logger(service="fulfilment")
SENT_AT_ONCE = 10  # SQS takes no more in a call


@dataclass(frozen=True)
class FulfilmentSettings(ConsumerSettings):
    """Settings of FulfilmentFunction."""

    shipment_queue_url: str  # for redeemed rewards
    rewards_table: str
    table_items_delivery_stream: str  # for every change
    erasures_table: str
    erasure_secret_arn: str


def message_of(redemption: Redemption) -> dict[str, Any]:
    """Return the message that a worker gets. The path of its answer has `redemption` and `user`."""
    return {
        "redemption": entry_id(redemption.created_at),
        "user": redemption.user_id,
        "reward": redemption.reward_id,
        **({"title": redemption.title} if redemption.title else {}),
        "brand": redemption.brand,
        "price_points": redemption.price_points,
        "at": redemption.created_at,
    }


def send_shipments(sqs: Callable[[], Any], queue_url: str, records: Iterable[Record]) -> BatchResult:
    """Send a message for each record of a new redemption, and skip other records."""
    outcome = BatchResult()
    for chunk in chunks(outcome.read(records, new_redemption), SENT_AT_ONCE):
        refused = _send_batch(sqs, queue_url, [json.dumps(message_of(redemption)) for _, redemption in chunk])
        outcome.counts["sent"] += len(chunk) - len(refused)
        outcome.again += [sequence_number_of(chunk[index][0]) for index in sorted(refused)]
    return outcome


def new_redemption(record: Record) -> Redemption | None:
    """Return the new redemption of a record of Rewards' stream; None if there is nothing to send."""
    image = record["dynamodb"].get("NewImage", {})
    if record["eventName"] != "INSERT" or "fulfilment" not in image:
        return None
    redemption = redemption_from(image)
    return redemption if redemption.fulfilment is Fulfilment.REQUESTED else None


def _send_batch(sqs: Callable[[], Any], queue_url: str, texts: list[str]) -> set[int]:
    """Send messages in one call; returns the indices of those that SQS did not take."""
    entries = [{"Id": str(index), "MessageBody": text} for index, text in enumerate(texts)]
    try:
        answer = sqs().send_message_batch(QueueUrl=queue_url, Entries=entries)
    except Unavailable:
        logger.exception("to come again")
        return set(range(len(texts)))
    return {int(failure["Id"]) for failure in answer.get("Failed", [])}


def _lake_rows(
    item_rows: TableItemRows, records: Iterable[Record], erased: ErasureCheck
) -> Iterator[tuple[Record, RowLine]]:
    """Yield the rows of changes for the lake, without those of erased persons.

    A change that cannot be read has no row. send_shipments has kept it as poison if it is a new redemption.
    """
    for record in records:
        if "NewImage" in record["dynamodb"] and not is_erased_record(record, erased):
            with suppress(KeyError, TypeError, ValueError):
                yield from ((record, row) for row in item_rows.rows(record))


@dataclass(frozen=True, slots=True)
class _Parts:
    shipment_queue: Callable[[], Any]  # makes the client of SQS
    shipment_queue_url: str
    item_rows: TableItemRows
    erased: ErasureCheck


@bootstrap(FulfilmentSettings)
def _parts(config: FulfilmentSettings, client: ClientOf) -> _Parts:
    stream = DeliveryStream(client("firehose"), config.table_items_delivery_stream)
    return _Parts(
        lambda: client("sqs"),
        config.shipment_queue_url,
        TableItemRows({config.rewards_table: "Rewards"}, stream),
        tombstones_of(config, client),
    )


@stream_consumer("fulfilment", logger)
def handler(records: list[Record], _now: datetime) -> BatchResult:
    """Lambda entry: a batch of Rewards' stream."""
    parts = _parts()
    outcome = send_shipments(parts.shipment_queue, parts.shipment_queue_url, records)
    outcome.again += put_rows(parts.item_rows.stream, _lake_rows(parts.item_rows, records, parts.erased))
    return outcome
