"""Shards of streams: the records that are in them, as functions get them.

A source is the ARN of a Kinesis stream or of a table's stream.
"""

import base64
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from http import HTTPStatus
from typing import Any

from local.cloud.streams import Record, is_kinesis, sequence_of
from local.stack import Stack, fresh_client

READ_MAX = 1000
PAGES_MAX = 8  # of a thousand records at most; who is further behind reads for itself
Found = tuple[list[Record], str | None]


def shards_of(stack: Stack, source: str) -> list[str]:
    """Return the ids of a stream's shards."""
    if is_kinesis(source):
        return [each["ShardId"] for each in stack.client("kinesis").list_shards(StreamARN=source)["Shards"]]
    answer = stack.client("dynamodbstreams").describe_stream(StreamArn=source)
    return [each["ShardId"] for each in answer["StreamDescription"]["Shards"]]


def iterator_of(stack: Stack, source: str, shard: str, after: str) -> str:
    """Return a shard iterator: after this sequence number, or from the shard's beginning if it is ""."""
    if not after:
        return _iterator(stack, source, shard, "TRIM_HORIZON")
    return _iterator(stack, source, shard, "AFTER_SEQUENCE_NUMBER", after)


def iterator_at(stack: Stack, source: str, shard: str, number: str) -> str:
    """Return a shard iterator from a sequence number on, its record included."""
    return _iterator(stack, source, shard, "AT_SEQUENCE_NUMBER", number)


def iterator_since(stack: Stack, source: str, shard: str, since: datetime) -> str:
    """Return a shard iterator of Kinesis from an instant on; of a table's stream from the shard's beginning.

    A table's stream knows no instants.
    """
    if not is_kinesis(source):
        return iterator_of(stack, source, shard, "")
    return _iterator(stack, source, shard, "AT_TIMESTAMP", Timestamp=since)


def _iterator(stack: Stack, source: str, shard: str, kind: str, number: str = "", **more: Any) -> str:
    service, stream, sequence = (
        ("kinesis", "StreamARN", "StartingSequenceNumber")
        if is_kinesis(source)
        else ("dynamodbstreams", "StreamArn", "SequenceNumber")
    )
    place = {sequence: number} if number else more
    asked = {stream: source, "ShardId": shard, "ShardIteratorType": kind, **place}
    return str(stack.client(service).get_shard_iterator(**asked)["ShardIterator"])


def read_records(stack: Stack, source: str, iterator: str) -> Found:
    """Return records as functions get them, and the next iterator; that is None at the shard's end."""
    table = not is_kinesis(source)
    client = _unparsing(stack.endpoint_url, stack.region) if table else stack.client("kinesis")
    wrap = table_record if table else kinesis_record
    answer = client.get_records(ShardIterator=iterator, Limit=READ_MAX)
    return [wrap(each, source) for each in answer["Records"]], answer.get("NextShardIterator")


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


@dataclass(frozen=True, slots=True)
class ShardPage:
    """What was found behind a place of a shard."""

    records: list[Record]
    polled_at: float  # when that was asked (epoch seconds)


@dataclass(slots=True)
class ShardReader:
    """Reads a shard for all of its consumers: what one has read is handed to the others.

    A place in the shard is the number of the last record before it; "" is the shard's beginning.
    """

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
