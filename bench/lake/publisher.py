"""Firehose calls for each 500 changes, as the publisher's handler makes them, compared with one a change.

A user would first write `put_record` in a loop. The event source mapping hands over batches of up to 500
changes. Here 2,000 arrive; a busy stream fills every batch. The time is told twice: with the network answered
in this process, as CPU, which is the publisher's own work; and with the emulator, by the clock, which is
mostly the emulator's.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from botocore.awsrequest import AWSResponse

from adapters.platform.aws import client
from adapters.platform.items import encode_item
from bench.engagement.stub import answered
from bench.figure import Figure, ratio, shown
from processors import publisher
from tests.support.dynamodb_engine import running

CHANGES, SINGLY = 2_000, 200
BATCH = 500
REPEATS = int(os.environ.get("REPEATS", "5"))
CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=1024, invoked_function_arn="arn", aws_request_id="1"
)


class Network:
    """Counts a client's calls, and answers them in this process as long as it is told to."""

    def __init__(self) -> None:
        self.is_stubbed = False
        self.calls: list[str] = []

    def attach(self, firehose: Any) -> None:
        """Answer later requests of this client."""
        firehose.meta.events.register("before-send.firehose", self._answer)

    def _answer(self, request: Any, **_: Any) -> AWSResponse | None:
        target: Any = request.headers["X-Amz-Target"]
        name = (target.decode() if isinstance(target, bytes) else target).partition(".")[2]
        self.calls.append(name)
        if not self.is_stubbed:
            return None
        answer: dict[str, Any] = {"RecordId": "1"}
        if name == "PutRecordBatch":
            sent = json.loads(request.body)["Records"]
            answer = {"FailedPutCount": 0, "RequestResponses": [answer] * len(sent)}
        return answered(request.url, json.dumps(answer).encode())


def run() -> Iterator[Figure]:
    """Yield calls per 500 changes, and the time against one call a change, without the network and with."""
    with running() as engine:
        publisher.logger.setLevel("CRITICAL")
        os.environ.update(engine.environment())
        network, naive = Network(), engine.client("firehose")
        network.attach(client("firehose"))
        network.attach(naive)
        stream = engine.environment()["EVENTS_DELIVERY_STREAM"]
        records = [_record(number) for number in range(CHANGES)]
        _in_batches(records)
        calls = len(network.calls)
        assert set(network.calls) == {"PutRecordBatch"}
        yield Figure(
            "Firehose calls for each 500 changes",
            calls / CHANGES * BATCH,
            "<=",
            1.1,
            f"{calls} calls for {CHANGES:,} changes",
        )
        for network.is_stubbed in (True, False):
            rounds = []
            for _ in range(REPEATS):
                clock = time.process_time if network.is_stubbed else time.perf_counter
                ours = _timed(clock, lambda: _in_batches(records), CHANGES)
                rounds.append((ours, _timed(clock, lambda: _singly(naive, stream, records), SINGLY)))
            yield from _times("CPU, network stubbed" if network.is_stubbed else "with the emulator", rounds)


def _times(title: str, rounds: list[tuple[float, float]]) -> Iterator[Figure]:
    ours, naive = zip(*rounds, strict=True)
    detail = f"{shown(ours, 0)} against {shown(naive, 0)} us a change"
    yield ratio(f"  time a change, of one call a change, {title}", ours, naive, detail=detail)


def _timed(clock: Callable[[], float], act: Callable[[], None], count: int) -> float:
    """Return the microseconds that each of some changes takes."""
    started = clock()
    act()
    return 1e6 * (clock() - started) / count


def _in_batches(records: list[dict[str, Any]]) -> None:
    for first in range(0, len(records), BATCH):
        answer = publisher.handler({"Records": records[first : first + BATCH]}, CONTEXT)
        assert answer == {"batchItemFailures": []}


def _singly(firehose: Any, stream: str, records: list[dict[str, Any]]) -> None:
    """Make a call for each of some changes."""
    for each in records[:SINGLY]:
        firehose.put_record(
            DeliveryStreamName=stream, Record={"Data": json.dumps(each["dynamodb"]["NewImage"]).encode()}
        )


def _record(number: int) -> dict[str, Any]:
    image = {
        "user_id": f"u{number % 997}",
        "event_id": f"2026-03-10T05:{number // 60 % 60:02}:{number % 60:02}.000000Z#{number:036}",
        "idempotency_key": f"key-{number}",
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
            "NewImage": encode_item(image),
            "SequenceNumber": str(number),
        },
    }
