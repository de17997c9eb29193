"""The plan of a replay against the laptop cloud's own counters: within 5%, for files of any mix.

The real handlers run on the emulator. It counts request units with each answer; Firehose's records are counted
at the client, and its objects in the bucket.
"""

import os
import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from adapters.platform import aws
from adapters.privacy.tombstones import Tombstones
from bench.counting.item_sizes import item_bytes, read_units
from bench.counting.requests import ADMIN, http
from bench.units.paths.publishing import billed_bytes
from ingest.engagement import events_api
from local.plan.demand.replayed import predicted
from local.plan.given.deployed import StreamConsumer, consumers, handler_modules
from local.plan.given.measured_units import load_units
from local.replay.event_sources import Body, from_csv
from tests.support.engine import Engine
from tests.support.gateway import CONTEXT
from tests.support.pipeline import Stream
from tests.support.real_input import COMMITS

# A process asks it twice a minute, however many events there are: the plan of a file has no processes.
PER_PROCESS = "RuleBooks"
TABLES = ("BPEvents", "DailyActivity", "IdempotencyKeys", "RewardsLedger", "UserStreaks")
FUNCTIONS = ("EventsApiFunction", "EngagementFunction", "PublisherFunction")
WITHIN = 0.05
MADE_UP = 200


class Counters:
    """What requests consumed, and what is put to Firehose.

    The emulator tells the write units of each request. It does not tell read units by size, and none of
    BatchGetItem: these are counted by DynamoDB's arithmetic from what came back.
    """

    def __init__(self, engine: Engine) -> None:
        self.found: dict[str, float] = defaultdict(float)
        self._quiet = engine.client("dynamodb")

    def watch(self) -> None:
        events = aws.client("dynamodb").meta.events
        events.register("before-parameter-build.dynamodb", self._ask)
        events.register("after-call.dynamodb", self._add)
        aws.client("firehose").meta.events.register("before-parameter-build.firehose", self._put)

    def _ask(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"
        context["asked"] = dict(params)

    def _add(self, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        assert "Error" not in parsed, parsed
        if model.name == "BatchGetItem":
            self._read_keys(context["asked"]["RequestItems"], parsed["Responses"])
        elif model.name == "Query":
            if context["asked"]["TableName"] != PER_PROCESS:
                self._read_query(context["asked"])
        else:
            consumed = parsed["ConsumedCapacity"]
            for each in consumed if isinstance(consumed, list) else [consumed]:
                self.found["writes"] += each["CapacityUnits"]

    def _read_keys(self, asked: dict[str, Any], found: dict[str, Any]) -> None:
        for table, request in asked.items():
            sizes = [item_bytes(each) for each in self._whole(table, request["Keys"])]
            missing = len(request["Keys"]) - len(sizes)
            self.found["reads"] += sum(read_units(size, consistent=True) for size in [*sizes, *[0] * missing])

    def _whole(self, table: str, keys: list[Any]) -> list[Any]:
        listed: list[Any] = self._quiet.batch_get_item(RequestItems={table: {"Keys": keys}})["Responses"][
            table
        ]
        return listed

    def _read_query(self, asked: dict[str, Any]) -> None:
        whole = {name: each for name, each in asked.items() if name != "ProjectionExpression"}
        items = self._quiet.query(**whole)["Items"]
        consistent = asked.get("ConsistentRead", False)
        self.found["reads"] += read_units(sum(map(item_bytes, items)), consistent=consistent)

    def _put(self, params: dict[str, Any], **_: Any) -> None:
        rows = [each["Data"] for each in params["Records"]]
        self.found["records"] += len(rows)
        self.found["bytes"] += sum(map(len, rows))
        self.found["billed"] += sum(map(billed_bytes, rows))


class Laptop:
    """The event path on an engine: door, streams, processor, publisher, one post after the other."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in engine.environment().items():
            monkeypatch.setenv(name, value)
        # The plan is of events: that a process asks twice a minute who was erased is no cost of theirs.
        monkeypatch.setattr(Tombstones, "look", lambda _: {})
        self.forget()
        self._engine = engine
        self._streams = {table: Stream(engine, table) for table in TABLES}
        self._objects = self.objects()
        self.counters = Counters(engine)
        self.counters.watch()

    def forget(self) -> None:
        aws.client.cache_clear()
        for function in FUNCTIONS:
            import_module(handler_modules()[function])._parts.cache_clear()

    def objects(self) -> int:
        pages = (
            self._engine.client("s3").get_paginator("list_objects_v2").paginate(Bucket="lake", Prefix="raw/")
        )
        return sum(len(page.get("Contents", ())) for page in pages)

    def replay(self, bodies: list[Body], post_size: int) -> dict[str, float]:
        for first in range(0, len(bodies), post_size):
            event = http("POST", "/v1/events", {"events": bodies[first : first + post_size]}, groups=ADMIN)
            answered = events_api.handler(event, CONTEXT)
            assert answered["statusCode"] == 202, answered
            self._drain()
        self.counters.found["objects"] = self.objects() - self._objects
        return self.counters.found

    def _drain(self) -> None:
        waiting = self._read()
        while waiting:
            for consumer, records in waiting:
                module = import_module(handler_modules()[consumer.function])
                assert module.handler({"Records": records}, CONTEXT) == {"batchItemFailures": []}
            waiting = self._read()

    def _read(self) -> list[tuple[StreamConsumer, list[dict[str, Any]]]]:
        found = []
        for table, stream in self._streams.items():
            records = stream.read()
            for each in consumers(table):
                if each.function in FUNCTIONS and (taken := [one for one in records if each.takes(one)]):
                    found.append((each, taken))
        return found


@pytest.fixture
def laptop(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laptop]:
    made = Laptop(engine, monkeypatch)
    yield made
    made.forget()


def check(laptop: Laptop, bodies: list[Body], post_size: int) -> None:
    """Hold the plan of a file against what the laptop counted."""
    plan = predicted(bodies, post_size, load_units())
    planned = {
        "writes": plan.write_units,
        "reads": plan.read_units,
        "records": plan.records,
        "bytes": plan.firehose_bytes,
        "billed": plan.billed_bytes,
        "objects": plan.records,
    }
    counted = laptop.replay(bodies, post_size)
    off = {name: planned[name] / counted[name] - 1 for name in planned}
    print({name: f"{planned[name]:,.0f} of {counted[name]:,.0f} ({off[name]:+.2%})" for name in planned})
    assert all(abs(each) <= WITHIN for each in off.values()), off


@pytest.mark.parametrize(("post_size", "count"), [(100, 400), (7, 140)])
def test_a_real_history_costs_what_the_plan_says(laptop: Laptop, post_size: int, count: int) -> None:
    prefix = f"{os.getpid()}-{post_size}-"
    bodies = [{**each, "user_id": prefix + each["user_id"]} for each in from_csv(Path(COMMITS))]
    check(laptop, bodies[:count], post_size)


@pytest.mark.parametrize(("seed", "post_size"), [(1, 4), (2, 40)])
def test_a_made_up_mix_costs_what_the_plan_says(laptop: Laptop, seed: int, post_size: int) -> None:
    check(laptop, made_up(seed, MADE_UP, post_size), post_size)


def made_up(seed: int, count: int, burst: int) -> list[Body]:
    """Users who send bursts of events of several types; some come late, some twice, a few have properties."""
    chance = random.Random(seed)
    now = datetime.now(UTC).replace(microsecond=0)
    users = [f"{os.getpid()}-{seed}-{'x' * chance.randrange(30)}{number}" for number in range(40)]
    kinds = ("LESSON_COMPLETED", "CHECK_IN", "WORKOUT_COMPLETED", "CONTRIBUTION")
    bodies: list[Body] = []
    while len(bodies) < count:
        user, zone = chance.choice(users), chance.choice(("Europe/Berlin", "Asia/Tokyo", "+05:45"))
        begun = now - timedelta(days=20 - 20 * len(bodies) / count, hours=chance.choice((0, 0, 0, 50)))
        for _ in range(chance.randrange(1, burst + 1)):
            begun += timedelta(seconds=chance.randrange(5, 600))
            body: Body = {
                "user_id": user,
                "idempotency_key": f"{seed}-{len(bodies)}",
                "event_type": chance.choice(kinds),
                "occurred_at": min(begun, now).isoformat(),
                "timezone": zone,
            }
            if chance.random() < 0.2:
                body["properties"] = {"score": chance.randrange(100), "note": "a" * chance.randrange(60)}
            bodies.append(body)
            if chance.random() < 0.05:
                bodies.append(chance.choice(bodies))
    return bodies
