"""What is kept of poison: always something that a message can hold, and from which a redrive finds all."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.platform.queues import FailureQueue, LargeRecords
from local.operate.redrive import waiting_message

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SQS_MAX = 262_144


class Aws:
    """SQS and S3, as far as poison needs them."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.objects: dict[str, bytes] = {}

    def send_message(self, QueueUrl: str, MessageBody: str) -> None:  # noqa: N803
        assert len(MessageBody.encode()) < SQS_MAX, "SQS would refuse it, for ever"
        self.messages.append(MessageBody)

    def put_object(self, Bucket: str, Key: str, Body: bytes, ContentType: str) -> None:  # noqa: N803
        self.objects[f"s3://{Bucket}/{Key}"] = Body


@pytest.fixture
def aws() -> Aws:
    return Aws()


def kept(aws: Aws, record: Any, reason: str = "why") -> Any:
    FailureQueue(lambda: aws, "url", LargeRecords(lambda: aws, "b")).keep(
        "events-stream", [(record, reason)], NOW
    )
    return waiting_message("events-stream", "h", aws.messages[-1]).body["record"]


def test_a_small_record_is_in_its_message(aws: Aws) -> None:
    assert kept(aws, {"event": {"a": 1}}) == {"event": {"a": 1}}
    assert aws.objects == {}


@pytest.mark.parametrize("text", ["x" * 900_000, "\u00e4" * 200_000, "\\" * 140_000])
def test_a_record_that_no_message_holds_is_stored_once_and_named(aws: Aws, text: str) -> None:
    record = {"data": text, "sequence_number": "1"}
    named, again = kept(aws, record), kept(aws, record)
    assert named == again
    assert {url: json.loads(data) for url, data in aws.objects.items()} == {named["stored"]: record}


def test_an_image_that_is_in_its_table_is_left_out(aws: Aws) -> None:
    image = {"NewImage": {"a": {"S": "x" * 399_000}}, "Keys": {"k": {"S": "1"}}, "SequenceNumber": "7"}
    record = {"eventSourceARN": "arn", "dynamodb": image}
    assert kept(aws, record) == {
        "eventSourceARN": "arn",
        "dynamodb": {"Keys": {"k": {"S": "1"}}, "SequenceNumber": "7"},
    }


def test_a_long_reason_is_cut(aws: Aws) -> None:
    assert kept(aws, {"a": 1}, "r" * 500_000) == {"a": 1}
