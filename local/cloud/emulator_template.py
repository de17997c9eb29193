"""Makes of a built template one that the emulator takes.

The emulator expands SAM's resources with the defaults of parameters, whatever values are given. Its
conditions know no pseudo parameter, no mapping and no Fn::Join. It authorizes each call by the call's own
name, even where AWS asks for another permission, and its Ref of a secret is the secret's name.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from infra.intrinsics import Scope, holds, parameter_values, scalar_text
from infra.template_text import parse

ACCOUNT = "000000000000"
FUNCTION_TYPE = "AWS::Serverless::Function"
SECRET_TYPE = "AWS::SecretsManager::Secret"
# What AWS asks for -> the call that the emulator asks for.
BY_CALL = {
    "sns:Publish": "sns:PublishBatch",
    "sqs:SendMessage": "sqs:SendMessageBatch",
    "dynamodb:PartiQLDelete": "dynamodb:BatchExecuteStatement",
    "dynamodb:PartiQLInsert": "dynamodb:BatchExecuteStatement",
    "dynamodb:PartiQLUpdate": "dynamodb:BatchExecuteStatement",
}
OF_NO_TABLE = "dynamodb:BatchExecuteStatement"
SECRET_ARN = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${%s}-*"


def emulator_template(built: str, given: Mapping[str, str]) -> str:
    """Return a built template as the emulator takes it, as JSON. given: parameters, by name.

    Raises RuntimeError if what it changes is not found, infra.intrinsics.Refusal for parameters that the
    template does not take.
    """
    template = parse(built)
    try:
        template["Parameters"]["GradualDeployment"]["Default"] = "false"  # it refuses resources of CodeDeploy
        template["Conditions"] = conditions(template, given)
        made = template["Resources"]
    except KeyError as missing:
        raise RuntimeError(f"the built template has no {missing}") from missing
    secrets = {name for name, each in made.items() if each["Type"] == SECRET_TYPE}
    for each in made.values():
        if each["Type"] == FUNCTION_TYPE:
            each["Properties"]["Policies"] = _emulator_policies(
                each["Properties"].get("Policies", []), secrets
            )
    return json.dumps(template)


def conditions(template: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, object]:
    """Return the template's conditions, each as a comparison that shows how it turns out."""
    values = parameter_values(template["Parameters"], given)
    scope = Scope({**values, "AWS::AccountId": ACCOUNT}, template.get("Mappings", {}), template["Conditions"])
    return {name: {"Fn::Equals": ["true", scalar_text(holds(name, scope))]} for name in scope.conditions}


def _emulator_policies(value: Any, secrets: Collection[str]) -> Any:
    """Return policies, or a part of them, by which the emulator allows what AWS does."""
    if isinstance(value, list):
        return [each for part in value for each in _statements(_emulator_policies(part, secrets))]
    if isinstance(value, dict):
        if value.get("Ref") in secrets:
            return {"Fn::Sub": SECRET_ARN % value["Ref"]}
        if "Fn::If" in value:
            condition, *ways = value["Fn::If"]
            return {"Fn::If": [condition, *(_emulator_policies(each, secrets) for each in ways)]}
        return {name: _emulator_policies(each, secrets) for name, each in value.items()}
    return value


def _statements(statement: Any) -> list[Any]:
    """Return a statement, and another one for the calls' own names; anything else as it is."""
    actions = statement.get("Action", []) if isinstance(statement, dict) else []
    calls = {
        BY_CALL[each] for each in ([actions] if isinstance(actions, str) else actions) if each in BY_CALL
    }
    more = [
        {**statement, "Action": each, **({"Resource": "*"} if each == OF_NO_TABLE else {})}
        for each in sorted(calls)
    ]
    return [statement, *more]


def as_json(built: str) -> str:
    """Return a template as JSON: the SAM CLI reads it dozens of times, and YAML takes it seconds each."""
    return json.dumps(parse(built))


def allowed_to_pages(template: str) -> dict[str, Any]:
    """Return what the API allows to pages of other origins, if it allows any: its CorsConfiguration."""
    _, allowed, _ = parse(template)["Resources"]["Api"]["Properties"]["CorsConfiguration"]["Fn::If"]
    return {name: value for name, value in allowed.items() if name != "AllowOrigins"}
