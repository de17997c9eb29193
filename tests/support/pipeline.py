"""The consumers of the engine's streams, in the process: what the poller and Lambda do on a laptop."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from local.cloud.streams import table_record
from tests.support.engine import Engine
from tests.support.gateway import CONTEXT

# Each stream's consumers that a person's answer runs through.
CONSUMERS = {"Responses": "processors.questions.answers", "BPEvents": "processors.engagement"}
IDLE_SECONDS = 0.1


class Stream:
    """One table's stream, from now on."""

    def __init__(self, engine: Engine, table: str) -> None:
        self._streams = engine.client("dynamodbstreams")
        described = engine.client("dynamodb").describe_table(TableName=table)["Table"]
        self._arn = described["LatestStreamArn"]
        shard = self._streams.describe_stream(StreamArn=self._arn)["StreamDescription"]["Shards"][0]
        self._next = self._streams.get_shard_iterator(
            StreamArn=self._arn, ShardId=shard["ShardId"], ShardIteratorType="LATEST"
        )["ShardIterator"]

    def read(self) -> list[dict[str, Any]]:
        answer = self._streams.get_records(ShardIterator=self._next)
        self._next = answer["NextShardIterator"]
        return [table_record(each, self._arn) for each in answer["Records"]]


class Pipeline:
    """Hands what comes on the streams to the real handlers."""

    def __init__(self, engine: Engine) -> None:
        self._streams = {consumer: Stream(engine, table) for table, consumer in CONSUMERS.items()}

    def step(self) -> int:
        """Process what waits now; returns how many records that were."""
        count = 0
        for consumer, stream in self._streams.items():
            records = stream.read()
            if records:
                outcome = import_module(consumer).handler({"Records": records}, CONTEXT)
                assert outcome == {"batchItemFailures": []}, (consumer, outcome)
            count += len(records)
        return count

    @contextmanager
    def running(self) -> Iterator[None]:
        """Process all the while, on a thread of its own; what it raises is raised at the end."""
        stop, failed = threading.Event(), list[Exception]()

        def work() -> None:
            while not stop.wait(IDLE_SECONDS):
                try:
                    self.step()
                except Exception as error:
                    failed.append(error)
                    return

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield
        stop.set()
        thread.join()
        if failed:
            raise failed[0]
