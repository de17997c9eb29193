"""The runbook's way to redrive on AWS: its block is run as it stands, SQS and DynamoDB by moto."""

import json
import re
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.operate.redrive import CONSUMERS
from tests.support.template import ROOT

RUNBOOK = (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
KEYS = {"user_id": "HASH", "event_id": "RANGE"}
STORED: Any = {"user_id": {"S": "USER_ID"}, "event_id": {"S": "EVENT_ID"}, "points_awarded": {"N": "10"}}


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stack whose functions answer that all is well; `invoked` has what they were asked."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws():
        sqs, dynamodb, real = boto3.client("sqs"), boto3.client("dynamodb"), boto3.client
        schema: Any = [{"AttributeName": name, "KeyType": kind} for name, kind in KEYS.items()]
        types: Any = [{"AttributeName": name, "AttributeType": "S"} for name in KEYS]
        dynamodb.create_table(
            TableName="BP_EVENTS_TABLE",
            KeySchema=schema,
            AttributeDefinitions=types,
            BillingMode="PAY_PER_REQUEST",
        )
        dynamodb.put_item(TableName="BP_EVENTS_TABLE", Item=STORED)
        outputs = {f"{function}FunctionName": function for function, _ in CONSUMERS.values()}
        for _, queue in CONSUMERS.values():
            outputs[f"{queue}FailuresUrl"] = sqs.create_queue(QueueName=queue)["QueueUrl"]
        invoked: list[tuple[str, Any]] = []

        def invoke(FunctionName: str, Payload: bytes) -> Any:  # noqa: N803 (Lambda's names)
            invoked.append((FunctionName, json.loads(Payload)))
            return {"Payload": SimpleNamespace(read=lambda: b'{"batchItemFailures": []}')}

        listed = [{"OutputKey": name, "OutputValue": value} for name, value in outputs.items()]
        ours = {
            "cloudformation": SimpleNamespace(describe_stacks=lambda **_: {"Stacks": [{"Outputs": listed}]}),
            "lambda": SimpleNamespace(invoke=invoke),
        }
        monkeypatch.setattr(boto3, "client", lambda name, **more: ours.get(name) or real(name, **more))
        yield SimpleNamespace(outputs=outputs, invoked=invoked, sqs=sqs)


def test_a_message_made_by_hand_is_listed_and_sent(stack: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (message,) = re.findall(r"```json\n(.*?)```", RUNBOOK, re.DOTALL)
    stack.sqs.send_message(QueueUrl=stack.outputs["EngagementFailuresUrl"], MessageBody=message)
    block = re.findall(r"^```python\n(.*?)^```", RUNBOOK, re.DOTALL | re.MULTILINE)[0]
    session: dict[str, Any] = {}
    exec(block, session)  # the document's own words
    assert "'reason': 'by hand'" in capsys.readouterr().out
    assert stack.invoked == []
    assert session["redrive"](session["stack"]) == {"redriven": 1, "left": []}
    ((function, payload),) = stack.invoked
    assert (function, payload["streakline_redrive"]) == ("Engagement", True)
    assert payload["Records"][0]["dynamodb"]["NewImage"] == STORED
    assert session["redrive"](session["stack"], only_list=True) == {"redriven": 0, "left": []}
