"""Delivers a batch of a stream as Lambda does: in order, until each record is done or discarded.

- The function reports a failed record: a checkpoint is set before the lowest failed one, and the rest comes
  again.
- The function itself fails: the batch is split in two if the mapping bisects. A split does not count as a
  retry.
- Retries are used up, or records are too old: the rest goes to the failure destination.

Which records a consumer wants, its event filter patterns say, as far as the template uses them: exact values,
exists and prefix.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

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
        return is_kinesis(self.source)


def is_kinesis(source: str) -> bool:
    """Whether a source is a Kinesis stream."""
    return ":kinesis:" in source


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
