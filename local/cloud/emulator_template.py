"""Turns a built template into one that the emulator takes.

The emulator differs from AWS in five ways:

- It expands SAM's resources with the defaults of the parameters, whatever values are given.
- It refuses the resources of CodeDeploy.
- Its conditions know no pseudo parameter, no mapping and no Fn::Join.
- It asks for the permission that has the name of the call, even where AWS asks for another one.
- Its Ref of a secret is the secret's name. On AWS it is the ARN.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from infra.intrinsics import Scope, holds, parameter_values, scalar_text
from infra.template_text import parse

ACCOUNT = "000000000000"
FUNCTION_TYPE = "AWS::Serverless::Function"
SECRET_TYPE = "AWS::SecretsManager::Secret"
BATCH_STATEMENT = "dynamodb:BatchExecuteStatement"
# The permission that AWS asks for -> the permission that the emulator asks for.
EMULATOR_ACTIONS = {
    "sns:Publish": "sns:PublishBatch",
    "sqs:SendMessage": "sqs:SendMessageBatch",
    "dynamodb:PartiQLDelete": BATCH_STATEMENT,
    "dynamodb:PartiQLInsert": BATCH_STATEMENT,
    "dynamodb:PartiQLUpdate": BATCH_STATEMENT,
}
SECRET_ARN = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${%s}-*"


def emulator_template(built: str, parameters: Mapping[str, str]) -> str:
    """Return a built template as the emulator takes it, as JSON. parameters: their values, by name.

    Raises RuntimeError for a template without a part that is to be changed, infra.intrinsics.Refusal for
    parameters that the template does not take.
    """
    template = parse(built)
    try:
        template["Parameters"]["GradualDeployment"]["Default"] = "false"  # no resources of CodeDeploy
        template["Conditions"] = conditions(template, parameters)
        resources = template["Resources"]
    except KeyError as missing:
        raise RuntimeError(f"the built template has no {missing}") from missing
    secrets = {name for name, resource in resources.items() if resource["Type"] == SECRET_TYPE}
    for resource in resources.values():
        if resource["Type"] == FUNCTION_TYPE:
            properties = resource["Properties"]
            properties["Policies"] = _emulator_policies(properties.get("Policies", []), secrets)
    return json.dumps(template)


def conditions(template: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[str, object]:
    """Return the template's conditions. Each is a comparison of two texts, which are equal if it holds."""
    values = parameter_values(template["Parameters"], parameters)
    scope = Scope({**values, "AWS::AccountId": ACCOUNT}, template.get("Mappings", {}), template["Conditions"])
    return {name: {"Fn::Equals": ["true", scalar_text(holds(name, scope))]} for name in scope.conditions}


def as_json(built: str) -> str:
    """Return a template as JSON: the SAM CLI reads it dozens of times, and YAML takes it seconds each."""
    return json.dumps(parse(built))


def _emulator_policies(value: Any, secrets: Collection[str]) -> Any:
    """Return a function's policies, or any value within them, with what the emulator asks for.

    secrets: the logical ids of the secrets.
    """
    if isinstance(value, list):
        items = [_emulator_policies(item, secrets) for item in value]
        return [item for changed in items for item in (changed, *_emulator_statements(changed))]
    if isinstance(value, dict):
        if value.get("Ref") in secrets:
            return {"Fn::Sub": SECRET_ARN % value["Ref"]}
        if "Fn::If" in value:  # its condition is a name, and no list of statements
            condition, *branches = value["Fn::If"]
            return {"Fn::If": [condition, *(_emulator_policies(branch, secrets) for branch in branches)]}
        return {name: _emulator_policies(inner, secrets) for name, inner in value.items()}
    return value


def _emulator_statements(statement: Any) -> list[dict[str, Any]]:
    """Return the statements that the emulator needs beside one; [] for a value that is no statement."""
    named = statement.get("Action", []) if isinstance(statement, dict) else []
    actions = {named} if isinstance(named, str) else {*named}
    return [
        # The emulator's batch of statements is a call on no table.
        {**statement, "Action": action, **({"Resource": "*"} if action == BATCH_STATEMENT else {})}
        for action in sorted({EMULATOR_ACTIONS[action] for action in actions & EMULATOR_ACTIONS.keys()})
    ]
