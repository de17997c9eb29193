"""What the poller hands to a function: a mapping's settings, the shape of records, and filters."""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ClientError

from local.cloud import streams
from local.cloud.streams import (
    EventSourceMapping,
    arrival_of,
    function_name,
    kinesis_record,
    mapping_of,
    matches,
    read_records,
    sequence_of,
    table_record,
)
from local.stack import Stack, fresh_client
from tests.support.deliveries import PLAIN


def test_settings_are_read_as_the_service_describes_them() -> None:
    described = {
        "FunctionArn": "f",
        "EventSourceArn": "arn:aws:kinesis:us-east-1:0:stream/s",
        "BatchSize": 10,
        "MaximumBatchingWindowInSeconds": 2,
        "BisectBatchOnFunctionError": "true",
        "MaximumRetryAttempts": 0,
        "MaximumRecordAgeInSeconds": 60,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "FilterCriteria": {"Filters": [{"Pattern": "{}"}]},
        "DestinationConfig": {"OnFailure": {"Destination": "arn:q"}},
    }
    mapping = mapping_of(described)
    assert mapping == EventSourceMapping(
        "f", "arn:aws:kinesis:us-east-1:0:stream/s", 10, 2.0, True, 0, 60, True, "arn:q", ("{}",)
    )
    assert mapping.is_kinesis


def test_a_function_is_known_by_its_name_also_where_its_alias_is_called() -> None:
    """All functions that are called by an alias once shared the name `live`, and nobody had caught up."""
    arn = "arn:aws:lambda:us-east-1:000000000000:function:streakline-EngagementFunction-1A"
    assert function_name(arn) == function_name(f"{arn}:live") == "streakline-EngagementFunction-1A"


def test_what_is_not_described_has_the_service_s_defaults() -> None:
    described = {"FunctionArn": "f", "EventSourceArn": PLAIN.source, "DestinationConfig": None}
    assert mapping_of(described) == EventSourceMapping("f", PLAIN.source)
    assert not mapping_of(described).is_kinesis


def test_a_record_of_a_table_has_the_shape_that_a_function_gets() -> None:
    raw = {
        "eventID": "1",
        "eventName": "INSERT",
        "dynamodb": {
            "SequenceNumber": "5",
            "ApproximateCreationDateTime": datetime(2026, 1, 1, tzinfo=UTC),
            "NewImage": {"user_id": {"S": "u"}},
        },
    }
    shaped = table_record(raw, PLAIN.source)
    assert (sequence_of(shaped), arrival_of(shaped)) == ("5", 1767225600.0)
    assert (shaped["awsRegion"], shaped["eventSource"]) == ("us-east-1", "aws:dynamodb")
    assert shaped["dynamodb"]["NewImage"] == {"user_id": {"S": "u"}}


def test_binary_values_of_a_table_s_record_are_text_as_lambda_has_them() -> None:
    """A carrier's `carried` is one: it could not be handed to the publisher, and was discarded."""
    image = {"carried": {"B": b"\x01\x00"}, "parts": {"M": {"x": {"L": [{"B": b"\xff"}, {"N": "1"}]}}}}
    change = {"SequenceNumber": "5", "OldImage": image, "NewImage": image, "Keys": {"k": {"B": b"k"}}}
    shaped = table_record({"eventID": "1", "eventName": "MODIFY", "dynamodb": change}, PLAIN.source)
    told = json.loads(json.dumps(shaped))["dynamodb"]
    assert told["NewImage"] == told["OldImage"]
    assert told["NewImage"]["carried"] == {"B": "AQA="}
    assert told["NewImage"]["parts"] == {"M": {"x": {"L": [{"B": "/w=="}, {"N": "1"}]}}}
    assert told["Keys"] == {"k": {"B": "aw=="}}


class _Body:
    def __init__(self, text: str) -> None:
        self._text = text.encode()

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._text


def answering(client: Any, status: int, body: Any) -> None:
    """Have a client get this answer, whatever it asks."""

    def answer(request: Any, **_: Any) -> AWSResponse:
        return AWSResponse(request.url, status, HTTPHeaders(), _Body(json.dumps(body)))

    client.meta.events.register("before-send.dynamodb-streams", answer)


def test_records_read_as_they_came_are_as_a_function_gets_them() -> None:
    change = {
        "SequenceNumber": "5",
        "ApproximateCreationDateTime": 1767225600.0,
        "NewImage": {"user_id": {"S": "u"}, "carried": {"B": "AQA="}, "n": {"L": [{"N": "1"}]}},
    }
    told = {
        "Records": [{"eventID": "1", "eventName": "INSERT", "dynamodb": change}],
        "NextShardIterator": "next",
    }
    stack = Stack("", "http://127.0.0.1:1", "us-east-1", {}, {}, "")
    parsing = fresh_client(stack.endpoint_url, stack.region, "dynamodbstreams")
    for client in (parsing, streams._unparsing(stack.endpoint_url, stack.region)):
        answering(client, 200, told)
    records, following = read_records(stack, PLAIN.source, "first")
    parsed = parsing.get_records(ShardIterator="first")["Records"]
    assert (records, following) == ([table_record(each, PLAIN.source) for each in parsed], "next")
    assert records[0]["dynamodb"] == change


def test_a_stream_s_refusal_is_told_by_its_name() -> None:
    stack = Stack("", "http://127.0.0.1:2", "us-east-1", {}, {}, "")
    client = streams._unparsing(stack.endpoint_url, stack.region)
    answering(client, 400, {"__type": "ExpiredIteratorException", "message": "too old"})
    with pytest.raises(ClientError, match="ExpiredIteratorException"):
        read_records(stack, PLAIN.source, "first")


def test_a_record_of_a_stream_has_the_shape_that_a_function_gets() -> None:
    raw = {
        "PartitionKey": "p",
        "SequenceNumber": "49",
        "Data": b"\xff{}",
        "ApproximateArrivalTimestamp": datetime(2026, 1, 1, tzinfo=UTC),
    }
    shaped = kinesis_record(raw, "arn:aws:kinesis:eu-west-1:0:stream/s")
    assert (sequence_of(shaped), arrival_of(shaped)) == ("49", 1767225600.0)
    assert base64.b64decode(shaped["kinesis"]["data"]) == b"\xff{}"
    assert shaped["awsRegion"] == "eu-west-1"


INSERT = {"eventName": "INSERT", "dynamodb": {"NewImage": {"event_type": {"S": "CHECK_IN"}}}}


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ({}, True),
        ({"eventName": ["INSERT"]}, True),
        ({"eventName": ["MODIFY", "INSERT"]}, True),
        ({"eventName": ["REMOVE"]}, False),
        ({"eventName": []}, False),
        ({"nothing": ["INSERT"]}, False),
        ({"nothing": [None]}, False),
        ({"eventName": ["INSERT"], "nothing": ["x"]}, False),
        ({"dynamodb": {"NewImage": {"event_type": {"S": ["CHECK_IN"]}}}}, True),
        ({"dynamodb": {"NewImage": {"event_type": {"S": ["OTHER"]}}}}, False),
        ({"dynamodb": {"NewImage": {"event_type": {"S": [{"prefix": "CHECK"}]}}}}, True),
        ({"dynamodb": {"NewImage": {"event_type": {"S": [{"prefix": "LESSON"}]}}}}, False),
        ({"dynamodb": {"NewImage": {"event_type": [{"exists": True}]}}}, True),
        ({"dynamodb": {"NewImage": {"ttl": [{"exists": True}]}}}, False),
        ({"dynamodb": {"NewImage": {"ttl": [{"exists": False}]}}}, True),
        ({"dynamodb": {"NewImage": {"event_type": [{"exists": False}]}}}, False),
        ({"dynamodb": {"NewImage": {"event_type": [{"prefix": "S"}]}}}, False),
        ({"eventName": {"deeper": ["x"]}}, False),
        ({"eventName": [None]}, False),
    ],
)
def test_a_filter_fits_when_every_field_has_one_of_its_alternatives(
    pattern: dict[str, Any], fits: bool
) -> None:
    assert matches(pattern, INSERT) is fits


def test_a_filter_that_the_poller_does_not_know_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="numeric"):
        matches({"eventName": [{"numeric": ["=", 1]}]}, INSERT)
