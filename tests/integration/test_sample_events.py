"""One sample event per trigger, as AWS sends it, through the real handler."""

import importlib
import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.aws import client
from adapters.redis import Redis
from tests.engine import Engine
from tests.template import ROOT, resources

CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)
SAMPLES = {
    "EventsApiFunction": "events_api",
    "EventsStreamFunction": "events_stream",
    "EngagementFunction": "engagement",
    "UsersApiFunction": "users_api",
    "RanksFunction": "ranks",
    "PublisherFunction": "publisher",
    "CurateFunction": "curate",
    "WarehouseFunction": "warehouse",
    "ReconcileFunction": "reconcile",
}


@pytest.fixture
def handle(engine: Engine, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in engine.environment(redis_url).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("adapters.clock.now", lambda: datetime(2026, 3, 10, 6, tzinfo=UTC))
    client.cache_clear()
    Redis(redis_url).call("FLUSHALL")

    def run(function: str) -> Any:
        path = resources("AWS::Serverless::Function")[function]["Properties"]["Handler"]
        module = importlib.import_module(path.rpartition(".")[0])
        getattr(module, "_parts" if hasattr(module, "_parts") else "_steps").cache_clear()
        event = json.loads((ROOT / "tests" / "events" / f"{SAMPLES[function]}.json").read_text())
        return module.handler(event, CONTEXT)

    return run


def test_there_is_one_for_every_function() -> None:
    assert set(SAMPLES) == set(resources("AWS::Serverless::Function"))


def test_each_is_handled(handle: Any) -> None:
    posted = handle("EventsApiFunction")
    assert json.loads(posted["body"])["accepted"] == 1
    assert handle("EventsStreamFunction") == {"batchItemFailures": []}
    assert handle("EngagementFunction") == {"batchItemFailures": []}
    assert handle("EngagementFunction") == {"batchItemFailures": []}
    profile = json.loads(handle("UsersApiFunction")["body"])
    assert (profile["current_streak"], profile["total_bestie_points"]) == (1, 5)
    assert handle("RanksFunction") == {"rebuilt": True}
    assert handle("RanksFunction") == {"rebuilt": False}
    assert handle("PublisherFunction") == {"batchItemFailures": []}
    planned = handle("CurateFunction")
    assert (planned["tasks"], planned["tasks_key"]) == (1, "runs/nightly-2026-03-10/tasks.json")
    assert handle("WarehouseFunction")["failures"] == 0
    assert handle("ReconcileFunction")["users"] == 0
