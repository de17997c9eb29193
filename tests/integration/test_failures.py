"""What is kept for an operator, on moto's SQS and S3."""

import json
from datetime import UTC, datetime
from typing import Any

import boto3

from adapters.platform.queues import FailureQueue

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
