"""`streakline smoke` against a deployment in memory: right, and with one fault planted in each step."""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from analytics.warehouse.redshift_warehouse import RedshiftWarehouse
from analytics.warehouse.warehouse import NoWarehouse, warehouse_at
from local.smoke import cleanup, parts, smoke_command, steps
from local.smoke.redshift_assumptions import ASSUMPTIONS
from local.smoke.smoke_command import CLEAN_UP, STEPS, failures, prove
from local.smoke.steps import SmokeStep, StepOutcome, StepResult, Subject
from local.stores import warehouse_of
from tests.support.aws_stack import token_of
from tests.support.smoke_faults import Answer, Fault, becomes, with_
from tests.support.smoke_world import MODULES, World

Change = Callable[[Any], Any]


class FaultyApi:
    """The world's API. While the faulty step runs, the answer to one request is changed."""

    def __init__(self, world: World, user: str) -> None:
        self.world, self.token = world, token_of(user)
        self.step, self.faults = "", dict[str, tuple[str, Callable[[int, Any], Answer]]]()

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        status, answer = self.world.call(method, path, body)
        start, change = self.faults.get(self.step, ("-", None))
        return change(status, answer) if change and f"{method} {path}".startswith(start) else (status, answer)


@dataclass
class Bench:
    world: World
    subject: Subject
    api: FaultyApi

    def run(self) -> list[StepResult]:
        return prove(self.subject, [SmokeStep(each.name, self._noted(each), each.needs) for each in STEPS])

    def _noted(self, step: SmokeStep) -> Callable[[Subject], str]:
        @functools.wraps(step.prove)
        def noted(subject: Subject) -> str:
            self.api.step = step.name
            return step.prove(subject)

        return noted


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    world = World()
    subject = Subject(world.stack)
    monkeypatch.setattr(steps, "SECONDS_MAX", dict.fromkeys(steps.SECONDS_MAX, 0.01))
    monkeypatch.setattr(steps, "LAPTOP_PAUSE_SECONDS", 0)
    api = FaultyApi(world, subject.name)
    monkeypatch.setattr(parts, "Api", lambda *_, **__: api)
    monkeypatch.setattr(cleanup, "LAPTOP_QUIET_SECONDS", 0)
    rows = SimpleNamespace(rows=lambda sql: world.assumptions.get(sql, [{"events": world.rows}]))
    monkeypatch.setattr("analytics.warehouse.warehouse.warehouse_at", lambda url, **_: rows)
    return Bench(world, subject, api)


def result_of(results: list[StepResult], name: str) -> StepResult:
    return next(each for each in results if each.name == name)


def test_a_good_deployment_passes_and_keeps_nothing(bench: Bench) -> None:
    results = bench.run()
    assert [each.outcome for each in results] == [StepOutcome.OK] * (len(STEPS) + 1), results
    assert {name: items for name, items in bench.world.items.items() if items} == {}
    assert [key for key in bench.world.objects if not key.startswith("raw/")] == []


# The answer to requests that start so, while the step runs; and what becomes of it.
def results(**values: Any) -> Callable[[int, Any], Answer]:
    return lambda status, before: (status, {"results": [each | values for each in before["results"]]})


API_FAULTS: list[Fault] = [
    *(fault for module in MODULES for fault in module.FAULTS),
    ("sign-in", "GET /v1/health", becomes(503)),
    ("sign-in", "GET /v1/users", becomes(401)),
    ("sign-in", "GET /v1/users", with_(balance=5)),
    ("HTTP door", "POST /v1/events", becomes(403)),
    ("HTTP door", "POST /v1/events", results(status="rejected")),
    ("Kinesis door", "GET /v1/users", with_(active_days=0)),
    ("Kinesis door", "GET /v1/users", lambda s, a: (s, {"events": [1] * 4} if "events" in a else a)),
    ("duplicates", "POST /v1/events", results(status="accepted")),
    ("duplicates", "POST /v1/events", results(event_id="another")),
    ("conflict", "POST /v1/events", results(status="duplicate")),
    ("streak", "GET /v1/users", with_(current_streak=3)),
    ("late events", "POST /v1/events", results(status="rejected")),
    ("late events", "GET /v1/users", with_(current_streak=2)),
    ("late events", "GET /v1/users", with_(balance=40)),
    ("late events", "GET /v1/users", lambda s, a: (s, {"entries": []} if "entries" in a else a)),
    ("redemption", "POST /v1/users", becomes(500)),
    ("redemption", "POST /v1/users", with_(balance=50)),
    ("redemption", "POST /v1/users", with_(duplicate=False)),
    ("redemption", "GET /v1/users", with_(balance=50)),
    ("overdraft", "POST /v1/users", becomes(201, {"balance": -1})),
    ("overdraft", "POST /v1/users", becomes(409, {"error": {"code": "conflict"}})),
    ("overdraft", "GET /v1/users", lambda s, a: (s, a | {"entries": []} if "entries" in a else a)),
    ("webhook", "POST /v1/leads/events", becomes(422)),
    ("webhook", "POST /v1/leads/events", with_(accepted=0)),
    ("webhook", "GET /v1/leads?", becomes(404)),
    ("webhook", "GET /v1/leads/", with_(events=[1, 1])),
    ("features", "GET /v1/leads/", with_(features={"monetary_total": 23.54})),
]


@pytest.mark.parametrize(
    ("step", "start", "change"), API_FAULTS, ids=lambda each: each if type(each) is str else ""
)
def test_a_wrong_answer_fails_the_step_that_sees_it(
    bench: Bench, step: str, start: str, change: Callable[[int, Any], Answer]
) -> None:
    bench.api.faults[step] = (start, change)
    found = bench.run()
    assert failures(found) == [step], found
    assert result_of(found, "clean-up").outcome is StepOutcome.OK
    assert {name: items for name, items in bench.world.items.items() if items} == {}


def no_object(world: World) -> None:
    world.objects = Forgetful()


class Forgetful(dict[str, bytes]):
    """A bucket that raw objects never reach."""

    def __setitem__(self, key: str, value: bytes) -> None:
        if not key.startswith("raw/"):
            super().__setitem__(key, value)


def refuse(world: World) -> Any:
    return {"FailedRecordCount": 1, "Records": [{"ErrorCode": "ProvisionedThroughputExceededException"}]}


WORLD_FAULTS: list[tuple[str, Callable[[World], object]]] = [
    ("Kinesis door", lambda w: setattr(w.stack.client("kinesis"), "put_records", lambda **_: refuse(w))),
    ("lake", no_object),
    ("nightly run", lambda world: setattr(world, "execution", "FAILED")),
    ("nightly run", lambda world: setattr(world, "error", {"Cause": "Load"})),
    ("warehouse", lambda world: setattr(world, "rows", 0)),
    ("warehouse", lambda world: setattr(world, "rows", 2)),
    (
        "redshift",
        lambda world: world.assumptions.update({ASSUMPTIONS[0].sql: [{"v": "2026-01-31 23:59:59.123"}]}),
    ),
    ("alarms", lambda world: world.alarms.update(ApiServerErrors="ALARM")),
    ("clean-up", lambda world: world.functions.update(Leads={"left": 1})),
    ("clean-up", lambda world: world.functions.update(Leads={"errorMessage": "no database"})),
]


@pytest.mark.parametrize(("step", "plant"), WORLD_FAULTS, ids=lambda each: each if type(each) is str else "")
def test_a_missing_effect_fails_the_step_that_waits_for_it(
    bench: Bench, step: str, plant: Callable[[World], object]
) -> None:
    plant(bench.world)
    assert failures(bench.run()) == [step]


def test_every_step_has_a_fault_and_a_promise() -> None:
    assert all(each.promise for each in (*STEPS, CLEAN_UP))
    planted = {step for step, *_ in (*API_FAULTS, *WORLD_FAULTS)}
    assert planted == {each.name for each in (*STEPS, CLEAN_UP)}


def test_the_warehouse_is_the_function_s_and_the_data_api_this_command_s(bench: Bench) -> None:
    url = "redshift://group/base?secret_arn=arn:secret"
    told = {"Environment": {"Variables": {"WAREHOUSE_URL": url}}}
    clients: Any = bench.world.stack
    clients.clients["lambda"] = SimpleNamespace(get_function_configuration=lambda **_: told)
    clients.clients["redshift-data"] = data_api = object()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analytics.warehouse.warehouse.warehouse_at", warehouse_at)
        found = warehouse_of(bench.subject.stack)
    assert found == RedshiftWarehouse(data_api, "group", "base", "arn:secret")


def test_a_new_alarm_without_data_is_no_failure(bench: Bench) -> None:
    bench.world.alarms["ApiServerErrors"] = "INSUFFICIENT_DATA"
    found = bench.run()
    assert failures(found) == []
    assert result_of(found, "alarms").seen == "0 alarms OK, 1 without data yet"


def test_what_needs_a_failed_step_is_skipped_and_says_so(bench: Bench) -> None:
    bench.api.faults["streak"] = ("GET /v1/users", with_(current_streak=9))
    found = bench.run()
    skipped = {each.name: each.seen for each in found if each.outcome is StepOutcome.SKIPPED}
    assert skipped["late events"] == "needs: streak"
    assert {"redemption", "overdraft", "lake", "nightly run", "warehouse"} < skipped.keys()
    assert result_of(found, "features").outcome is StepOutcome.OK


def test_what_is_not_deployed_is_skipped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    del bench.world.stack.outputs["EventsStreamName"]
    bench.world.stack.client("cloudformation").get_paginator = lambda _: SimpleNamespace(
        paginate=lambda **_: []
    )
    monkeypatch.setattr("analytics.warehouse.warehouse.warehouse_at", lambda url, **_: NoWarehouse())
    found = bench.run()
    assert failures(found) == []
    assert [each.name for each in found if each.outcome is StepOutcome.SKIPPED] == [
        "Kinesis door",
        "warehouse",
        "redshift",
        "alarms",
    ]
    assert "not deployed" in result_of(found, "Kinesis door").seen


def test_an_interrupted_test_cleans_up(bench: Bench) -> None:
    def interrupt(_: int, __: Any) -> Answer:
        raise KeyboardInterrupt

    bench.api.faults["streak"] = ("GET /v1/users", interrupt)
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    assert bench.world.items["BPEvents"] == []


def test_a_clean_up_that_may_not_delete_says_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DeleteItem")

    monkeypatch.setattr(bench.world.stack.client("dynamodb"), "delete_item", refused)
    found = bench.run()
    assert failures(found) == ["clean-up"]
    assert "these credentials may not do DeleteItem" in result_of(found, "clean-up").seen


def test_effects_that_come_late_are_removed_too(bench: Bench) -> None:
    """The features of the lead are written after the first sweep, when its claim is gone already."""
    tables: Any = bench.world.stack.client("dynamodb")
    forget, late = tables.delete_item, [{"lead_organization_id": {"S": "lead-1"}}]

    def delete(TableName: str, Key: Any) -> None:  # noqa: N803
        forget(TableName, Key)
        if TableName == "IdempotencyKeys" and late:
            bench.world.items["Memory"].append({**late.pop(), "memory_type#key": {"S": "x"}})

    tables.delete_item = delete
    assert failures(bench.run()) == []
    assert bench.world.items["Memory"] == []
    names = [name for module in MODULES for name in module.NAMES]
    assert not any(each in str(bench.world.items) for each in names)


def test_the_table_and_the_document_say_the_same(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.api.faults["conflict"] = ("POST /v1/events", results(status="duplicate"))
    found = bench.run()
    monkeypatch.setattr(smoke_command, "prove", lambda _: found)
    capsys.readouterr()
    assert not smoke_command.smoke(bench.world.stack, as_json=True)
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert "smoke failed: conflict" in err
    assert not document["ok"]
    assert not smoke_command.smoke(bench.world.stack)
    lines = capsys.readouterr().out.splitlines()
    for step, line in zip(document["steps"], lines[1:], strict=False):
        assert line.startswith(f"{step['step']:<14}{step['outcome']}")
        assert line.endswith(step["seen"])
    assert lines[-2].endswith(", 1 failed, 0 skipped")
    assert lines[-1] == "not kept by conflict: A key that was used for another body is refused."
