"""Reads shards of streams. Their records come in the form in which Lambda hands them to functions.

A source is the ARN of a Kinesis stream or of a table's stream.
"""

import base64
import json
from functools import cache
from http import HTTPStatus
from typing import Any

from local.cloud.streams import Record, is_kinesis
from local.stack import Stack, fresh_client

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
