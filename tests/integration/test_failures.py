"""What is kept for an operator, on moto's SQS and S3."""

import json
from datetime import UTC, datetime
from typing import Any

import boto3

from adapters.engagement.event_store import Payloads
from adapters.platform.failures import FailureQueue
from tests.integration.test_boards import event

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_record_is_kept_with_its_reason(dynamodb: Any) -> None:
    sqs = boto3.client("sqs")
    url = sqs.create_queue(QueueName="failures")["QueueUrl"]
    FailureQueue(lambda: sqs, url).keep("engagement", [({"a": 1}, "because"), ({"b": 2}, "so")], NOW)
    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    bodies = sorted((json.loads(each["Body"]) for each in found), key=lambda each: each["reason"])
    assert [(each["consumer"], each["record"], each["reason"]) for each in bodies] == [
        ("engagement", {"a": 1}, "because"),
        ("engagement", {"b": 2}, "so"),
    ]


def test_large_properties_move_to_the_bucket_and_small_ones_stay(dynamodb: Any) -> None:
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="payloads")
    payloads = Payloads(lambda: s3, "payloads")
    small = event("u", properties='{"x":1}')
    assert payloads.offload(small) is small
    moved = payloads.offload(event("u", properties=json.dumps({"x": "y" * 1000})))
    assert moved.properties is None and moved.properties_ref
    key = moved.properties_ref.removeprefix("s3://payloads/")
    assert json.loads(s3.get_object(Bucket="payloads", Key=key)["Body"].read()) == {"x": "y" * 1000}
