"""`streakline smoke` on the deployed cloud: each part proven once, and nothing left but rows in the lake."""

import json
from typing import Any

import psycopg
import pytest

from local.cloud import embedded_postgres
from local.paths import LOCAL
from local.smoke.smoke_command import CLEAN_UP, STEPS
from local.smoke.steps import SmokeStep
from local.stack import Stack
from tests.e2e.conftest import printed

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")


@pytest.fixture(scope="module")
def run(stack: Stack) -> dict[str, Any]:
    """One smoke test, as an operator runs it."""
    found: dict[str, Any] = json.loads(printed("smoke", "--json"))
    return found


@pytest.mark.parametrize("step", [*STEPS, CLEAN_UP], ids=lambda step: step.name)
def test_the_promise_of_each_step_is_kept(run: dict[str, Any], step: SmokeStep) -> None:
    (found,) = (each for each in run["steps"] if each["step"] == step.name)
    assert found["promise"] == step.promise
    assert found["outcome"] == ("skipped" if step.name == "alarms" else "ok"), found  # a laptop has no alarms


def test_no_step_is_left_out(run: dict[str, Any]) -> None:
    assert [each["step"] for each in run["steps"]] == [each.name for each in (*STEPS, CLEAN_UP)]
    assert run["ok"]


def test_no_item_and_no_object_is_left(stack: Stack, run: dict[str, Any]) -> None:
    dynamodb, s3, name = stack.client("dynamodb"), stack.client("s3"), run["name"]
    for table in stack.tables.values():
        for page in dynamodb.get_paginator("scan").paginate(TableName=table):
            # An erasure that somebody else has begun notes which night has looked for the person.
            items = [
                {key: value for key, value in each.items() if key != "last_run"} for each in page["Items"]
            ]
            assert [each for each in items if name in json.dumps(each, default=str)] == [], table
    for bucket in ("PayloadBucketName", "LakeBucketName"):
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=stack.outputs[bucket]):
            keys = [each["Key"] for each in page.get("Contents", ())]
            assert [key for key in keys if name in key] == []


def test_postgresql_knows_nothing_any_more(run: dict[str, Any]) -> None:
    name = run["name"]
    password = embedded_postgres.initialise(embedded_postgres.FOLDER)["owner"]
    port = json.loads((LOCAL / "ports.json").read_text())["postgres"]
    url = embedded_postgres.url(embedded_postgres.OWNER, password, port, embedded_postgres.DATABASE)
    with psycopg.connect(url) as database:
        for table, column in (("lead_organization", "organization_id"), ("channel_identity", "external_id")):
            rows = database.execute(
                f"SELECT * FROM identity.{table} WHERE {column} LIKE %s", [f"%{name}%"]
            ).fetchall()
            assert rows == [], table
