"""Delivers streams to functions as Lambda's event source mappings do, over public APIs only.

The emulator's own mappings ignore partial failures, bisecting, retry limits and failure destinations,
so the template switches them off on a laptop and this process reads their settings and does the work.
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from local.cloud.event_filters import matches
from local.paths import LOCAL
from local.stack import Stack, load

# How often an idle shard is asked, as Lambda does. (The emulator also keeps every Kinesis iterator
# for five minutes and walks over all of them at each call.)
IDLE_KINESIS_SECONDS = 1.0
IDLE_TABLE_SECONDS = 0.25
DISCOVER_SECONDS = 5.0
RETRY_SECONDS_MAX = 5.0
READ_MAX = 1000
CHECKPOINTS = LOCAL / "checkpoints.json"
HEARTBEAT = LOCAL / "poller.json"

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventSourceMapping:
    """An event source mapping's settings, with Lambda's defaults."""

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
        """Whether the source is a Kinesis stream; else it is a table's."""
        return ":kinesis:" in self.source


def mapping_of(described: dict[str, Any]) -> EventSourceMapping:
    """Read what ListEventSourceMappings says of one mapping."""
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
    """What an invocation came back with. failed: None where the function itself failed."""

    failed: Sequence[str] | None
    error: str = ""


def reply_of(payload: Any, error: str, batch: Sequence[Record], *, partial: bool) -> InvocationReply:
    """Read a function's answer as Lambda does: a malformed report of failures fails the whole batch."""
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
    """Deliver a batch in order until each record is done or discarded.

    - A partial failure checkpoints before the lowest failed record; the rest comes again.
    - A function error splits the batch in two if the mapping bisects (a split is no retry).
    - Retries exhausted, or records too old: the rest goes to the failure destination.
    """
    waiting: list[tuple[Sequence[Record], int]] = [(batch, 0)]
    while waiting:
        records, retries = waiting.pop(0)
        if mapping.age_seconds_max >= 0:
            fresh = [r for r in records if now() - arrival_of(r) <= mapping.age_seconds_max]
            if len(fresh) < len(records):
                old = [r for r in records if r not in fresh]
                discard(old, "RecordAgeExceeded", retries)
                records = fresh
        if not records:
            continue
        reply = invoke(records)
        if reply.failed is not None:
            if not reply.failed:
                continue
            order = [sequence_of(record) for record in records]
            rest = records[min(order.index(number) for number in reply.failed) :]
            progressed = len(rest) < len(records)
        elif mapping.bisect and len(records) > 1:
            half = len(records) // 2
            waiting[:0] = [(records[:half], retries), (records[half:], retries)]
            continue
        else:
            rest, progressed = records, False
        # As on AWS, what remains after a checkpoint is the same batch: its retries go on counting.
        if 0 <= mapping.retries_max <= retries:
            discard(rest, "RetryAttemptsExhausted", retries + 1)
            continue
        if not progressed or retries:
            pause(min(RETRY_SECONDS_MAX, 0.1 * 2**retries))
        waiting.insert(0, (rest, retries + 1))


@dataclass(slots=True)
class Poller:
    """One process that serves every mapping which the template left disabled."""

    stack: Stack
    checkpoints: dict[str, str] = field(default_factory=dict)
    caught_up: dict[str, dict[str, float]] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    shards: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Discover mappings and shards for ever; each shard is served by a thread of its own."""
        if CHECKPOINTS.exists():
            self.checkpoints = json.loads(CHECKPOINTS.read_text())
        looked = 0.0
        while True:
            if time.monotonic() - looked > DISCOVER_SECONDS:
                self._discover()
                looked = time.monotonic()
            self._write_state()
            time.sleep(0.2)

    def _discover(self) -> None:
        found = self.stack.client("lambda").list_event_source_mappings()["EventSourceMappings"]
        for described in found:
            source = described["EventSourceArn"]
            if described["State"] != "Disabled" or not (":kinesis:" in source or ":dynamodb:" in source):
                continue
            mapping = mapping_of(described)
            for shard in self._shards_of(mapping):
                key = f"{mapping.function} {mapping.source} {shard}"
                if key not in self.shards:
                    self.shards.add(key)
                    self.caught_up.setdefault(self._name(mapping), {})[key] = 0.0
                    threading.Thread(target=self._serve, args=(mapping, shard, key), daemon=True).start()

    @staticmethod
    def _name(mapping: EventSourceMapping) -> str:
        return mapping.function.rsplit(":", 1)[-1]

    def _shards_of(self, mapping: EventSourceMapping) -> list[str]:
        if mapping.is_kinesis:
            answer = self.stack.client("kinesis").list_shards(StreamARN=mapping.source)
            return [shard["ShardId"] for shard in answer["Shards"]]
        answer = self.stack.client("dynamodbstreams").describe_stream(StreamArn=mapping.source)
        return [shard["ShardId"] for shard in answer["StreamDescription"]["Shards"]]

    def _serve(self, mapping: EventSourceMapping, shard: str, key: str) -> None:
        while True:
            try:
                for batch in self._batches(mapping, shard, key):
                    self._count(mapping, "records", len(batch))
                    deliver(
                        batch,
                        mapping,
                        lambda records: self._invoke(mapping, records),
                        lambda records, why, tries: self._discard(mapping, shard, records, why, tries),
                    )
            except Exception as error:
                print(f"{key}: {error!r}", flush=True)
                time.sleep(1)

    def _batches(self, mapping: EventSourceMapping, shard: str, key: str) -> Iterator[list[Record]]:
        """Yield filtered batches; what was yielded is checkpointed when the next is asked for."""
        iterator: str | None = self._iterator(mapping, shard, self.checkpoints.get(key))
        waiting: list[Record] = []
        since = last = ""
        started = 0.0
        while iterator:
            polled_at = time.time()
            records, iterator = self._read(mapping, iterator)
            last = sequence_of(records[-1]) if records else last
            wanted = [record for record in records if self._wanted(mapping, record)]
            if wanted and not waiting:
                started = time.monotonic()
            waiting += wanted
            while len(waiting) >= mapping.batch_size:
                batch, waiting = waiting[: mapping.batch_size], waiting[mapping.batch_size :]
                yield batch
                self._checkpoint(key, sequence_of(batch[-1]))
            if waiting and time.monotonic() - started < mapping.window_seconds:
                time.sleep(IDLE_TABLE_SECONDS)  # Within the batching window more may come.
                continue
            if waiting:
                batch, waiting = waiting, []
                yield batch
            if last and last != since:
                self._checkpoint(key, last)
                since = last
            if not records:
                self.caught_up[self._name(mapping)][key] = polled_at
                time.sleep(IDLE_KINESIS_SECONDS if mapping.is_kinesis else IDLE_TABLE_SECONDS)

    def _iterator(self, mapping: EventSourceMapping, shard: str, after: str | None) -> str:
        position = {"ShardIteratorType": "TRIM_HORIZON"}
        if after:
            number = "StartingSequenceNumber" if mapping.is_kinesis else "SequenceNumber"
            position = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", number: after}
        if mapping.is_kinesis:
            client, stream = self.stack.client("kinesis"), {"StreamARN": mapping.source}
        else:
            client, stream = self.stack.client("dynamodbstreams"), {"StreamArn": mapping.source}
        return str(client.get_shard_iterator(**stream, ShardId=shard, **position)["ShardIterator"])

    def _read(self, mapping: EventSourceMapping, iterator: str) -> tuple[list[Record], str | None]:
        if not mapping.is_kinesis:
            client = self.stack.client("dynamodbstreams")
            answer = client.get_records(ShardIterator=iterator, Limit=READ_MAX)
            records = [table_record(record, mapping.source) for record in answer["Records"]]
            return records, answer.get("NextShardIterator")
        answer = self.stack.client("kinesis").get_records(ShardIterator=iterator, Limit=READ_MAX)
        records = [kinesis_record(record, mapping.source) for record in answer["Records"]]
        return records, answer.get("NextShardIterator")

    def _wanted(self, mapping: EventSourceMapping, record: Record) -> bool:
        return not mapping.patterns or any(matches(json.loads(each), record) for each in mapping.patterns)

    def _invoke(self, mapping: EventSourceMapping, records: Sequence[Record]) -> InvocationReply:
        try:
            answer = self.stack.client("lambda", attempts=1).invoke(
                FunctionName=mapping.function, Payload=json.dumps({"Records": list(records)}).encode()
            )
            text = answer["Payload"].read().decode()
            payload = json.loads(text or "null")
            error = f"{answer['FunctionError']}: {text[:300]}" if answer.get("FunctionError") else ""
        except Exception as raised:
            payload, error = None, repr(raised)
        if error:
            self._count(mapping, "errors", 1)
            print(f"{self._name(mapping)}: {len(records)} records: {error}", flush=True)
        return reply_of(payload, error, records, partial=mapping.partial)

    def _discard(
        self, mapping: EventSourceMapping, shard: str, records: Sequence[Record], why: str, tries: int
    ) -> None:
        """Send to the failure destination what Lambda sends: where the records are, not the records."""
        self._count(mapping, "discarded", len(records))
        if not mapping.destination:
            return
        kind = "KinesisBatchInfo" if mapping.is_kinesis else "DDBStreamBatchInfo"
        message = {
            "version": "1.0",
            "timestamp": datetime.now(UTC).isoformat(),
            "requestContext": {
                "functionArn": mapping.function,
                "condition": why,
                "approximateInvokeCount": tries,
            },
            kind: {
                "shardId": shard,
                "startSequenceNumber": sequence_of(records[0]),
                "endSequenceNumber": sequence_of(records[-1]),
                "batchSize": len(records),
                "streamArn": mapping.source,
            },
        }
        sqs = self.stack.client("sqs")
        url = sqs.get_queue_url(QueueName=mapping.destination.rsplit(":", 1)[-1])["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody=json.dumps(message))

    def _checkpoint(self, key: str, number: str) -> None:
        with self.lock:
            self.checkpoints[key] = number

    def _count(self, mapping: EventSourceMapping, what: str, number: int) -> None:
        with self.lock:
            counts = self.counts.setdefault(self._name(mapping), {})
            counts[what] = counts.get(what, 0) + number

    def _write_state(self) -> None:
        with self.lock:
            state = {
                name: {**self.counts.get(name, {}), "caught_up_at": min(shards.values(), default=0.0)}
                for name, shards in self.caught_up.items()
            }
            texts = {HEARTBEAT: json.dumps(state), CHECKPOINTS: json.dumps(self.checkpoints)}
        for path, text in texts.items():
            fresh = path.with_suffix(".new")
            fresh.write_text(text)
            fresh.replace(path)


def _seconds(moment: Any) -> float:
    return float(moment.timestamp()) if hasattr(moment, "timestamp") else float(moment or 0)


def table_record(record: Record, source: str) -> Record:
    """Return a table stream's record as a function gets it."""
    change = dict(record["dynamodb"])
    change["ApproximateCreationDateTime"] = _seconds(change.get("ApproximateCreationDateTime"))
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


if __name__ == "__main__":
    Poller(load()).run()
