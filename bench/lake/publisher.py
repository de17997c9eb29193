"""Firehose calls for each 500 changes, as the publisher's handler makes them, compared with one a change.

A user would first write `put_record` in a loop. The event source mapping hands over batches of up to 500
changes. Here 10,000 arrive; a busy stream fills every batch.
"""

import json
import os
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from adapters.platform.aws import client
from adapters.platform.items import item
from bench.figure import Figure
from local.cloud.dynamodb_engine import running
from processors import publisher

CHANGES = 10_000
BATCH = 500
CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=1024, invoked_function_arn="arn", aws_request_id="1"
)


def run() -> Iterator[Figure]:
    """Yield calls per 500 changes, and the time against one call a change."""
    publisher.logger.setLevel("CRITICAL")
    with running() as engine:
        os.environ.update(engine.environment())
        firehose = engine.client("firehose")
        calls: list[str] = []
        client("firehose").meta.events.register(
            "before-call.firehose", lambda model, **_: calls.append(model.name)
        )
        records = [_record(number) for number in range(CHANGES)]
        started = time.perf_counter()
        for first in range(0, CHANGES, BATCH):
            answer = publisher.handler({"Records": records[first : first + BATCH]}, CONTEXT)
            assert answer == {"batchItemFailures": []}
        ours = time.perf_counter() - started
        assert set(calls) == {"PutRecordBatch"}
        naive = _one_by_one(firehose, engine.environment()["EVENTS_DELIVERY_STREAM"], records)
    yield Figure(
        "Firehose calls for each 500 changes",
        len(calls) / CHANGES * 500,
        "<=",
        1.1,
        f"{len(calls)} calls for {CHANGES:,} changes",
    )
    detail = f"{1e6 * ours / CHANGES:.0f} against {1e6 * naive:.0f} us a change"
    yield Figure("  time a change, of one call a change", ours / CHANGES / naive, detail=detail)


def _one_by_one(firehose: Any, stream: str, records: list[dict[str, Any]]) -> float:
    """Return the seconds that a change takes if each is a call."""
    some = records[:500]
    started = time.perf_counter()
    for each in some:
        firehose.put_record(
            DeliveryStreamName=stream, Record={"Data": json.dumps(each["dynamodb"]["NewImage"]).encode()}
        )
    return (time.perf_counter() - started) / len(some)


def _record(number: int) -> dict[str, Any]:
    image = {
        "user_id": f"u{number % 997}",
        "event_id": f"2026-03-10T05:{number // 60 % 60:02}:{number % 60:02}.000000Z#{number:036}",
        "client_key": f"key-{number}",
        "event_type": "CHECK_IN",
        "occurred_at": "2026-03-10T05:16:00Z",
        "activity_date": "2026-03-10",
        "zone": "UTC",
        "points_awarded": 5,
        "source": "api",
        "created_at": "2026-03-10T05:16:23.000000Z",
        "ttl": 1780895783,
    }
    return {
        "eventName": "INSERT",
        "eventSourceARN": "arn:aws:dynamodb:eu-west-1:1:table/BPEvents/stream/x",
        "dynamodb": {
            "ApproximateCreationDateTime": 1773119783,
            "NewImage": item(image),
            "SequenceNumber": str(number),
        },
    }
