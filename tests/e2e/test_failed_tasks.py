"""One partition whose curation fails, or ends its function, holds back nothing else; later runs make it good."""

import io
import json
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from analytics.lake.layout import Partition
from local.paths import ROOT, WAREHOUSE
from local.stack import Stack

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")

DT = "2025-05-05"
DAMAGED, SOUND = (Partition("events", DT, hour) for hour in ("10", "11"))
# Stands for both curating functions: a task of one date raises, one of another ends the process.
FUNCTION = """
import json, os, urllib.request

def handler(event, context):
    tasks = event.get("tasks") or [event.get("task")]
    step = event.get("step")
    if step == "give_up":
        return put(f"given-up-{event['task']['dt']}", event)
    left = []
    for task in tasks:
        if task["dt"] == "kills":
            os._exit(137)
        if task["dt"] == "raises" and step:
            left.append(task)
        elif task["dt"] == "raises":
            raise ValueError("it always fails")
        else:
            put(f"done-{task['dt']}-{os.environ['SIZE']}", event)
    return {**event, "tasks": left}

def put(key, event):
    import botocore.session
    s3 = botocore.session.get_session().create_client("s3")
    s3.put_object(Bucket=os.environ["BUCKET"], Key=f"told/{event['run_id']}/{key}", Body=json.dumps(event))
    return {}
"""


@pytest.fixture
def curation(stack: Stack) -> Iterator[str]:
    """A state machine of the nightly run's curation alone, over functions that fail as they are told."""
    functions, states, iam = (stack.client(name) for name in ("lambda", "stepfunctions", "iam"))
    name, bucket = f"failing-{time.time_ns()}", stack.outputs["LakeBucketName"]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("index.py", FUNCTION)
    trusted = {"Service": ["lambda.amazonaws.com", "states.amazonaws.com"]}
    role = iam.create_role(
        RoleName=name,
        AssumeRolePolicyDocument=json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Principal": trusted, "Action": "sts:AssumeRole"}],
            }
        ),
    )["Role"]["Arn"]
    allowed = {"Effect": "Allow", "Action": ["lambda:*", "s3:*", "states:*", "logs:*"], "Resource": "*"}
    iam.put_role_policy(
        RoleName=name,
        PolicyName="all",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [allowed]}),
    )
    given = functions.get_function_configuration(FunctionName=stack.outputs["CurateFunctionName"])
    arns = {
        size: functions.create_function(
            FunctionName=f"{name}-{size}",
            Runtime=given["Runtime"],
            Layers=[each["Arn"] for each in given["Layers"]],
            Handler="index.handler",
            Role=role,
            Code={"ZipFile": packed.getvalue()},
            Timeout=20,
            Environment={"Variables": {"BUCKET": bucket, "SIZE": size}},
        )["FunctionArn"]
        for size in ("ordinary", "large")
    }
    text = (ROOT / "infra" / "nightly.asl.json").read_text()
    for mark, value in {
        "Partition": "aws",
        "LakeBucket": bucket,
        "CurateConcurrency": "2",
        "Curate": arns["ordinary"],
        "CurateLarge": arns["large"],
    }.items():
        text = text.replace(f"${{{mark}}}", value)
    curate = json.loads(text)["States"]["Curate"] | {"End": True}
    del curate["Next"], curate["Catch"]
    definition = json.dumps({"StartAt": "Curate", "States": {"Curate": curate}})
    machine = states.create_state_machine(name=name, definition=definition, roleArn=role)["stateMachineArn"]
    yield machine
    states.delete_state_machine(stateMachineArn=machine)
    for arn in arns.values():
        functions.delete_function(FunctionName=arn)
    iam.delete_role_policy(RoleName=name, PolicyName="all")
    iam.delete_role(RoleName=name)


def batch(run_id: str, *names: str, large: bool = False) -> dict[str, Any]:
    tasks = [{"entity": "events", "dt": name, "hour": None} for name in names]
    return {"run_id": run_id, "tasks": tasks, "rebuild": False, "large": large}


def test_a_task_that_raises_and_one_that_ends_its_function_are_given_up_alone(
    stack: Stack, curation: str
) -> None:
    states, s3, bucket = stack.client("stepfunctions"), stack.client("s3"), stack.outputs["LakeBucketName"]
    run_id = f"failing-{time.time_ns()}"
    batches = [
        batch(run_id, "a", "raises", "b"),
        batch(run_id, "c", "kills", "d"),
        batch(run_id, "e", large=True),
        batch(run_id, "f"),
    ]
    key = f"told/{run_id}/batches.json"
    s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(batches).encode())
    execution = states.start_execution(
        stateMachineArn=curation, input=json.dumps({"plan": {"batches_key": key}})
    )["executionArn"]
    deadline = time.monotonic() + 300
    while (found := states.describe_execution(executionArn=execution))["status"] == "RUNNING":
        assert time.monotonic() < deadline
        time.sleep(0.3)
    assert found["status"] == "SUCCEEDED", found
    told = {
        each["Key"].rpartition("/")[2]
        for each in s3.list_objects_v2(Bucket=bucket, Prefix=f"told/{run_id}/")["Contents"]
    }
    assert told == {
        "batches.json",
        *("done-a-ordinary", "done-b-ordinary", "done-f-ordinary"),
        *("done-c-ordinary", "done-c-large", "done-d-large"),
        "done-e-large",
        *("given-up-raises", "given-up-kills"),
    }
    body = s3.get_object(Bucket=bucket, Key=f"told/{run_id}/given-up-raises")["Body"].read()
    assert "it always fails" in json.loads(body)["error"]["Cause"]


def counted(dt: str) -> dict[str, int]:
    with duckdb.connect(str(WAREHOUSE), read_only=True) as db:
        rows = db.execute(
            "SELECT hour, quarantined::BIGINT FROM lake.curation WHERE entity = 'events' AND dt = CAST(? AS DATE)",
            [dt],
        ).fetchall()
    return dict(rows)
