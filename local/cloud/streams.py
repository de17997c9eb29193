"""Reads shards, and delivers their batches as Lambda does: in order, until each record is done or discarded.

- If the function reports failed records, a checkpoint is set before the first of them, and the rest of the
  batch is delivered again.
- If the function itself fails, the batch is split in two where the mapping bisects. A split is no retry.
- If the retries are used up, or records are too old, the rest goes to the failure destination.

A mapping's filter patterns say which records a consumer wants. Of Lambda's patterns this module knows those
that the template uses: exact values, exists and prefix.
"""

import base64
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from typing import Any

from local.stack import Stack, fresh_client

RETRY_SECONDS_MAX = 5.0

Record = dict[str, Any]
READ_MAX = 1000
# The records behind an iterator, and the next iterator; None at the shard's end.
RecordsAndNext = tuple[list[Record], str | None]


def shards_of(stack: Stack, source: str) -> list[str]:
    """Return the ids of a stream's shards."""
    if is_kinesis(source):
        shards = stack.client("kinesis").list_shards(StreamARN=source)["Shards"]
    else:
        answer = stack.client("dynamodbstreams").describe_stream(StreamArn=source)
        shards = answer["StreamDescription"]["Shards"]
    return [shard["ShardId"] for shard in shards]


def iterator_of(stack: Stack, source: str, shard: str, after: str) -> str:
    """Return a shard iterator: after this sequence number, or from the shard's beginning if it is ""."""
    if not after:
        return _iterator(stack, source, shard, "TRIM_HORIZON")
    return _iterator(stack, source, shard, "AFTER_SEQUENCE_NUMBER", number=after)


def iterator_at(stack: Stack, source: str, shard: str, number: str) -> str:
    """Return a shard iterator from a sequence number on, its record included."""
    return _iterator(stack, source, shard, "AT_SEQUENCE_NUMBER", number=number)


def _iterator(stack: Stack, source: str, shard: str, kind: str, *, number: str = "") -> str:
    """Return a shard iterator. kind: of where it begins; some begin at a sequence number."""
    if is_kinesis(source):
        service, stream, sequence = "kinesis", "StreamARN", "StartingSequenceNumber"
    else:
        service, stream, sequence = "dynamodbstreams", "StreamArn", "SequenceNumber"
    request = {stream: source, "ShardId": shard, "ShardIteratorType": kind}
    if number:
        request[sequence] = number
    return str(stack.client(service).get_shard_iterator(**request)["ShardIterator"])


def read_records(stack: Stack, source: str, iterator: str) -> RecordsAndNext:
    """Return the records behind an iterator, READ_MAX at most, and the next iterator."""
    if is_kinesis(source):
        client, as_event = stack.client("kinesis"), kinesis_record
    else:
        client, as_event = _unparsing(stack.endpoint_url, stack.region), table_record
    answer = client.get_records(ShardIterator=iterator, Limit=READ_MAX)
    return [as_event(record, source) for record in answer["Records"]], answer.get("NextShardIterator")


@cache
def _unparsing(endpoint_url: str, region: str) -> Any:
    """Return a client that hands on records as they came, in JSON.

    Lambda hands the same JSON to functions. A read would take five times as long if botocore read the type of
    each value.
    """
    client = fresh_client(endpoint_url, region, "dynamodbstreams")
    client.meta.events.register("before-parse.dynamodb-streams.GetRecords", _as_it_came)
    return client


def _as_it_came(response_dict: Record, customized_response_dict: Record, **_: Any) -> None:
    """Put the answer's JSON into the parsed answer, and leave nothing for botocore to parse."""
    if response_dict["status_code"] == HTTPStatus.OK:
        customized_response_dict |= json.loads(response_dict["body"])
        response_dict["body"] = b"{}"


def table_record(record: Record, source: str) -> Record:
    """Return a table stream's record as a function gets it."""
    change = dict(record["dynamodb"])
    change["ApproximateCreationDateTime"] = _seconds(change.get("ApproximateCreationDateTime"))
    for part in ("Keys", "OldImage", "NewImage"):
        if part in change:
            change[part] = {name: _json_value(value) for name, value in change[part].items()}
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


def _seconds(moment: Any) -> float:
    """Return a datetime, or a number of seconds, as epoch seconds; 0 for None."""
    return float(moment.timestamp()) if hasattr(moment, "timestamp") else float(moment or 0)


def _json_value(value: Record) -> Record:
    """Return a value of DynamoDB, such as {"S": "abc"}, as JSON can hold it: bytes in base64."""
    ((kind, inner),) = value.items()
    if isinstance(inner, bytes):
        return {kind: base64.b64encode(inner).decode()}
    if kind == "M":
        return {kind: {name: _json_value(each) for name, each in inner.items()}}
    return {kind: [_json_value(each) for each in inner]} if kind == "L" else value


@dataclass(frozen=True, slots=True)
class EventSourceMapping:
    """The settings of an event source mapping, with Lambda's defaults. -1: no limit."""

    function: str  # its ARN
    source: str  # the stream's ARN
    batch_size: int = 100
    window_seconds: float = 0.0  # how long records are gathered for a batch
    bisect: bool = False  # whether a batch is split if the function fails
    retries_max: int = -1
    age_seconds_max: int = -1
    partial: bool = False  # whether the function reports failed records one by one
    destination: str = ""  # the ARN of the failure queue; "": there is none
    patterns: tuple[str, ...] = ()  # of its filter, as JSON; without any the function gets all records

    @property
    def is_kinesis(self) -> bool:
        """Whether the source is a Kinesis stream. Otherwise it is a table's stream."""
        return is_kinesis(self.source)


def is_kinesis(source: str) -> bool:
    """Whether a source is a Kinesis stream."""
    return ":kinesis:" in source


def function_name(arn: str) -> str:
    """Return the name in a function's ARN, which may end in a version or an alias."""
    return arn.split(":")[6]


def mapping_of(description: dict[str, Any]) -> EventSourceMapping:
    """Read one mapping from the answer of ListEventSourceMappings."""
    destination = (description.get("DestinationConfig") or {}).get("OnFailure", {}).get("Destination", "")
    filters = (description.get("FilterCriteria") or {}).get("Filters", [])
    return EventSourceMapping(
        function=description["FunctionArn"],
        source=description["EventSourceArn"],
        batch_size=int(description.get("BatchSize") or 100),
        window_seconds=float(description.get("MaximumBatchingWindowInSeconds") or 0),
        bisect=str(description.get("BisectBatchOnFunctionError", False)).lower() == "true",
        retries_max=int(description.get("MaximumRetryAttempts", -1)),
        age_seconds_max=int(description.get("MaximumRecordAgeInSeconds", -1)),
        partial="ReportBatchItemFailures" in (description.get("FunctionResponseTypes") or []),
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
        failed = [failure["itemIdentifier"] for failure in payload.get("batchItemFailures") or []]
    except (AttributeError, KeyError, TypeError):
        return InvocationReply(None, "malformed batchItemFailures")
    numbers = {sequence_of(record) for record in batch}
    if any(not isinstance(number, str) or number not in numbers for number in failed):
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
    """Deliver a batch until each of its records is done or discarded.

    discard: takes records, the reason, and how often they were tried. pause: takes seconds. now: returns
    epoch seconds.
    """
    waiting: list[tuple[Sequence[Record], int]] = [(batch, 0)]  # parts of the batch, each with its retries
    while waiting:
        part, retries = waiting.pop(0)
        records, old_records = _split_by_age(part, mapping, now)
        if old_records:
            discard(old_records, "RecordAgeExceeded", retries)
        if not records:
            continue
        reply = invoke(records)
        if reply.failed is None and mapping.bisect and len(records) > 1:
            half = len(records) // 2
            waiting[:0] = [(records[:half], retries), (records[half:], retries)]
            continue
        rest = _to_deliver_again(records, reply)
        # As on AWS, the rest after a checkpoint is still the same batch, and its retries go on counting.
        if rest and 0 <= mapping.retries_max <= retries:
            discard(rest, "RetryAttemptsExhausted", retries + 1)
        elif rest:
            if len(rest) == len(records) or retries:
                pause(min(RETRY_SECONDS_MAX, 0.1 * 2 ** min(retries, 6)))  # 2**1024 is no float
            waiting.insert(0, (rest, retries + 1))


def _split_by_age(
    records: Sequence[Record], mapping: EventSourceMapping, now: Callable[[], float]
) -> tuple[Sequence[Record], Sequence[Record]]:
    """Return the records that are young enough for the mapping, and those that are too old."""
    if mapping.age_seconds_max < 0:
        return records, ()
    oldest_arrival = now() - mapping.age_seconds_max
    return (
        [record for record in records if arrival_of(record) >= oldest_arrival],
        [record for record in records if arrival_of(record) < oldest_arrival],
    )


def _to_deliver_again(records: Sequence[Record], reply: InvocationReply) -> Sequence[Record]:
    """Return all records if the function failed, else those from the first failed one on."""
    if reply.failed is None:
        return records
    if not reply.failed:
        return ()
    order = [sequence_of(record) for record in records]
    return records[min(order.index(number) for number in reply.failed) :]


def discarded_message(
    mapping: EventSourceMapping, shard: str, records: Sequence[Record], why: str, tries: int
) -> dict[str, Any]:
    """Return what Lambda sends to a failure destination: where the records are, but not the records."""
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


def is_wanted(record: dict[str, Any], patterns: Sequence[dict[str, Any]]) -> bool:
    """Whether a consumer with these patterns gets a record: without patterns it gets all."""
    return not patterns or any(matches(pattern, record) for pattern in patterns)


def matches(pattern: dict[str, Any], record: Any) -> bool:
    """Whether a record fits a pattern: each field of the pattern must match one of its alternatives."""
    return all(_fits(wanted, record, name) for name, wanted in pattern.items())


def _fits(wanted: Any, record: Any, name: str) -> bool:
    """Whether a field of a record fits the part of a pattern that is about it."""
    is_there = isinstance(record, dict) and name in record
    value = record[name] if is_there else None
    if isinstance(wanted, dict):
        # Within an absent object no field exists, which may be what is wanted.
        return matches(wanted, value if is_there else {})
    return any(_fits_alternative(alternative, value, is_there=is_there) for alternative in wanted)


def _fits_alternative(alternative: Any, value: Any, *, is_there: bool) -> bool:
    if not isinstance(alternative, dict):
        return is_there and bool(value == alternative)
    if "exists" in alternative:
        return bool(alternative["exists"]) is is_there
    if "prefix" in alternative:
        return isinstance(value, str) and value.startswith(alternative["prefix"])
    raise ValueError(f"the poller does not know the filter {alternative}")
