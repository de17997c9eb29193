"""Reads streams: their shards, and their records in the form in which functions get them."""

import base64
import json
from datetime import datetime
from functools import cache
from http import HTTPStatus
from typing import Any

from local.cloud.streams.delivery import EventSourceMapping, Record
from local.stack import Stack, fresh_client

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
