"""A deterministic simulation of the engagement path under faults.

The real handlers run against a real engine. What makes a run unlike a quiet day is decided by a
seed alone: which actor takes the next step, which call is throttled, loses its answer, or is the
last one before or after which its process dies, and how the stream's records are cut into batches,
repeated and put out of order. Actors are threads of which exactly one runs at a time; the turn is
handed over at every call to DynamoDB.
"""

import base64
import itertools
import json
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError

import ingest.engagement.events_api
import ingest.engagement.events_stream
import ingest.engagement.users_api
import ingest.engagement.wiring
import processors.engagement
from tests.support.engine import Engine

START = datetime(2026, 3, 20, 12, tzinfo=UTC)
USERS = 3
FAULTS_MAX = 14
ACTORS_MAX = 3
STEPS_MAX = 3_000
KINDS = ("CONTRIBUTION", "CHECK_IN", "LESSON_COMPLETED")
CONTEXT = SimpleNamespace(
    function_name="simulated", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)


RUNS = itertools.count()


class Killed(BaseException):
    """The process is dead: no handler may catch this."""


class Turns:
    """Hands the turn from actor to actor, as the seed says."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._main = threading.Semaphore(0)
        self._waiting: dict[str, threading.Semaphore] = {}
        self._local = threading.local()

    def start(self, name: str, body: Callable[[], None]) -> None:
        self._waiting[name] = threading.Semaphore(0)

        def run() -> None:
            self._local.name = name
            self._waiting[name].acquire()
            try:
                body()
            finally:
                del self._waiting[name]
                self._main.release()

        threading.Thread(target=run, daemon=True).start()

    def pause(self) -> None:
        """Give the turn away; called by actors."""
        self._main.release()
        self._waiting[self._local.name].acquire()

    def step(self) -> bool:
        """Let one actor run to its next call; False when all are done."""
        if not self._waiting:
            return False
        self._waiting[self._chance.choice(sorted(self._waiting))].release()
        self._main.acquire()
        return True

    @property
    def alive(self) -> int:
        return len(self._waiting)


class Faults:
    """A DynamoDB client whose calls may fail, as the seed says."""

    def __init__(self, real: Any, turns: Turns, chance: random.Random) -> None:
        self._real, self._turns, self._chance = real, turns, chance
        self.left = FAULTS_MAX
        self.trace: list[str] = []
        self.exceptions = real.exceptions

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        real = getattr(self._real, operation)

        def call(**arguments: Any) -> Any:
            self._turns.pause()
            roll = self._chance.random()
            self.trace.append(f"{operation} {roll}")
            if self.left <= 0 or roll > 0.16:
                return real(**arguments)
            self.left -= 1
            if roll < 0.04:
                raise Killed
            if roll < 0.08:
                real(**arguments)
                raise Killed
            if roll < 0.12:
                error = {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": "slow down"}}
                raise ClientError(error, operation)  # type: ignore[arg-type]
            real(**arguments)
            raise EndpointConnectionError(endpoint_url="the answer was lost")

        return call


@dataclass
class Report:
    """What the outside world has been told."""

    accepted: dict[tuple[str, str], str] = field(default_factory=dict)
    bodies: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    answers: list[tuple[tuple[str, str], dict[str, Any]]] = field(default_factory=list)
    redeemed: dict[tuple[str, str], str] = field(default_factory=dict)
    reversed: set[tuple[str, str]] = field(default_factory=set)
    zones: dict[str, str] = field(default_factory=dict)


class Simulation:
    """One schedule."""

    def __init__(self, engine: Engine, seed: int, patch: Any) -> None:
        self.seed, self.engine = seed, engine
        self.chance = random.Random(seed)
        self.turns = Turns(self.chance)
        self.real = engine.client("dynamodb")
        self.faults = Faults(self.real, self.turns, self.chance)
        self.report = Report()
        # Unique in the engine, so that one run never meets the data of another.
        self.users = [f"s{seed}-{next(RUNS)}-u{number}" for number in range(USERS)]
        self.now = START
        self.errors: list[str] = []
        self.tasks: list[Callable[[], bool]] = []
        self.stream: list[dict[str, Any]] = []
        self.streams = engine.client("dynamodbstreams")
        self.iterator = self._latest()
        self._wire(patch)

    def _wire(self, patch: Any) -> None:
        clients = {"dynamodb": self.faults, "sqs": self.engine.client("sqs"), "s3": self.engine.client("s3")}
        for module in (
            ingest.engagement.users_api,
            ingest.engagement.events_stream,
            ingest.engagement.wiring,
            processors.engagement,
        ):
            patch.setattr(module, "client", clients.__getitem__)
        for module in (
            ingest.engagement.events_api,
            ingest.engagement.users_api,
            ingest.engagement.events_stream,
            processors.engagement,
        ):
            patch.setattr(module.clock, "now", self._tick)
        patch.setattr("adapters.platform.aws.time.sleep", lambda _: None)
        self._new_process()

    def _new_process(self) -> None:
        """Forget what a process holds in memory."""
        for module in (
            ingest.engagement.events_api,
            ingest.engagement.users_api,
            ingest.engagement.events_stream,
            processors.engagement,
        ):
            module._parts.cache_clear()

    def _tick(self) -> datetime:
        """Clocks of several machines: forward on the whole, now and then a little back."""
        self.now += timedelta(milliseconds=self.chance.randrange(1, 400))
        return self.now + timedelta(milliseconds=self.chance.randrange(-300, 300))

    def _latest(self) -> str:
        arn = self.real.describe_table(TableName="BPEvents")["Table"]["LatestStreamArn"]
        shard = self.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
        iterator: str = self.streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard, ShardIteratorType="LATEST"
        )["ShardIterator"]
        return iterator

    # ---- the outside world ------------------------------------------------------------------------

    def workload(self) -> None:
        """Make up what users do; every task is repeated until it has been answered."""
        for user in self.users:
            events = [self._body(user, number) for number in range(self.chance.randrange(5, 15))]
            events += self.chance.choices(events, k=3)
            events.append({**events[0], "occurred_at": "2026-03-18T00:00:00+03:00"})  # a conflict
            self.chance.shuffle(events)
            while events:
                size = self.chance.randrange(1, 6)
                some, events = events[:size], events[size:]
                door = self._post if self.chance.random() < 0.7 else self._produce
                self.tasks.append(lambda some=some, door=door: door(some))  # type: ignore[misc]
            for number in range(3):
                points = self.chance.choice((5, 10, 20, 30))
                self.tasks.append(lambda u=user, n=number, p=points: self._redeem(u, f"r{n}", p))  # type: ignore[misc]
            zone = self.chance.choice(("Europe/Berlin", "Asia/Tokyo"))
            self.tasks.append(lambda u=user, z=zone: self._move(u, z))  # type: ignore[misc]
            if self.chance.random() < 0.6:
                day = f"2026-03-{self.chance.randrange(17, 20)}"
                self.tasks.append(lambda u=user, d=day: self._freeze(u, d))  # type: ignore[misc]
        self.chance.shuffle(self.tasks)

    def _body(self, user: str, number: int) -> dict[str, Any]:
        moment = START - timedelta(minutes=self.chance.randrange(0, 60 * 24 * 6))
        return {
            "user_id": user,
            "idempotency_key": f"k{number}",
            "event_type": self.chance.choice(KINDS),
            "occurred_at": moment.isoformat(),
        }

    def _call(self, handler: Any, method: str, path: str, body: Any) -> tuple[int, Any]:
        event = {
            "version": "2.0",
            "routeKey": f"{method} {path}",
            "rawPath": path,
            "headers": {"content-type": "application/json"},
            "requestContext": {
                "http": {"method": method, "path": path},
                "stage": "$default",
                "requestId": "1",
                "authorizer": {"jwt": {"claims": {"sub": "admin", "cognito:groups": "[streakline/admin]"}}},
            },
            "body": json.dumps(body),
            "isBase64Encoded": False,
        }
        answer = handler(event, CONTEXT)
        if answer["statusCode"] >= 500:
            self.errors.append(answer["body"])
        return answer["statusCode"], json.loads(answer["body"])

    def _post(self, events: list[dict[str, Any]]) -> bool:
        status, answer = self._call(
            ingest.engagement.events_api.handler, "POST", "/v1/events", {"events": events}
        )
        if status != 202:
            return False
        for body, result in zip(events, answer["results"], strict=True):
            key = (body["user_id"], body["idempotency_key"])
            self.report.answers.append((key, result))
            if result["status"] in ("accepted", "duplicate"):
                self.report.accepted[key] = result["event_id"]
                self.report.bodies[key] = body
        return all((result.get("error") or {}).get("code") != "unavailable" for result in answer["results"])

    def _produce(self, events: list[dict[str, Any]]) -> bool:
        data = base64.b64encode(json.dumps({"events": events}).encode()).decode()
        record = {"kinesis": {"data": data, "sequenceNumber": "1", "partitionKey": "p"}}
        answer = ingest.engagement.events_stream.handler({"Records": [record]}, CONTEXT)
        return not answer["batchItemFailures"]

    def _redeem(self, user: str, key: str, points: int) -> bool:
        body = {"points": points, "reward_id": "mug", "idempotency_key": key}
        path = f"/v1/users/{user}/redemptions"
        status, answer = self._call(ingest.engagement.users_api.handler, "POST", path, body)
        if status == 201:
            self.report.redeemed[user, key] = answer["entry_id"]
            if self.chance.random() < 0.5:
                for _ in range(2):
                    self.tasks.append(lambda: self._reverse(user, answer["entry_id"]))
        return status in (201, 409)

    def _reverse(self, user: str, entry_id: str) -> bool:
        path = f"/v1/users/{user}/redemptions/{entry_id}/reversal"
        status, _ = self._call(ingest.engagement.users_api.handler, "POST", path, {})
        if status in (201, 409):
            self.report.reversed.add((user, entry_id))
        return status in (201, 409)

    def _freeze(self, user: str, day: str) -> bool:
        body = {"granted_on": day, "idempotency_key": "f"}
        status, _ = self._call(ingest.engagement.users_api.handler, "POST", f"/v1/users/{user}/freezes", body)
        return status == 201

    def _move(self, user: str, zone: str) -> bool:
        path = f"/v1/users/{user}/timezone"
        status, _ = self._call(ingest.engagement.users_api.handler, "PUT", path, {"timezone": zone})
        if status == 200:
            self.report.zones[user] = zone
        return status == 200

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
                    self.stream.append({**record, "dynamodb": change})

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
