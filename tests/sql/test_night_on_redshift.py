"""A night's functions as AWS runs them: their settings name a workgroup, which they ask by its APIs."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from adapters import clock
from adapters.platform.aws import client
from adapters.platform.objects import FolderObjects
from analytics.steps import reconcile_function, warehouse_function
from analytics.warehouse import redshift_warehouse
from tests.sql.conftest import ROLE, Databases
from tests.sql.test_function import OF_EVENTS, working
from tests.support.data_api import DataApi, serving
from tests.support.engine import running
from tests.support.gateway import CONTEXT
from tests.support.lake_story import Story

SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:admin-a1b2c3"
WORKGROUP = "arn:aws:redshift-serverless:us-east-1:123456789012:workgroup/5f7c"
EVENT = {"run_id": "r1", "tasks_key": "runs/r1/tasks.json"}


class Workgroup(DataApi):
    """Its other API, too, which is asked for limits. limits: what was done to them."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.limits: list[str] = []

    def answer(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        if action.endswith("UsageLimits"):
            limit = {"usageLimitId": "1", "period": "daily", "amount": 1, "breachAction": "log"}
            return {"usageLimits": [limit] * bool(self.limits)}
        if action.endswith("UsageLimit"):
            self.limits.append(action)
            return {}
        return super().answer(action, request)


@pytest.fixture
def workgroup(tmp_path: Path, databases: Databases, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workgroup]:
    lake = FolderObjects(tmp_path / "lake")
    api = Workgroup(databases.new(), "s3://lake", lake)
    monkeypatch.setattr(clock, "now", lambda: datetime(2026, 3, 9, 2, 30, tzinfo=UTC))
    for module in (warehouse_function, reconcile_function):
        monkeypatch.setattr(module, "S3Objects", lambda *_: lake)
    monkeypatch.setattr("analytics.warehouse.warehouse.objects_at", lambda _: lake)
    monkeypatch.setattr(redshift_warehouse, "POLL_SECONDS_MAX", 0.01)
    monkeypatch.setattr(warehouse_function, "grant_analysts", lambda _: None)  # PostgreSQL has no svv_roles
    with serving(api) as url, running() as engine:
        settings = {
            **engine.environment(),
            "AWS_ENDPOINT_URL_REDSHIFT_DATA": url,
            "AWS_ENDPOINT_URL_REDSHIFT_SERVERLESS": url,
            "WAREHOUSE_URL": f"redshift://workgroup/dev?secret_arn={SECRET}",
            "WAREHOUSE_WORKGROUP_ARN": WORKGROUP,
            "COPY_ROLE_ARN": ROLE,
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        client.cache_clear()
        warehouse_function._parts.cache_clear()
        reconcile_function._parts.cache_clear()
        yield api
        warehouse_function._parts.cache_clear()
        reconcile_function._parts.cache_clear()
        client.cache_clear()


def test_the_functions_load_build_and_ask(workgroup: Workgroup, monkeypatch: pytest.MonkeyPatch) -> None:
    working(monkeypatch, *OF_EVENTS, "marts.lead_quality")
    places = Story(days=2).first_part().write(workgroup.objects)
    tasks = [{"entity": each.entity, "dt": each.dt, "hour": each.hour} for each in places]
    workgroup.objects.put(EVENT["tasks_key"], json.dumps(tasks).encode())
    assert warehouse_function.handler(EVENT, CONTEXT) == {"run_id": "r1", "left": 0, "failed": 0}
    assert workgroup.limits == ["CreateUsageLimit"]
    warehouse_function._parts.cache_clear()  # another process: the limit is another one
    assert warehouse_function.handler(EVENT, CONTEXT)["left"] == 0
    assert workgroup.limits == ["CreateUsageLimit", "UpdateUsageLimit"]

    asked = len(workgroup.calls)
    report = {"step": "report", "error": "users are compared elsewhere"}
    answer = reconcile_function.handler({**EVENT, **report}, CONTEXT)
    report = json.loads(workgroup.objects.get(answer["reports"][0]))
    assert report["warehouse"]["unread"] is None
    actions = {action for action, _ in workgroup.calls[asked:]}
    assert actions == {"BatchExecuteStatement", "DescribeStatement", "GetStatementResult"}
    assert {request["SecretArn"] for action, request in workgroup.calls if action.startswith("Batch")} == {
        SECRET
    }
