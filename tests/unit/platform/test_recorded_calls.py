"""What tests/support/calls.py notes: functions' own calls, under the names of their variables, and nobody else's."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import botocore.session
import pytest

from adapters.platform.objects import FolderObjects
from tests.support import calls
from tests.support.parts import modules_of_parts
from tests.support.permitted_calls import faults
from tests.support.template import stacks_of

FAILURES = "https://sqs.us-east-1.amazonaws.com/1/failures"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FAILURE_QUEUE_URL", FAILURES)
    calls.seen()
    yield
    calls.seen()


def client(service: str) -> Any:
    """A client that gets an empty answer to whatever it asks, without a socket."""
    made = botocore.session.get_session().create_client(
        service, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    answer: Any = lambda **_: (SimpleNamespace(status_code=200), {})  # noqa: E731 (botocore types it as None)
    made.meta.events.register("before-call", answer)
    return made


def run(module: str, code: str, **known: Any) -> dict[str, set[str]]:
    """Run code as a function of a module would, and return what is noted."""
    lines = "\n    ".join(code.splitlines())
    names: dict[str, Any] = {"__name__": module, **known}
    exec(f"def planted():\n    {lines}", names)
    names["planted"]()
    return calls.seen()


@pytest.mark.parametrize(
    ("module", "service", "code", "noted"),
    [
        (
            "analytics.steps.reconcile_function",
            "redshift-serverless",
            "get_namespace(namespaceName='name')",
            {"redshift-serverless:GetNamespace"},
        ),
        (
            "processors.engagement",
            "dynamodb",
            "get_item(TableName='UserStreaks', Key={'user_id': {'S': 'u'}})",
            {"dynamodb:GetItem USER_STREAKS_TABLE"},
        ),
        (
            "processors.engagement",
            "dynamodb",
            "scan(TableName='UserStreaks-7', IndexName='ByRank')",
            {"dynamodb:Scan USER_STREAKS_TABLE/index/ByRank"},
        ),
        (
            "processors.engagement",
            "dynamodb",
            "get_item(TableName='Rewards', Key={'holder': {'S': 'q'}})",
            {"dynamodb:GetItem Rewards"},
        ),
        (
            "processors.engagement",
            "dynamodb",
            "transact_write_items(TransactItems=[{'ConditionCheck': {'TableName': 'UserStreaks', 'Key': {}, 'ConditionExpression': 'a'}}, {'Put': {'TableName': 'RewardsLedger', 'Item': {}}}])",
            {"dynamodb:ConditionCheckItem USER_STREAKS_TABLE", "dynamodb:PutItem REWARDS_LEDGER_TABLE"},
        ),
        (
            "ingest.engagement.events_api",
            "dynamodb",
            "execute_statement(Statement='INSERT INTO \"IdempotencyKeys\" VALUE {}')",
            {"dynamodb:PartiQLInsert IDEMPOTENCY_KEYS_TABLE"},
        ),
        (
            "ingest.leads.lead_consumer",
            "dynamodb",
            "put_item(TableName='Erasures', Item={'part': {'S': 'journal'}})",
            {"dynamodb:PutItem ERASURES_TABLE[journal]"},
        ),
        (
            "ingest.engagement.users_api",
            "dynamodb",
            "update_item(TableName='RuleBooks', Key={'book': {'S': 'amnesties'}})",
            {"dynamodb:UpdateItem RULE_BOOKS_TABLE[amnesties]"},
        ),
        (
            "analytics.steps.curate_large_function",
            "s3",
            "put_object(Bucket='lake', Key='runs/r1/without_raw/events-1.json', IfMatch='x')",
            {
                "s3:PutObject LAKE_BUCKET/runs/*/without_raw/*",
                "s3:GetObject LAKE_BUCKET/runs/*/without_raw/*",
            },
        ),
        (
            "analytics.steps.forget_function",
            "s3",
            "delete_objects(Bucket='lake', Delete={'Objects': [{'Key': 'raw/a/b', 'VersionId': '1'}]})",
            {"s3:DeleteObjectVersion LAKE_BUCKET/raw/*"},
        ),
        (
            "ingest.privacy_api",
            "s3",
            "generate_presigned_url('get_object', Params={'Bucket': 'payloads', 'Key': 'exports/1'})",
            {"s3:GetObject PAYLOAD_BUCKET/exports/*"},
        ),
        (
            "processors.engagement",
            "sqs",
            f"send_message_batch(QueueUrl='{FAILURES}', Entries=[])",
            {"sqs:SendMessage FAILURE_QUEUE_URL"},
        ),
        (
            "ingest.endpoints_api",
            "secretsmanager",
            "create_secret(Name='streakline/endpoints/1')",
            {"secretsmanager:CreateSecret ENDPOINT_SECRET_PREFIX"},
        ),
        *(case for module in modules_of_parts("calls") for case in module.NOTED),
        ("analytics.recompute.recompute", "s3", "get_object(Bucket='lake', Key='raw/x')", None),
    ],
    ids=lambda each: each if isinstance(each, str) else "",  # a set is spelled in another order each time
)
def test_a_call_is_noted_for_the_function_whose_code_makes_it(
    module: str, service: str, code: str, noted: set[str] | None
) -> None:
    expected = {calls.HANDLERS[module]: noted} if noted else {}
    assert run(module, f"client.{code}", client=client(service)) == expected


def test_a_call_that_a_test_makes_for_a_function_is_nobody_s() -> None:
    def double() -> None:
        client("s3").get_object(Bucket="lake", Key="raw/x")

    assert run("analytics.steps.curate_function", "double()", double=double) == {}


def test_a_function_s_threads_are_its_own() -> None:
    code = "with Pool() as pool:\n    pool.submit(s3.get_object, Bucket='lake', Key='raw/x').result()"
    noted = run("analytics.steps.curate_function", code, Pool=ThreadPoolExecutor, s3=client("s3"))
    assert noted == {"CurateFunction": {"s3:GetObject LAKE_BUCKET/raw/*"}}


def test_a_folder_stands_for_its_bucket(tmp_path: Path) -> None:
    code = "lake.put('state/heads.json', b'')\nlake.put_if('runs/r/x', b'', None)\nlist(lake.list(''))\nlake.delete(['runs/r/x'])"
    noted = run("analytics.steps.reconcile_function", code, lake=FolderObjects(tmp_path))
    assert noted == {
        "ReconcileFunction": {
            *("s3:PutObject LAKE_BUCKET/state/heads.json", "s3:PutObject LAKE_BUCKET/runs/*"),
            *(
                "s3:GetObject LAKE_BUCKET/runs/*",
                "s3:ListBucket LAKE_BUCKET",
                "s3:DeleteObject LAKE_BUCKET/runs/*",
            ),
        }
    }


def test_what_is_not_known_yet_is_told_and_written_if_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "FILE", tmp_path / "calls.json")
    calls.FILE.write_text(json.dumps({"A": ["s3:GetObject LAKE_BUCKET/raw/*"]}))
    found = {"A": {"s3:GetObject LAKE_BUCKET/raw/*", "s3:ListBucket LAKE_BUCKET"}, "B": {"sqs:SendMessage"}}
    lacking = {"A": ["s3:ListBucket LAKE_BUCKET"], "B": ["sqs:SendMessage"]}
    monkeypatch.delenv("CALLS", raising=False)
    assert calls.unknown(found) == lacking
    monkeypatch.setenv("CALLS", "write")
    assert calls.unknown(found) == {}
    assert calls.known() == {name: sorted(each) for name, each in found.items()}


def test_an_object_below_a_folder_with_any_object_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "FILE", tmp_path / "calls.json")
    calls.FILE.write_text(
        json.dumps({"A": ["s3:GetObject LAKE_BUCKET/state/*", "s3:ListBucket LAKE_BUCKET"]})
    )
    monkeypatch.delenv("CALLS", raising=False)
    assert calls.unknown({"A": {"s3:GetObject LAKE_BUCKET/state/unloaded/*"}}) == {}
    for other in (
        "s3:PutObject LAKE_BUCKET/state/x",
        "s3:GetObject LAKE_BUCKET/states/*",
        "s3:GetObject LAKE_BUCKET/*",
    ):
        assert calls.unknown({"A": {other}}) == {"A": [other]}


def test_what_every_night_on_aws_would_have_failed_at_is_seen_and_refused() -> None:
    """A client of redshift-serverless in the steps of a function whose network has no endpoint of it."""
    code = "client.get_namespace(namespaceName='name')"
    noted = run("analytics.steps.reconcile_function", code, client=client("redshift-serverless"))
    found = {name: sorted(each) for name, each in noted.items()}
    assert [*faults(stacks_of("standard")["/"], found)] == [
        "ReconcileFunction calls redshift-serverless:GetNamespace: its role does not allow it",
        "ReconcileFunction calls redshift-serverless:GetNamespace: its network has no endpoint of redshift-serverless",
    ]
