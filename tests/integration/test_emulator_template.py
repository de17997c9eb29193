"""The emulator is told how each condition turns out, as CloudFormation would find it."""

import json
import re
from typing import Any

import pytest

from infra.intrinsics import Refusal
from infra.stacks import resolve_stacks
from infra.template_text import parse
from local.cloud.deployment import ACCOUNT, as_json, conditions, emulator_template
from tests.support.template import ROOT

TEXT = (ROOT / "template.yaml").read_text()
SECRET = "arn:aws:secretsmanager:us-east-1:000000000000:secret:mine-a1b2c3"
PARAMETERS: tuple[dict[str, str], ...] = (
    {},
    {"Size": "large"},
    {"RedisUrl": "redis://x", "IdentityUrl": SECRET, "Settings": "A=1"},
    {"AvailabilityZones": "a,b,c", "OwnWarehouse": "none"},
)


@pytest.mark.parametrize("given", PARAMETERS)
def test_conditions_are_those_of_the_emulator_s_account(given: dict[str, str]) -> None:
    held = resolve_stacks({**given, "AWS::AccountId": ACCOUNT})["/"].conditions
    assert not held["OnAws"]
    assert conditions(parse(TEXT), given) == {
        name: {"Fn::Equals": ["true", "true" if each else "false"]} for name, each in held.items()
    }


def test_nothing_else_but_policies_and_the_gradual_deployment_is_changed() -> None:
    given = {"Size": "large", "GradualDeployment": "false"}
    before, after = parse(TEXT), json.loads(emulator_template(TEXT, given))
    for each in (before, after):
        for resource in each["Resources"].values():
            resource["Properties"].pop("Policies", None)
    assert after.pop("Conditions") == conditions(before, given)
    del before["Conditions"]
    for name, value in given.items():
        before["Parameters"][name]["Default"] = value
    assert after == before


def policies(statements: str) -> Any:
    """What becomes of a function's statements."""
    function = f"{{Type: AWS::Serverless::Function, Properties: {{Policies: [{{Statement: {statements}}}]}}}}"
    resources = (
        f"{{Key: {{Type: AWS::SecretsManager::Secret}}, Queue: {{Type: AWS::SQS::Queue}}, F: {function}}}"
    )
    parameters = "{GradualDeployment: {Type: String, Default: 'true'}}"
    made = json.loads(
        emulator_template(f"{{Parameters: {parameters}, Conditions: {{}}, Resources: {resources}}}", {})
    )
    return made["Resources"]["F"]["Properties"]["Policies"][0]["Statement"]


def test_a_call_is_allowed_by_its_own_name_too() -> None:
    assert policies("[{Action: [sqs:SendMessage, sqs:ReceiveMessage], Resource: x}]") == [
        {"Action": ["sqs:SendMessage", "sqs:ReceiveMessage"], "Resource": "x"},
        {"Action": "sqs:SendMessageBatch", "Resource": "x"},
    ]
    assert policies("[{Action: dynamodb:PartiQLInsert, Resource: x}]")[1:] == [
        {"Action": "dynamodb:BatchExecuteStatement", "Resource": "*"}
    ]
    assert policies("[{Action: [sqs:ReceiveMessage], Resource: x}]") == [
        {"Action": ["sqs:ReceiveMessage"], "Resource": "x"}
    ]


def test_a_secret_is_allowed_by_its_arn() -> None:
    arn = {"Fn::Sub": "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${Key}-*"}
    statement = "{Action: secretsmanager:GetSecretValue, Resource: !Ref Key}"
    allowed = {"Action": "secretsmanager:GetSecretValue", "Resource": arn}
    assert policies(f"[{statement}]") == [allowed]
    assert policies(f"[!If [Has, {statement}, !Ref Queue]]") == [
        {"Fn::If": ["Has", allowed, {"Ref": "Queue"}]}
    ]


def test_a_nested_template_is_the_same_as_json() -> None:
    nested = (ROOT / "infra" / "observability.yaml").read_text()
    assert json.loads(as_json(nested)) == parse(nested)


@pytest.mark.parametrize("name", ["Conditions", "Parameters"])
def test_what_is_to_be_changed_must_be_there(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"the built template has no '{name}'"):
        emulator_template(re.sub(rf"(?m)^( *){name}:", r"\1Other:", TEXT), {"GradualDeployment": "false"})


def test_what_the_template_does_not_take_is_refused_as_cloudformation_does() -> None:
    with pytest.raises(Refusal, match="there is no parameter OnAws"):
        emulator_template(TEXT, {"OnAws": "false"})
