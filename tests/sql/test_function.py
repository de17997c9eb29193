"""The warehouse function's steps, as the state machine calls them: run twice, on the lake's folder."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.platform.objects import FolderObjects
from analytics.steps import warehouse_function
from rules.lake.entities import ENTITIES
from tests.support.lake_story import Story

CONTEXT = SimpleNamespace(
    function_name="warehouse",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:x",
    aws_request_id="1",
)


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderObjects:
    monkeypatch.setenv("LAKE_BUCKET", "lake")
    monkeypatch.setenv("WAREHOUSE_URL", f"duckdb:{tmp_path}/w.duckdb")
    monkeypatch.setenv("COPY_ROLE_ARN", "")
    monkeypatch.setenv("WAREHOUSE_WORKGROUP_ARN", "")
    monkeypatch.setenv("WAREHOUSE_DAILY_RPU_HOURS", "4")
    objects = FolderObjects(tmp_path / "lake")
    monkeypatch.setattr("analytics.steps.warehouse_function.objects_at", lambda _: objects)
    monkeypatch.setattr("analytics.warehouse.warehouse.objects_at", lambda _: objects)
    warehouse_function._steps.cache_clear()
    return objects


def test_a_run(objects: FolderObjects, capsys: pytest.CaptureFixture[str]) -> None:
    places = Story(days=8).first_part().write(objects)
    tasks = [{"entity": each.entity, "dt": each.dt, "hour": each.hour} for each in places]
    objects.put("runs/r1/tasks.json", json.dumps(tasks).encode())

    def step(name: str) -> dict[str, Any]:
        event = {"step": name, "run_id": "r1", "tasks_key": "runs/r1/tasks.json"}
        answer: dict[str, Any] = warehouse_function.handler(event, CONTEXT)
        return answer

    for _ in range(2):
        assert step("load")["files"].keys() == ENTITIES.keys()
        assert step("models")["models"] > 20
        assert step("tests") == {"run_id": "r1", "failures": 0, "tests_key": "runs/r1/tests.json"}
    assert json.loads(objects.get("runs/r1/tests.json")) == []
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    metrics = [line["ModelTestsFailed"] for line in lines if "ModelTestsFailed" in line]
    assert metrics == [[0.0], [0.0]]


def test_an_unknown_step(objects: FolderObjects) -> None:
    with pytest.raises(KeyError):
        warehouse_function.handler({"step": "destroy", "run_id": "r1"}, CONTEXT)
