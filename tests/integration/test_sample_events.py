"""One sample event per trigger, as AWS sends it, through the real handler.

tests/infra/test_functions.py demands a sample of each function. MigrateFunction's is run where a database
is made: test_migrate_function.py.
"""

import importlib
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.platform.aws import client, free_client
from adapters.platform.fence import RegisterStore, process_fence
from adapters.platform.redis import Redis
from rules.regions.changes import KEYS
from rules.regions.register import Register
from tests.support.engine import Engine, running
from tests.support.identity_server import Registry
from tests.support.template import ROOT, resources

CONTEXT = SimpleNamespace(
    function_name="f",
    memory_limit_in_mb=128,
    invoked_function_arn="arn",
    aws_request_id="1",
    get_remaining_time_in_millis=lambda: 900_000,
)
# What a function keeps from one invocation to the next.
KEPT = ("_parts", "_steps")
# Where PostgreSQL is (tests/integration/conftest.py).
pytestmark = pytest.mark.xdist_group("identity")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """An engine of its own: the samples would be strangers in the others' tables."""
    with running() as started:
        yield started


@pytest.fixture
def handle(
    engine: Engine, lone_redis_url: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    more = {"IDENTITY_URL": registry.server.app(registry.database)}
    for name, value in {**engine.environment(lone_redis_url), **more}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("adapters.clock.now", lambda: datetime(2026, 3, 10, 6, tzinfo=UTC))
    client.cache_clear()
    Redis(lone_redis_url).call("FLUSHALL")

    made: list[Callable[[], None]] = []

    def run(function: str) -> Any:
        path = resources("AWS::Serverless::Function")[function]["Properties"]["Handler"]
        module = importlib.import_module(path.rpartition(".")[0])
        for name in KEPT:
            if hasattr(module, name):
                made.append(getattr(module, name).cache_clear)
                made[-1]()
        event = json.loads((ROOT / "tests" / "events" / f"{function}.json").read_text())
        return module.handler(event, CONTEXT)

    yield run
    for clear in made:
        clear()
    client.cache_clear()


def test_each_is_handled(handle: Any) -> None:
    posted = handle("EventsApiFunction")
    assert json.loads(posted["body"])["accepted"] == 1
    assert handle("EventsStreamFunction") == {"batchItemFailures": []}
    assert handle("EngagementFunction") == {"batchItemFailures": []}
    assert handle("EngagementFunction") == {"batchItemFailures": []}
    profile = json.loads(handle("UsersApiFunction")["body"])
    assert (profile["current_streak"], profile["total_bestie_points"]) == (1, 5)
    assert handle("RanksFunction") == {"counted": 1}
    assert handle("RanksFunction") == {"counted": None}
    assert handle("FulfilmentFunction") == {"batchItemFailures": []}
    assert json.loads(handle("EndpointsApiFunction")["body"]) == {"endpoints": []}
    assert handle("NotificationFunction") == {"batchItemFailures": []}
    assert handle("WebhookDeliveryFunction") == {"lanes": 0}
    assert handle("PublisherFunction") == {"batchItemFailures": []}
    planned = handle("CurateFunction")
    assert (planned["tasks"], planned["tasks_key"]) == (5, "runs/nightly-2026-03-10/tasks.json")
    assert handle("CurateLargeFunction")["quarantined"] == 0
    assert handle("ForgetFunction") == {"run_id": "nightly-2026-03-10", "is_left": False, "erasures": 0}
    retained = {"run_id": "nightly-2026-03-10", "is_left": False, "left": 0, "stayed": 0}
    assert handle("RetainFunction") == retained
    assert handle("PastEventsFunction") == {"rows": [], "reached": "2025-11-01T00:00:00.000000Z"}
    assert handle("WhatIfFunction") == {"worked_out": False}
    assert handle("WarehouseFunction") == {"run_id": "nightly-2026-03-10", "left": 0, "failed": 0}
    assert [each["share"] for each in handle("ReconcileFunction")["items"]] == [*range(8)]


def test_each_of_the_leads_is_handled(handle: Any) -> None:
    receipt = handle("LeadsApiFunction")
    assert (receipt["statusCode"], json.loads(receipt["body"])["accepted"]) == (202, 1)
    assert handle("HooksApiFunction")["statusCode"] == 401  # there is no hook yet; test_hooks.py makes some
    assert handle("LeadsFunction") == {"batchItemFailures": []}
    assert handle("LeadEventsFunction") == {"batchItemFailures": []}
    assert handle("MemoryFunction") == {"batchItemFailures": []}
    assert handle("FeaturesFunction") == {"batchItemFailures": []}
    assert handle("RefreshFunction")["as_of"] == "2026-03-10T06:00:00.000000Z"


def test_each_of_the_questions_is_handled(handle: Any) -> None:
    assert handle("QuestionsApiFunction")["statusCode"] == 201
    assert handle("PollsApiFunction")["statusCode"] == 404
    assert handle("AnswersFunction") == {"batchItemFailures": []}
    assert handle("NotifyFunction") == {"batchItemFailures": []}
    assert handle("FanOutFunction") == {"batchItemFailures": []}
    assert handle("RemindersFunction") == {"unconfirmed": 0}
    assert handle("ExpireQuestionsFunction") == {"expired": 0}
    assert handle("PageFunction")["statusCode"] == 200
    view = json.loads(handle("OperationsApiFunction")["body"])
    assert [each["name"] for each in view["queues"]] == ["Failures"]


def test_each_of_two_regions_is_handled(handle: Any, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """This region writes, and then follows the other one."""
    dynamodb, here, other = engine.client("dynamodb"), "us-east-1", "us-west-2"
    dynamodb.create_table(
        TableName="streakline-register",
        AttributeDefinitions=[{"AttributeName": "name", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "name", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    sqs = free_client("sqs", region=other)
    queue = sqs.create_queue(QueueName="changes")["QueueUrl"]
    for name, value in {
        "REGION_REGISTER": "streakline-register",
        "TABLES": json.dumps({name: name for name in KEYS} | {"BPEvents": "streakline-BPEvents-1ABCDEF"}),
        "PEER_REGION": other,
        "PEER_QUEUE_URL": queue,
        "CHANGES_QUEUE_URL": queue,
    }.items():
        monkeypatch.setenv(name, value)
    registers = RegisterStore(dynamodb, "streakline-register")
    writes = Register(1, here, standby=other, is_filled=True)
    registers.change(None, writes)
    process_fence.cache_clear()
    assert handle("SenderFunction") == {"batchItemFailures": []}
    (sent,) = sqs.receive_message(QueueUrl=queue)["Messages"]
    assert json.loads(sent["Body"])["epoch"] == 1
    monkeypatch.setenv("TABLES", json.dumps({name: name for name in KEYS}))
    registers.change(writes, Register(1, other, standby=here, is_filled=True))
    process_fence.cache_clear()
    assert handle("ReceiverFunction") == {"batchItemFailures": []}
    process_fence.cache_clear()
