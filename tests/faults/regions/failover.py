"""Two regions under faults: changes late, twice and in any order, partitions, promotions while both are alive.

As in tests.faults.simulation, a seed alone decides. Time goes on with every call; now and then nothing
happens for some seconds, and actors are left standing for as long as the seed likes: these are the writers that wake
up when another one writes.
"""

import json
import logging
import math
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import ingest.engagement.acceptance
import ingest.engagement.events_api
import ingest.engagement.events_stream
import ingest.engagement.user_services
import ingest.engagement.users_api
import processors.engagement
from adapters.platform.fence import RegionFenced, RegisterStore
from adapters.platform.queues import PoisonMessage
from adapters.privacy.tombstones import NO_ERASURES
from adapters.regions import Follower
from local.region_return import RegionReturn
from local.region_unseen import Side
from local.regions import Promotion
from processors.region_follower import ChangesNotReady, take_over
from rules.regions.changes import KEYS
from rules.regions.register import QUIET_SECONDS, Register, may_follow
from tests.faults.callers import CONTEXT, START, Callers, Report
from tests.faults.regions.region import IN_USE, TABLES, Region, sender_of
from tests.faults.turns import Faults, Killed, Turns, current
from tests.support.engine import Engine, lean_client
from tests.support.same_thread import SameThread

if TYPE_CHECKING:
    from local.region_unseen import FoundUnseen, ListedItem

ACTORS_MAX = 4
STEPS_MAX = 3_000  # a schedule that comes to an end takes some hundred
ATTEMPTS_MAX = 40
RUNS = Counter[int]()
REGISTER = "Register"


class Remembered(RegisterStore):
    """The register in its table. All regions share this object, so it knows what nobody else has changed."""

    known: Register | None = None

    def read(self) -> Register | None:
        self.known = self.known or super().read()
        return self.known

    def change(self, read: Register | None, to: Register) -> None:
        super().change(read, to)
        self.known = to


class Here:
    """The client of whichever region the actor is in whose turn it is."""

    def __init__(self, found: Callable[[], Any]) -> None:
        self._found = found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found(), name)


class Failover(Callers):
    """One schedule: a writer and its standby; promotions; the old writer returns."""

    def __init__(self, engines: tuple[Engine, Engine], seed: int, patch: Any) -> None:
        self.seed, self.chance = seed, random.Random(seed)
        self.turns, self.report = Turns(self.chance), Report()
        run = RUNS[seed]
        RUNS[seed] += 1
        self.users = [f"r{seed}-{run}-u{number}" for number in range(1 if seed % 4 else 2)]
        self.seconds, self.errors = 0.0, list[str]()
        self.tasks: list[Callable[[], bool]] = []
        self.operations: list[Callable[[], None]] = []
        self.found: list[FoundUnseen] = []
        self.listed: list[ListedItem] = []
        self.wrong: list[str] = []
        self.places = WeakKeyDictionary[object, Region]()
        self.registers = Remembered(
            lean_client(engines[0], "dynamodb"), register_table(engines[0], seed, run)
        )
        self.regions = [
            Region(name, engine, self.users, self.registers.read, lambda: self.seconds, rate)
            for name, engine, rate in zip(("west", "east"), engines, (1.03, 0.97), strict=True)
        ]
        west, east = self.regions
        self.registers.change(None, Register(1, west.name, standby=east.name, is_filled=True))
        east.is_consuming = False
        self.clients = {each.name: self._faulty(each.writes) for each in self.regions}
        self.follows = {each.name: self._faulty(each.follows) for each in self.regions}
        self.operators = {each.name: self._faulty(each.bare, 6) for each in self.regions}
        self.skews = {each.name: self.chance.uniform(-2, 2) for each in self.regions}
        self.device_hours = self.chance.choice((0, 0, 1, 3))
        self._wire(patch)

    def _faulty(self, real: Any, left: int = 10) -> Faults:
        made = Faults(real, self.turns, self.chance)
        made.left = left
        return made

    def _wire(self, patch: Any) -> None:
        here = Here(lambda: self.clients[self.here.name])
        other = {name: Here(partial(self._client, name)) for name in ("sqs", "s3")}
        clients = {"dynamodb": here, **other}
        for module in HANDLERS:
            patch.setattr(module._parts, "client", clients.__getitem__)
            patch.setattr(module.clock, "now", self._now)
        patch.setattr("adapters.platform.aws.time", SimpleNamespace(sleep=lambda _: None))
        patch.setattr("adapters.platform.item_tables.ThreadPoolExecutor", OneByOne)
        patch.setattr("adapters.book_store.FRESH_SECONDS", math.inf)
        for each in ("engagement.amnesty_store", "privacy.tombstones"):
            patch.setattr(f"adapters.{each}.FRESH_SECONDS", math.inf)
        patch.setattr("processors.engagement.ThreadPoolExecutor", SameThread)
        patch.setattr("tests.support.engine.CHANGE_SECONDS", 0)
        # Each fault is logged with its traceback, which takes longer than the call.
        patch.setattr(logging.root.manager, "disable", logging.CRITICAL)
        self._new_process()

    def _client(self, service: str) -> Any:
        return lean_client(self.here.engine, service)

    @property
    def here(self) -> Region:
        return self.places[current()]

    @property
    def register(self) -> Register:
        found = self.registers.read()
        assert found is not None
        return found

    @property
    def writer(self) -> Region:
        """The region that the register names."""
        return next(each for each in self.regions if each.name == self.register.writer)

    def other(self, region: Region) -> Region:
        return self.regions[1 - self.regions.index(region)]

    def _new_process(self) -> None:
        for module in HANDLERS:
            module._parts.cache_clear()

    def _now(self) -> datetime:
        """Both regions' clocks are wrong by some seconds, and never the same twice."""
        self._pass()
        skew = self.skews[self.here.name] + self.chance.uniform(-0.3, 0.3)
        return START + timedelta(seconds=self.seconds + skew)

    def _pass(self) -> None:
        self.seconds += self.chance.uniform(0, 0.4)
        if self.chance.random() < 0.02:
            self.seconds += self.chance.uniform(0, 15)

    # ---- what runs in a region ------------------------------------------------------------------

    def _deliver(self, region: Region) -> bool:
        """Hand a batch of a region's events to its processor, out of order and with some twice."""
        if not region.is_consuming or not region.events:
            return False
        self.chance.shuffle(region.events)
        size = self.chance.randrange(1, 9)
        batch, region.events = region.events[:size], region.events[size:]
        self._start(f"processor-{region.name}", lambda: self._process(region, batch), region)
        if self.chance.random() < 0.2:
            region.events += batch
        return True

    def _process(self, region: Region, batch: list[dict[str, Any]]) -> bool:
        try:
            answer = processors.engagement.handler({"Records": batch}, CONTEXT)
        except Exception as error:
            self.errors.append(repr(error))
            region.events += batch
            return True
        except Killed:
            region.events += batch
            raise
        numbers = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        region.events += [each for each in batch if each["dynamodb"]["SequenceNumber"] in numbers]
        return True

    def _send(self, region: Region) -> bool:
        if not region.changes:
            return False
        self.chance.shuffle(region.changes)
        size = self.chance.randrange(1, 12)
        batch, region.changes = region.changes[:size], region.changes[size:]
        twice = batch if self.chance.random() < 0.1 else []
        try:
            sender_of(region, self.other(region), self.chance).send(batch, region.fence.register())
            region.changes += twice
        except (RegionFenced, ConnectionError):
            region.changes += batch
        return True

    def _take_over(self, region: Region) -> bool:
        if not region.arrived:
            return False
        text = region.arrived.pop(self.chance.randrange(len(region.arrived)))
        self._start(f"taking-{region.name}", lambda: self._take(region, text), region)
        return True

    def _take(self, region: Region, text: str) -> bool:
        follower = Follower(self.follows[region.name], TABLES)
        try:
            take_over(json.loads(text), follower, region.fence.register(), region.name, self._now())
        except PoisonMessage as error:
            self.wrong.append(f"a message is poison: {error}")
        except ChangesNotReady:
            region.arrived.append(text)
        except Exception as error:
            self.errors.append(repr(error))
            region.arrived.append(text)
        except Killed:
            region.arrived.append(text)
            raise
        return True

    # ---- what operators do ----------------------------------------------------------------------

    def promote(self, region: Region) -> None:
        """Promote a region, whoever else is alive; then its consumers are switched on."""
        Promotion(self.registers, region.name, lambda: len(region.arrived), self._sleep).run(60.0)
        region.is_consuming = True

    def come_back(self, region: Region) -> None:
        """Let a region that wrote before return, and follow."""
        new, now = self.writer, self._now()
        region.is_consuming = False
        self._sleep(QUIET_SECONDS)
        old_side = of_users(region, self.users, self.operators[region.name])
        new_side = of_users(new, self.users, self.operators[new.name])
        steps = RegionReturn(old_side, new_side, self.registers, self, self._sleep, lambda _: None)
        found = steps.find(NO_ERASURES, now)
        self.found.append(found)
        self.listed += steps.apply(found).listed
        region.events.clear()
        steps.follow(found, self.follows[region.name], now)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The new writer's door, as an operator asks it."""
        before, self.places[current()] = self.here, self.writer
        try:
            return self._call(ingest.engagement.users_api.handler, method, path, body)
        finally:
            self.places[current()] = before

    def _clock(self) -> dict[str, str]:
        """A device that is hours ahead: each attempt corrects its events by some seconds more or less."""
        said = START + timedelta(seconds=self.seconds, hours=self.device_hours)
        return {"sent_at": said.isoformat()} if self.device_hours else {}

    def _reverse(self, user: str, entry_id: str) -> bool:
        """Reverse a redemption; one that the new writer never saw is not there under its old id."""
        path = f"/v1/users/{user}/redemptions/{entry_id}/reversal"
        status, _ = self._call(ingest.engagement.users_api.handler, "POST", path, {})
        if status in (201, 409):
            self.report.reversed.add((user, entry_id))
        return status in (201, 404, 409)

    def _sleep(self, seconds: float) -> None:
        until = self.seconds + seconds
        while self.seconds < until:
            self.seconds += self.chance.uniform(0, 2)
            self.turns.pause()

    def operate(self, act: Callable[[Region], None], region: Region) -> None:
        """Carry out an operation, again and again until it has come to its end."""
        done: list[bool] = []
        attempts = 0

        def attempt() -> bool:
            try:
                act(region)
            except Killed:
                return True
            except Exception as error:
                self.errors.append(f"{act.__name__}: {error!r}")
                return True
            done.append(True)
            return True

        while not done:
            attempts += 1
            assert attempts < ATTEMPTS_MAX, f"seed {self.seed}: {act.__name__} fails: {self.errors[-3:]}"
            name = f"operator-{len(self.errors)}-{self.chance.randrange(10**9)}"
            finished = self._start(name, attempt, region)
            self._go_on(lambda some=finished: not some, STEPS_MAX)  # type: ignore[misc]
            assert finished, f"seed {self.seed}: {act.__name__} does not end"

    # ---- running it -----------------------------------------------------------------------------

    def _start(self, name: str, task: Callable[[], bool], region: Region) -> list[bool]:
        finished: list[bool] = []

        def body() -> None:
            self.places[current()] = region
            try:
                is_done = task()
            except Killed:
                self._new_process()
                is_done = not name.startswith("caller")
            except Exception as error:
                self.errors.append(repr(error))
                is_done = not name.startswith("caller")
            finished.append(True)
            if not is_done:
                self.tasks.append(task)

        self.turns.start(f"{name}-{self.chance.randrange(10**9)}", body)
        return finished

    def _ask(self, writer: Region) -> bool:
        """Let a caller ask a region: mostly the writer, now and then the other one."""
        if not self.tasks:
            return False
        task = self.tasks.pop(self.chance.randrange(len(self.tasks)))
        region = writer if self.chance.random() < 0.8 else self.other(writer)
        self._start("caller", task, region)
        return True

    def _begin(self, *, poll: bool) -> bool:
        """Begin something; whether there was something to begin. poll: read the tables' streams first."""
        register = self.register
        if poll:
            for region in self.regions:
                region.poll()
        writer = next(each for each in self.regions if each.name == register.writer)
        acts: list[Callable[[], bool]] = [partial(self._ask, writer)]
        for each in self.regions:
            acts += [partial(self._deliver, each), partial(self._send, each)]
            if may_follow(register, each.name) or self.chance.random() < 0.3:
                acts.append(partial(self._take_over, each))
        self.chance.shuffle(acts)
        return any(act() for act in acts)

    def _go_on(self, wanted: Callable[[], bool], steps: int) -> None:
        """Let actors run for so many steps, as long as it is wanted."""
        for _ in range(steps):
            if not wanted():
                return
            if self.turns.alive < ACTORS_MAX and self.chance.random() < 0.5:
                self._begin(poll=self.chance.random() < 0.15)
            self._pass()
            self.turns.step()

    def run(self) -> None:
        """Run the workload, with promotions in it; then deliver everything."""
        self.workload()
        west, east = self.regions
        old, new = west, east
        for _ in range(1 if self.chance.random() < 0.7 else 2):
            self._go_on(lambda: True, self.chance.randrange(0, 250))
            old.cut = self.chance.random() < 0.6
            self.spend(old, "old", (20, 10))
            self._go_on(lambda: True, self.chance.randrange(0, 60))
            self.operate(self.promote, new)
            self.spend(new, "new", (40, 20, 20, 10, 5, 5))
            self._go_on(lambda: True, self.chance.randrange(0, 200))
            old.cut = False
            self.more_work()
            self._go_on(lambda: True, self.chance.randrange(0, 100))
            self.operate(self.come_back, old)
            self.more_work()
            old, new = new, old
        self._drain()

    def more_work(self) -> None:
        """Users go on, and spend."""
        for user in self.users:
            for number in (f"again{self.chance.randrange(10**6)}" for _ in range(2)):
                points = self.chance.choice((5, 10, 20))
                self.tasks.append(lambda u=user, n=number, p=points: self._redeem(u, n, p))  # type: ignore[misc]
            self.tasks.append(lambda u=user: self._post([self._body(u, 50 + self.chance.randrange(9**6))]))  # type: ignore[misc]

    def spend(self, region: Region, name: str, some: tuple[int, ...]) -> None:
        """Users spend in a region, whichever writes: the new one may know nothing of what is taken in the old one."""
        for user in self.users:
            for number, points in enumerate(some):
                key = f"spent-{name}{number}"
                self._start("caller", partial(self._redeem, user, key, points), region)

    def _drain(self) -> None:
        quiet = steps = 0
        while quiet < 3:
            steps += 1
            assert steps < STEPS_MAX, f"seed {self.seed} does not come to an end: {self.errors[-3:]}"
            began = self.turns.alive < ACTORS_MAX and (self._begin(poll=False) or self._begin(poll=True))
            self._pass()
            if self.turns.step() or began:
                quiet = 0
            else:
                quiet += 1
                with suppress(Exception):
                    self.seconds += 5


HANDLERS = (
    ingest.engagement.events_api,
    ingest.engagement.users_api,
    ingest.engagement.events_stream,
    processors.engagement,
)


class OneByOne:
    """In place of threads: one actor runs at a time."""

    def __init__(self, _: int) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    map = staticmethod(map)


def of_users(region: Region, users: list[str], dynamodb: Any = None) -> Side:
    """Return a region's tables as far as they are of some users: the engine is shared with other schedules."""
    return Side(region.name, Mine(dynamodb or region.bare, users), {name: name for name in IN_USE})


class Mine:
    """A client whose scans find what is of some users alone."""

    def __init__(self, real: Any, users: list[str]) -> None:
        self._real, self._users = real, users

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def scan(self, **request: Any) -> Any:
        key = KEYS[request["TableName"]][0]
        found = [
            self._real.query(
                **request,
                KeyConditionExpression="#owner = :owner",
                ExpressionAttributeNames={"#owner": key},
                ExpressionAttributeValues={":owner": {"S": user}},
            )
            for user in self._users
        ]
        return {"Items": [item for each in found for item in each["Items"]]}


def register_table(engine: Engine, seed: int, run: int) -> str:
    """Make the table of a schedule's register; returns its name."""
    name = f"{REGISTER}-{seed}-{run}"
    lean_client(engine, "dynamodb").create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "name", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "name", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return name
