"""The machines that a round runs on: the real handlers, a real engine, wrong clocks, and answers that get lost.

Actors take turns, as a seed says (tests/faults/turns.py). The turn is handed over at every call to DynamoDB.
"""

import json
import logging
import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

from aws_lambda_powertools.event_handler.api_gateway import BaseRouter
from botocore.exceptions import EndpointConnectionError

import adapters.clock
import ingest.engagement.acceptance
import ingest.engagement.events_api
import ingest.engagement.user_services
import ingest.engagement.users_api
import processors.engagement
import processors.expiry
import processors.ranks
from adapters.engagement.account_store import ExpiryIndex
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.projections import Projections
from analytics.reconcile.reconcile_user import Reconciler
from tests.faults.turns import Killed, Turns, current
from tests.support.board_tables import Secrets
from tests.support.books import KnownAt
from tests.support.engine import Engine, lean_client
from tests.support.same_thread import SameThread

FAULTS_MAX = 4
VICTIMS_MAX = 3
EARLY = datetime(1970, 1, 1, tzinfo=UTC)
HANDLERS = (
    *(ingest.engagement.events_api, ingest.engagement.users_api),
    *(processors.engagement, processors.expiry, processors.ranks),
)
CONTEXT = SimpleNamespace(
    function_name="oracle", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)


@dataclass(frozen=True)
class Commit:
    """A transaction on a ledger: at which step, by whose clock, and the number of its newest entry."""

    step: int
    seq: int
    clock: datetime


@dataclass
class Actor:
    """Who is running. lose_at: of its calls, the one whose answer is lost. acting: false for a judge."""

    acting: bool = False
    victim: bool = False
    lose_at: int = 0
    calls: int = 0
    skew: timedelta = timedelta()
    clock: datetime = EARLY


class Losing:
    """A DynamoDB client that hands over the turn, and loses answers; it notes what ledgers were given."""

    def __init__(self, machines: "Machines", real: Any) -> None:
        self._machines, self._real, self.exceptions = machines, real, real.exceptions

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        real = getattr(self._real, operation)

        def call(**arguments: Any) -> Any:
            machines, actor = self._machines, self._machines.actor
            if not actor.acting:
                answer = real(**arguments)
                machines.note(arguments)  # who looks writes what is due
                return answer
            # A process of Lambda serves one request at a time, and keeps it here; these actors share one process.
            request = getattr(BaseRouter, "current_event", None)
            machines.turns.pause()
            BaseRouter.current_event = request  # type: ignore[assignment]
            machines.step += 1
            actor.calls += 1
            fault = machines.fault()
            if fault == "died before":
                raise Killed
            answer = real(**arguments)
            machines.note(arguments)
            if fault == "died after":
                raise Killed
            if fault:
                raise EndpointConnectionError(endpoint_url="the answer was lost")
            return answer

        return call


@dataclass
class Machines:
    """patch: pytest's. every: each attempt loses the answer of its next call, until one gets through."""

    engine: Engine
    stream: "Stream"
    user: str
    chance: random.Random
    every: bool
    skewed: bool
    patch: Any
    books: KnownAt
    now: datetime = EARLY
    step: int = 0
    faults_left: int = FAULTS_MAX
    victims_left: int = VICTIMS_MAX
    commits: list[Commit] = field(default_factory=list)
    actors: WeakKeyDictionary[object, Actor] = field(default_factory=WeakKeyDictionary)
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.turns = Turns(self.chance)
        self.wire()

    def wire(self) -> None:
        """Put these machines' clients and clock into the handlers, as long as the patch lasts."""
        losing = Losing(self, self.stream.real)
        clients = {"dynamodb": losing, "sqs": self.stream.sqs, "secretsmanager": Secrets()}
        for module in HANDLERS:
            self.patch.setattr(module._parts, "client", clients.__getitem__)
        # The hourly run of a round is about its user alone.
        due = ExpiryIndex.due
        self.patch.setattr(
            *(ExpiryIndex, "due"),
            lambda *given: (user for user in due(*given) if user == self.user),
        )
        self.patch.setattr(adapters.clock, "now", self.clock)
        self.patch.setattr("adapters.platform.aws.time", SimpleNamespace(sleep=lambda _: None))
        for each in ("book_store", "engagement.amnesty_store", "privacy.tombstones"):
            self.patch.setattr(f"adapters.{each}.FRESH_SECONDS", math.inf)
        self.patch.setattr("processors.engagement.ThreadPoolExecutor", SameThread)
        self.patch.setattr("tests.support.engine.CHANGE_SECONDS", 0)
        terms = "adapters.engagement.daily_terms_store.DailyTermsStore"
        for name in ("books", "look"):
            self.patch.setattr(f"adapters.book_store.BookStore.{name}", lambda _: self.books.at(self.now))
        self.patch.setattr(f"{terms}.recent", lambda _: self.books.at(self.now).daily_terms)
        self.patch.setattr(f"{terms}.pay_bonuses", lambda _: self.books.at(self.now).pay_bonuses)
        # Each lost answer is logged with its traceback, which takes longer than the call.
        self.patch.setattr(logging.root.manager, "disable", logging.CRITICAL)
        self.new_process()

    @property
    def actor(self) -> Actor:
        """Whoever's turn it is."""
        return self.actors.setdefault(current(), Actor())

    def new_process(self) -> None:
        """Forget what a process holds in memory."""
        for module in HANDLERS:
            module._parts.cache_clear()
        forget_instants()

    def clock(self) -> datetime:
        """The clock of the machine that asks: one of several, each wrong in its own way."""
        self.now += timedelta(milliseconds=self.chance.randrange(1, 400))
        self.actor.clock = self.now + self.actor.skew
        return self.actor.clock

    def fault(self) -> str | None:
        """What goes wrong with this call."""
        if self.every:
            lost = self.actor.victim and self.actor.calls == self.actor.lose_at
            return self.chance.choice(("lost", "died after")) if lost else None
        if self.faults_left <= 0 or self.chance.random() > 0.05:
            return None
        self.faults_left -= 1
        return self.chance.choice(("lost", "lost", "died after", "died before"))

    def note(self, arguments: dict[str, Any]) -> None:
        """Remember what was written to the ledger, at which step and by whose clock."""
        puts = [each["Put"] for each in arguments.get("TransactItems", ()) if "Put" in each]
        numbers = [int(each["Item"]["seq"]["N"]) for each in puts if each["TableName"] == "RewardsLedger"]
        if numbers:
            self.commits.append(Commit(self.step, max(numbers), self.actor.clock))

    def start(self, attempt: Callable[[], bool], number: int, done: Callable[[bool], None]) -> None:
        """Let an actor of its own attempt something; number: how many there were before."""
        skew = timedelta(hours=self.chance.choice((-48, -1, 0, 0, 5, 72))) if self.skewed else timedelta()
        victim = self.every and (number > 0 or (self.victims_left > 0 and self.chance.random() < 0.4))
        self.victims_left -= victim and number == 0

        def run() -> None:
            self.actors[current()] = Actor(acting=True, victim=victim, lose_at=number + 1, skew=skew)
            try:
                done(attempt())
            except Killed:
                self.new_process()
                done(False)
            except Exception as error:
                self.errors.append(repr(error))
                done(False)

        self.turns.start(f"{self.chance.randrange(10**12)}", run)

    def alone(self, attempt: Callable[[], bool]) -> None:
        """Run attempts one after another until one is done."""
        number = 0
        finished: list[bool] = [False]
        while not finished[-1]:
            assert number < 60, f"it does not come to an end: {self.errors[-3:]}"
            self.start(attempt, number, finished.append)
            while self.turns.step():
                pass
            number += 1

    def call(
        self, handler: Any, method: str, path: str, body: Any = None, door: str = "admin", **query: str
    ) -> tuple[int, Any]:
        """Call a handler as the gateway does; returns status and body."""
        groups = {"admin": "[streakline/admin]", "producer": "[streakline/producers]"}.get(door, "")
        claims = {"sub": self.user if door == "user" else door, "cognito:groups": groups}
        http = {"method": method, "path": path}
        event = {
            "version": "2.0",
            "routeKey": f"{method} {path}",
            "rawPath": path,
            "headers": {"content-type": "application/json"},
            "queryStringParameters": query,
            "requestContext": {"http": http, "stage": "$default", "authorizer": {"jwt": {"claims": claims}}},
            "body": None if body is None else json.dumps(body),
            "isBase64Encoded": False,
        }
        answer = handler(event, CONTEXT)
        return answer["statusCode"], json.loads(answer["body"])

    def pages(self, path: str, name: str, **query: str) -> list[Any]:
        """Read a list to its end, newest first."""
        found: list[Any] = []
        while True:
            page = self.get(path, limit="500", **query)
            found += page[name]
            if not page["cursor"]:
                return found
            query["cursor"] = page["cursor"]

    def scores(self) -> Any:
        """What the next snapshot of the boards would have of the user; None: nothing."""
        key = {"user_id": {"S": self.user}}
        found = self.stream.real.get_item(TableName="UserStreaks", Key=key).get("Item")
        return found and processors.ranks._scores_of(found)

    def night(self, lake: Any = None, goal_rows: Any = None) -> list[Any]:
        """What the nightly comparison says against the user's items and ledger. lake: what the lake has of the user."""
        accounts = processors.expiry._parts().settler.accounts
        items = Projections(self.stream.real, "UserStreaks", "DailyActivity")
        night = Reconciler(
            *(accounts, items, EngagementCache(""), False, lambda: self.books.at(self.now)),
            goal_rows=goal_rows,
        )
        found = night.examine(self.user, lake, self.now)
        no_lake = "the lake lacks "  # a round has none
        told = [each for each in found.disagreements if lake or not each.startswith(no_lake)]
        return [*found.differences, *told]

    def get(self, path: str, **query: str) -> Any:
        """Read as an admin, with nothing in the way."""
        handler = ingest.engagement.users_api.handler
        status, body = self.call(handler, "GET", f"/v1/users/{self.user}{path}", **query)
        assert status == 200, (path, body)
        return body


def forget_instants() -> None:
    """Forget when periods end, and what else the rules keep of dates: of a planted fault nothing stays behind."""
    for name in ("rules.engagement.periods", "rules.book.daily"):
        for each in vars(sys.modules[name]).values():
            if hasattr(each, "cache_clear"):
                each.cache_clear()


class Stream:
    """BPEvents' stream in an engine: one for all rounds."""

    def __init__(self, engine: Engine) -> None:
        self.real, self.sqs = lean_client(engine, "dynamodb"), lean_client(engine, "sqs")
        self._streams = lean_client(engine, "dynamodbstreams")
        self.arn = self.real.describe_table(TableName="BPEvents")["Table"]["LatestStreamArn"]
        shard = self._streams.describe_stream(StreamArn=self.arn)["StreamDescription"]["Shards"][0]["ShardId"]
        self._iterator = self._streams.get_shard_iterator(
            StreamArn=self.arn, ShardId=shard, ShardIteratorType="LATEST"
        )["ShardIterator"]

    def new(self, *users: str) -> list[dict[str, Any]]:
        """Return the records of users since the last look."""
        found: list[dict[str, Any]] = []
        while True:
            answer = self._streams.get_records(ShardIterator=self._iterator)
            self._iterator = answer["NextShardIterator"]
            if not answer["Records"]:
                return found
            for record in answer["Records"]:
                change = dict(record["dynamodb"], ApproximateCreationDateTime=0)
                if change["Keys"]["user_id"]["S"] in users:
                    found.append({**record, "dynamodb": change, "eventSourceARN": self.arn})
