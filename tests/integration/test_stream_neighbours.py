"""A bad event in an aggregated record stops none of its neighbours, through the real door on a real engine."""

import base64
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import aws_kinesis_agg.aggregator
import pytest

import ingest.engagement.events_stream
from adapters.platform.aws import client
from tests.support.engine import Engine
from tests.support.gateway import CONTEXT
from tests.support.kinesis_records import record

SQS_MAX = 262_144


@pytest.fixture
def door(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    client.cache_clear()
    ingest.engagement.events_stream._parts.cache_clear()
    sqs = engine.client("sqs")
    sqs.purge_queue(QueueUrl=engine.queue_url)
    yield ingest.engagement.events_stream.handler
    ingest.engagement.events_stream._parts.cache_clear()
    client.cache_clear()


def events_of(user: str, count: int) -> list[dict[str, Any]]:
    at = datetime.now(UTC).isoformat()
    return [
        {
            "user_id": user,
            "idempotency_key": f"k{n}",
            "event_type": "CONTRIBUTION",
            "occurred_at": at,
            "properties": {"text": "x" * 300},
        }
        for n in range(count)
    ]


def aggregated(events: list[Any]) -> bytes:
    packer = aws_kinesis_agg.aggregator.RecordAggregator()
    for each in events:
        packer.add_user_record("p", json.dumps(each).encode())
    data: bytes = packer.clear_and_get().get_contents()[2]
    return data


@pytest.mark.parametrize("form", ["kpl", "list"])
@pytest.mark.parametrize("is_redrive", [False, True])
def test_of_240_events_one_is_bad_239_are_stored_and_one_is_kept(
    engine: Engine, door: Any, form: str, is_redrive: bool
) -> None:
    user = f"n{time.time_ns()}"
    events = events_of(user, 240)
    events[30]["event_type"] = "NOPE"
    data = aggregated(events) if form == "kpl" else json.dumps({"events": events}).encode()
    more = {"streakline_redrive": True} if is_redrive else {}
    assert door({"Records": [record(data)], **more}, CONTEXT) == {"batchItemFailures": []}
    stored = engine.client("dynamodb").query(
        TableName="BPEvents",
        KeyConditionExpression="user_id = :user",
        ExpressionAttributeValues={":user": {"S": user}},
        Select="COUNT",
    )
    assert stored["Count"] == 239
    told = engine.client("sqs").receive_message(QueueUrl=engine.queue_url, MaxNumberOfMessages=10)["Messages"]
    (message,) = told
    assert len(message["Body"].encode()) < min(2_000, SQS_MAX)
    kept = json.loads(message["Body"])
    assert kept["record"]["event"] == events[30]
    assert "event_type" in kept["reason"]


def test_a_bad_record_of_a_megabyte_is_kept_where_a_redrive_finds_it(engine: Engine, door: Any) -> None:
    garbage = b"no json " * 120_000
    assert door({"Records": [record(garbage)]}, CONTEXT) == {"batchItemFailures": []}
    (message,) = engine.client("sqs").receive_message(QueueUrl=engine.queue_url)["Messages"]
    bucket, _, key = json.loads(message["Body"])["record"]["stored"].removeprefix("s3://").partition("/")
    whole = json.loads(engine.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())
    assert base64.b64decode(whole["data"]) == garbage
