"""A deterministic simulation of the engagement path under faults.

The real handlers run against a real engine. What makes a run unlike a quiet day is decided by a
seed alone: which actor takes the next step, which call is throttled, loses its answer, or is the
last one before or after which its process dies, and how the stream's records are cut into batches,
repeated and put out of order. One actor runs at a time; the turn is handed over at every call to DynamoDB.
"""

import logging
import math
import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import ingest.engagement.acceptance
import ingest.engagement.events_api
import ingest.engagement.events_stream
import ingest.engagement.user_services
import ingest.engagement.users_api
import processors.engagement
from tests.faults.callers import CONTEXT, START, Callers, Report
from tests.faults.turns import Faults, Killed, Turns
from tests.support.engine import Engine, lean_client
from tests.support.same_thread import SameThread

HANDLERS = (
    ingest.engagement.events_api,
    ingest.engagement.users_api,
    ingest.engagement.events_stream,
    processors.engagement,
)
# Most schedules are of one user, on whom all actors and faults meet. Some are of several, who share a batch.
USERS, SEVERAL_EACH = 3, 5
ACTORS_MAX = 3
STEPS_MAX = 3_000
# How often a seed was run: names are unique in an engine, and the first run of a seed has the same in each.
RUNS = Counter[tuple[Engine, int]]()


class Simulation(Callers):
    """One schedule."""

    book_fresh_seconds = math.inf  # the same calls, however slow the machine is

    def __init__(self, engine: Engine, seed: int, patch: Any) -> None:
        self.seed, self.engine = seed, engine
        self.chance = random.Random(seed)
        self.turns = Turns(self.chance)
        self.real = lean_client(engine, "dynamodb")
        self.faults = Faults(self.real, self.turns, self.chance)
        self.report = Report()
        # Unique in the engine, so that one run never meets the data of another.
        run, users = RUNS[engine, seed], 1 if seed % SEVERAL_EACH else USERS
        RUNS[engine, seed] += 1
        self.users = [f"s{seed}-{run}-u{number}" for number in range(users)]
        self.now = START
        self.errors: list[str] = []
        self.tasks: list[Callable[[], bool]] = []
        self.stream: list[dict[str, Any]] = []
        self.streams = lean_client(engine, "dynamodbstreams")
        self.source, self.iterator = self._latest()
        self._wire(patch)

    def _wire(self, patch: Any) -> None:
        clients = {
            "dynamodb": self.faults,
            "sqs": lean_client(self.engine, "sqs"),
            "s3": lean_client(self.engine, "s3"),
        }
        for module in HANDLERS:
            patch.setattr(module._parts, "client", clients.__getitem__)
            patch.setattr(module.clock, "now", self._tick)
        patch.setattr("adapters.platform.aws.time", SimpleNamespace(sleep=lambda _: None))
        patch.setattr("adapters.book_store.FRESH_SECONDS", self.book_fresh_seconds)
        for each in ("engagement.amnesty_store", "privacy.tombstones"):
            patch.setattr(f"adapters.{each}.FRESH_SECONDS", math.inf)
        patch.setattr("processors.engagement.ThreadPoolExecutor", SameThread)
        patch.setattr("tests.support.engine.CHANGE_SECONDS", 0)
        # Each fault is logged with its traceback, which takes longer than the call.
        patch.setattr(logging.root.manager, "disable", logging.CRITICAL)
        self._new_process()

    def _new_process(self) -> None:
        """Forget what a process holds in memory."""
        for module in HANDLERS:
            module._parts.cache_clear()

    def _tick(self) -> datetime:
        """Clocks of several machines: forward on the whole, now and then a little back."""
        self.now += timedelta(milliseconds=self.chance.randrange(1, 400))
        return self.now + timedelta(milliseconds=self.chance.randrange(-300, 300))

    def _latest(self) -> tuple[str, str]:
        arn: str = self.real.describe_table(TableName="BPEvents")["Table"]["LatestStreamArn"]
        shard = self.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
        iterator: str = self.streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard, ShardIteratorType="LATEST"
        )["ShardIterator"]
        return arn, iterator

    # ---- the stream -------------------------------------------------------------------------------

    def _poll(self) -> None:
        while True:
            answer = self.streams.get_records(ShardIterator=self.iterator)
            self.iterator = answer["NextShardIterator"]
            if not answer["Records"]:
                return
            for record in answer["Records"]:
                change = dict(record["dynamodb"], ApproximateCreationDateTime=0)
                if change["Keys"]["user_id"]["S"] in self.users:
                    self.stream.append({**record, "dynamodb": change, "eventSourceARN": self.source})

    def _deliver(self) -> bool:
        """Take a batch off the stream, out of order and with some of what was delivered before."""
        self._poll()
        if not self.stream:
            return False
        self.chance.shuffle(self.stream)
        size = self.chance.randrange(1, 9)
        batch, self.stream = self.stream[:size], self.stream[size:]
        repeated = self.chance.sample(batch, k=min(len(batch), self.chance.randrange(0, 3)))
        self._start("processor", lambda: self._process(batch + repeated))
        if self.chance.random() < 0.2:
            self.stream += batch
        return True

    def _process(self, batch: list[dict[str, Any]]) -> bool:
        try:
            answer = processors.engagement.handler({"Records": batch}, CONTEXT)
        except Exception as error:
            self.errors.append(repr(error))
            self.stream += batch
            return True
        except Killed:
            self.stream += batch
            raise
        numbers = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        self.stream += [record for record in batch if record["dynamodb"]["SequenceNumber"] in numbers]
        return True

    # ---- running it ---------------------------------------------------------------------------------

    def _start(self, name: str, task: Callable[[], bool]) -> None:
        def body() -> None:
            try:
                done = task()
            except Killed:
                self._new_process()
                done = name == "processor"
            except Exception as error:
                self.errors.append(repr(error))
                done = False
            if not done:
                self.tasks.append(task)

        self.turns.start(f"{name}-{self.chance.randrange(10**9)}", body)

    def run(self) -> None:
        """Run the workload to its end, then deliver everything that is still in the stream."""
        self.workload()
        self._drain()

    def _drain(self) -> None:
        """Run what is left to do, until nothing is."""
        quiet = steps = 0
        while quiet < 2:
            steps += 1
            assert steps < STEPS_MAX, f"seed {self.seed} does not come to an end: {self.errors[-3:]}"
            while self.turns.alive < ACTORS_MAX:
                if self.tasks and self.chance.random() < 0.6:
                    self._start("caller", self.tasks.pop(self.chance.randrange(len(self.tasks))))
                elif not self._deliver():
                    if not self.tasks:
                        break
                    self._start("caller", self.tasks.pop())
            if self.turns.step():
                quiet = 0
            else:
                quiet += 1
