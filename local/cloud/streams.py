"""Streams as Lambda delivers them: shards and records, the batches of a consumer, and which records it
wants.
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from typing import Any

from local.stack import Stack, fresh_client

# Delivers a batch of a stream as Lambda does: in order, until each record is done or discarded.
#
# - The function reports a failed record: a checkpoint is set before the lowest failed one, and the rest comes
#   again.
# - The function itself fails: the batch is split in two if the mapping bisects. A split does not count as a
#   retry.
# - Retries are used up, or records are too old: the rest goes to the failure destination.


RETRY_SECONDS_MAX = 5.0

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventSourceMapping:
    """The settings of an event source mapping, with Lambda's defaults. -1: no limit."""

    function: str
    source: str
    batch_size: int = 100
    window_seconds: float = 0.0
    bisect: bool = False
    retries_max: int = -1
    age_seconds_max: int = -1
    partial: bool = False
    destination: str = ""
    patterns: tuple[str, ...] = ()

    @property
    def is_kinesis(self) -> bool:
        """Whether the source is a Kinesis stream. Otherwise it is a table's stream."""
        return ":kinesis:" in self.source


def function_name(arn: str) -> str:
    """Return the name in a function's ARN, which may end in a version or an alias."""
    return arn.split(":")[6]


def mapping_of(described: dict[str, Any]) -> EventSourceMapping:
    """Read one mapping from the answer of ListEventSourceMappings."""
    destination = (described.get("DestinationConfig") or {}).get("OnFailure", {}).get("Destination", "")
    filters = (described.get("FilterCriteria") or {}).get("Filters", [])
    return EventSourceMapping(
        function=described["FunctionArn"],
        source=described["EventSourceArn"],
        batch_size=int(described.get("BatchSize") or 100),
        window_seconds=float(described.get("MaximumBatchingWindowInSeconds") or 0),
        bisect=str(described.get("BisectBatchOnFunctionError", False)).lower() == "true",
        retries_max=int(described.get("MaximumRetryAttempts", -1)),
        age_seconds_max=int(described.get("MaximumRecordAgeInSeconds", -1)),
        partial="ReportBatchItemFailures" in (described.get("FunctionResponseTypes") or []),
        destination=destination,
        patterns=tuple(each["Pattern"] for each in filters),
    )


def sequence_of(record: Record) -> str:
    """Return a record's sequence number."""
    source = record.get("dynamodb") or record.get("kinesis") or {}
    return str(source.get("SequenceNumber") or source.get("sequenceNumber"))


def arrival_of(record: Record) -> float:
    """Return when a record came into the stream (epoch seconds)."""
    source = record.get("dynamodb") or record.get("kinesis") or {}
    arrived = source.get("ApproximateCreationDateTime") or source.get("approximateArrivalTimestamp") or 0
    return float(arrived)


@dataclass(frozen=True, slots=True)
class InvocationReply:
    """The outcome of an invocation."""

    failed: Sequence[str] | None  # the failed records, or None if the function itself failed
    error: str = ""


def reply_of(payload: Any, error: str, batch: Sequence[Record], *, partial: bool) -> InvocationReply:
    """Read a function's answer as Lambda does. A malformed report of failures fails the whole batch."""
    if error:
        return InvocationReply(None, error)
    if not partial or not payload:
        return InvocationReply([])
    try:
        failed = [each["itemIdentifier"] for each in payload.get("batchItemFailures") or []]
    except (AttributeError, KeyError, TypeError):
        return InvocationReply(None, "malformed batchItemFailures")
    known = {sequence_of(record) for record in batch}
    if any(not isinstance(number, str) or number not in known for number in failed):
        return InvocationReply(None, "batchItemFailures names a record that is not in the batch")
    return InvocationReply(failed)


def deliver(  # noqa: PLR0917 (what it acts on, and what it acts with)
    batch: Sequence[Record],
    mapping: EventSourceMapping,
    invoke: Callable[[Sequence[Record]], InvocationReply],
    discard: Callable[[Sequence[Record], str, int], None],
    pause: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.time,
) -> None:
    """Deliver a batch. pause takes seconds, now returns epoch seconds, discard takes records, why, tries."""
    waiting: list[tuple[Sequence[Record], int]] = [(batch, 0)]
    while waiting:
        read, retries = waiting.pop(0)
        records = _young(read, retries, mapping, discard, now)
        if not records:
            continue
        reply = invoke(records)
        if reply.failed is None and mapping.bisect and len(records) > 1:
            half = len(records) // 2
            waiting[:0] = [(records[:half], retries), (records[half:], retries)]
            continue
        rest = _rest(records, reply)
        # As on AWS, the rest after a checkpoint is still the same batch, and its retries go on counting.
        if rest and 0 <= mapping.retries_max <= retries:
            discard(rest, "RetryAttemptsExhausted", retries + 1)
        elif rest:
            if len(rest) == len(records) or retries:
                pause(min(RETRY_SECONDS_MAX, 0.1 * 2**retries))
            waiting.insert(0, (rest, retries + 1))


def _young(
    records: Sequence[Record],
    retries: int,
    mapping: EventSourceMapping,
    discard: Callable[[Sequence[Record], str, int], None],
    now: Callable[[], float],
) -> Sequence[Record]:
    """Return the records that are not too old, and discard the others."""
    if mapping.age_seconds_max < 0:
        return records
    young = [each for each in records if now() - arrival_of(each) <= mapping.age_seconds_max]
    if len(young) < len(records):
        discard([each for each in records if each not in young], "RecordAgeExceeded", retries)
        return young
    return records


def _rest(records: Sequence[Record], reply: InvocationReply) -> Sequence[Record]:
    """Return what has to come again: all if the function failed, else all from the first failed record on."""
    if reply.failed is None:
        return records
    if not reply.failed:
        return ()
    order = [sequence_of(record) for record in records]
    return records[min(order.index(number) for number in reply.failed) :]


def discarded_message(
    mapping: EventSourceMapping, shard: str, records: Sequence[Record], why: str, tries: int
) -> dict[str, Any]:
    """Return what Lambda sends to a failure destination: the place of the records, not the records."""
    return {
        "version": "1.0",
        "timestamp": datetime.now(UTC).isoformat(),
        "requestContext": {
            "functionArn": mapping.function,
            "condition": why,
            "approximateInvokeCount": tries,
        },
        ("KinesisBatchInfo" if mapping.is_kinesis else "DDBStreamBatchInfo"): {
            "shardId": shard,
            "startSequenceNumber": sequence_of(records[0]),
            "endSequenceNumber": sequence_of(records[-1]),
            "batchSize": len(records),
            "streamArn": mapping.source,
        },
    }


READ_MAX = 1000


def _seconds(moment: Any) -> float:
    return float(moment.timestamp()) if hasattr(moment, "timestamp") else float(moment or 0)


def _as_text(value: Record) -> Record:
    """Return a value as JSON can hold it: bytes in base64."""
    ((kind, inner),) = value.items()
    if isinstance(inner, bytes):
        return {kind: base64.b64encode(inner).decode()}
    if kind == "M":
        return {kind: {name: _as_text(each) for name, each in inner.items()}}
    return {kind: [_as_text(each) for each in inner]} if kind == "L" else value


def table_record(record: Record, source: str) -> Record:
    """Return a table stream's record as a function gets it."""
    change = dict(record["dynamodb"])
    change["ApproximateCreationDateTime"] = _seconds(change.get("ApproximateCreationDateTime"))
    for part in ("Keys", "OldImage", "NewImage"):
        if part in change:
            change[part] = {name: _as_text(each) for name, each in change[part].items()}
    return {
        "eventID": record["eventID"],
        "eventName": record["eventName"],
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": source.split(":")[3],
        "dynamodb": change,
        "eventSourceARN": source,
    }


def kinesis_record(record: Record, source: str) -> Record:
    """Return a Kinesis record as a function gets it."""
    return {
        "kinesis": {
            "kinesisSchemaVersion": "1.0",
            "partitionKey": record["PartitionKey"],
            "sequenceNumber": record["SequenceNumber"],
            "data": base64.b64encode(record["Data"]).decode(),
            "approximateArrivalTimestamp": _seconds(record.get("ApproximateArrivalTimestamp")),
        },
        "eventSource": "aws:kinesis",
        "eventVersion": "1.0",
        "eventName": "aws:kinesis:record",
        "awsRegion": source.split(":")[3],
        "eventSourceARN": source,
    }


def shards_of(stack: Stack, mapping: EventSourceMapping) -> list[str]:
    """Return the ids of a stream's shards."""
    if mapping.is_kinesis:
        answer = stack.client("kinesis").list_shards(StreamARN=mapping.source)
        return [shard["ShardId"] for shard in answer["Shards"]]
    answer = stack.client("dynamodbstreams").describe_stream(StreamArn=mapping.source)
    return [shard["ShardId"] for shard in answer["StreamDescription"]["Shards"]]


def iterator_of(stack: Stack, mapping: EventSourceMapping, shard: str, after: str) -> str:
    """Return a shard iterator: after this sequence number, or from the shard's beginning if it is ""."""
    position = {"ShardIteratorType": "TRIM_HORIZON"}
    if after:
        number = "StartingSequenceNumber" if mapping.is_kinesis else "SequenceNumber"
        position = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", number: after}
    return _iterator(stack, mapping, shard, position)


def iterator_since(stack: Stack, mapping: EventSourceMapping, shard: str, since: datetime) -> str:
    """Return a shard iterator of Kinesis from an instant on; of a table's stream from the shard's beginning.

    A table's stream knows no instants.
    """
    if not mapping.is_kinesis:
        return iterator_of(stack, mapping, shard, "")
    return _iterator(stack, mapping, shard, {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": since})


def _iterator(stack: Stack, mapping: EventSourceMapping, shard: str, position: Record) -> str:
    if mapping.is_kinesis:
        client, stream = stack.client("kinesis"), {"StreamARN": mapping.source}
    else:
        client, stream = stack.client("dynamodbstreams"), {"StreamArn": mapping.source}
    return str(client.get_shard_iterator(**stream, ShardId=shard, **position)["ShardIterator"])


@cache
def _unparsing(endpoint_url: str, region: str) -> Any:
    """Return a client that hands on records as they came, in JSON.

    A function gets them so, too. Reading each value's type takes four times as long as all the rest.
    """
    client = fresh_client(endpoint_url, region, "dynamodbstreams")
    client.meta.events.register("before-parse.dynamodb-streams.GetRecords", _as_it_came)
    return client


def _as_it_came(response_dict: Record, customized_response_dict: Record, **_: Any) -> None:
    if response_dict["status_code"] == HTTPStatus.OK:
        customized_response_dict |= json.loads(response_dict["body"])
        response_dict["body"] = b"{}"


def read_records(stack: Stack, mapping: EventSourceMapping, iterator: str) -> tuple[list[Record], str | None]:
    """Return records as functions get them, and the next iterator; that is None at the shard's end."""
    if not mapping.is_kinesis:
        client = _unparsing(stack.endpoint_url, stack.region)
        answer = client.get_records(ShardIterator=iterator, Limit=READ_MAX)
        records = [table_record(record, mapping.source) for record in answer["Records"]]
        return records, answer.get("NextShardIterator")
    answer = stack.client("kinesis").get_records(ShardIterator=iterator, Limit=READ_MAX)
    records = [kinesis_record(record, mapping.source) for record in answer["Records"]]
    return records, answer.get("NextShardIterator")


# Reads a shard for all of its consumers: what one has read is handed to the others from here.


PAGES_MAX = 8  # of a thousand records at most; who is further behind reads for itself
Found = tuple[list[Record], str | None]


@dataclass(frozen=True, slots=True)
class ShardPage:
    """What was found behind a place."""

    records: list[Record]
    polled_at: float  # when that was asked (epoch seconds)


@dataclass(slots=True)
class ShardReader:
    """One shard. A place in it is the number of the last record before it; "" is the shard's beginning."""

    begin: Callable[[str], str]  # place -> iterator
    ask: Callable[[str], Found]  # iterator -> records and the next iterator, if there is one
    now: Callable[[], float] = time.time
    _pages: dict[str, ShardPage] = field(default_factory=dict)
    _iterators: dict[str, str] = field(default_factory=dict)
    _nothing: tuple[str, float] = ("", 0.0)  # the place where nothing was found last, and when
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, place: str, seen_at: float) -> ShardPage:
        """Return what is behind a place. seen_at: when the caller's last page was polled.

        If another consumer has looked since, and found nothing, the shard is not asked.
        """
        with self._lock:
            if page := self._pages.get(place):
                # Who is behind gets what was read before the caller's last page: time does not go back.
                return replace(page, polled_at=max(page.polled_at, seen_at))
            empty_at, polled_at = self._nothing[1], self.now()
            if self._nothing[0] == place and empty_at > seen_at:
                return ShardPage([], empty_at)
            iterator = self._iterators.pop(place, None) or self.begin(place)
            records, following = self.ask(iterator)
            if following:
                self._iterators[sequence_of(records[-1]) if records else place] = following
            page = ShardPage(records, polled_at)
            if records:
                self._pages[place] = page
            else:
                self._nothing = place, polled_at
            for kept in (self._pages, self._iterators):
                while len(kept) > PAGES_MAX:
                    kept.pop(next(iter(kept)))
            return page


# Lambda's event filter patterns, as far as the template uses them: exact values, exists and prefix.


def is_wanted(record: dict[str, Any], patterns: Sequence[dict[str, Any]]) -> bool:
    """Whether a consumer with these patterns gets a record: without patterns it gets all."""
    return not patterns or any(matches(each, record) for each in patterns)


def matches(pattern: dict[str, Any], record: Any) -> bool:
    """Whether a record fits a pattern: each field of the pattern must match one of its alternatives."""
    return all(_fits(wanted, record, name) for name, wanted in pattern.items())


def _fits(wanted: Any, record: Any, name: str) -> bool:
    held = isinstance(record, dict) and name in record
    if isinstance(wanted, dict):
        return matches(wanted, record[name] if held else {})  # of nothing there is no field, which may fit
    return any(_is(alternative, record[name] if held else None, held=held) for alternative in wanted)


def _is(alternative: Any, value: Any, *, held: bool) -> bool:
    if not isinstance(alternative, dict):
        return held and bool(value == alternative)
    if "exists" in alternative:
        return bool(alternative["exists"]) is held
    if "prefix" in alternative:
        return isinstance(value, str) and value.startswith(alternative["prefix"])
    raise ValueError(f"the poller does not know the filter {alternative}")
