"""What CloudFormation would make for one set of parameters: a template and what it nests, resolved.

    stacks = resolve_stacks({"Size": "large"})
    stacks["/"].resources["EventsApiFunction"]["Properties"]["Timeout"]      # 15
    stacks["/Network"].resources["Vpc"]["Type"]                              # "AWS::EC2::VPC"
    stacks["/"].flat({"Fn::GetAtt": ["LakeBucket", "Arn"]})                  # "arn:aws:s3:::..."

SAM's translator expands, conditions choose, and functions are evaluated (infra/intrinsics.py). References to
resources stay; `flat` puts well-formed stand-ins for them: the ARNs and names that only AWS knows.
"""

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from infra.intrinsics import (
    REGION,
    Refusal,
    Scope,
    check_rules,
    holds,
    parameter_values,
    references,
    resolve,
    scalar_text,
)
from infra.template_text import ROOT, parse

TEMPLATE = ROOT / "template.yaml"
NESTED = "AWS::CloudFormation::Stack"
# `sam package` uploads what these name and puts its address in S3 instead.
UPLOAD_PROPERTIES = ("CodeUri", "ContentUri", "DefinitionUri")
logging.getLogger("samtranslator").setLevel(logging.ERROR)  # it warns of metrics that nobody reads

PARTITION = "aws"
ACCOUNT = "123456789012"
STACK = "streakline"
STACK_ID = (
    f"arn:{PARTITION}:cloudformation:{REGION}:{ACCOUNT}:stack/{STACK}/51af3dc0-da77-11e4-872e-1234567db123"
)
PSEUDO: dict[str, Any] = {
    "AWS::AccountId": ACCOUNT,
    "AWS::NotificationARNs": [],
    "AWS::Partition": PARTITION,
    "AWS::Region": REGION,
    "AWS::StackId": STACK_ID,
    "AWS::StackName": STACK,
    "AWS::URLSuffix": "amazonaws.com",
}
# Type of resource -> the rest of its ARN. A type that is missing here has its service's usual form.
ARNS = {
    "AWS::DynamoDB::Table": "dynamodb:{at}:table/{name}",
    "AWS::IAM::Role": "iam::{account}:role/{name}",
    "AWS::Kinesis::Stream": "kinesis:{at}:stream/{name}",
    "AWS::KinesisFirehose::DeliveryStream": "firehose:{at}:deliverystream/{name}",
    "AWS::Lambda::Function": "lambda:{at}:function:{name}",
    "AWS::Lambda::Alias": "lambda:{at}:function:{name}:live",
    "AWS::Lambda::LayerVersion": "lambda:{at}:layer:{name}:1",
    "AWS::Logs::LogGroup": "logs:{at}:log-group:{name}:*",
    "AWS::RDS::DBCluster": "rds:{at}:cluster:{name}",
    "AWS::RDS::DBProxy": "rds:{at}:db-proxy:prx-{name}",
    "AWS::RedshiftServerless::Workgroup": "redshift-serverless:{at}:workgroup/{name}",
    "AWS::S3::Bucket": "s3:::{name}",
    "AWS::SecretsManager::Secret": "secretsmanager:{at}:secret:{name}-a1b2c3",
    "AWS::StepFunctions::StateMachine": "states:{at}:stateMachine:{name}",
}
# Types whose Ref is their ARN.
REF_IS_ARN = {
    "AWS::Lambda::Alias",
    "AWS::Lambda::LayerVersion",
    "AWS::SecretsManager::Secret",
    "AWS::SNS::Topic",
    "AWS::StepFunctions::StateMachine",
}
EC2_IDS = {"VPC": "vpc", "Subnet": "subnet", "SecurityGroup": "sg", "RouteTable": "rtb"}


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack, resolved: what is made, and nothing that a condition takes away."""

    path: str  # "/" for the root, "/Network" for what it nests under that logical id
    parameters: Mapping[str, Any]
    conditions: Mapping[str, bool]
    # Logical id -> resource as in a template: Type, Properties, DependsOn as a list, DeletionPolicy ...
    resources: Mapping[str, Mapping[str, Any]]
    outputs: Mapping[str, Any]
    nested: Mapping[str, "Stack"] = field(default_factory=dict)  # by logical id

    def flat(self, value: Any) -> Any:
        """Return a value with a stand-in for each reference; raises Refusal for one that leads nowhere."""
        return resolve(value, Scope(self))

    def get(self, name: str) -> Any:
        """Return the stand-in for what Ref gives of a logical id, or Fn::GetAtt of id.attribute."""
        logical_id, _, attribute = name.partition(".")
        if logical_id in self.nested and attribute:
            nested, output = self.nested[logical_id], attribute.removeprefix("Outputs.")
            if output not in nested.outputs:
                raise Refusal(f"{name} is no output of {logical_id}")
            return nested.flat(nested.outputs[output])
        if logical_id not in self.resources:
            raise Refusal(f"{name} names nothing that is made")
        kind = self.resources[logical_id]["Type"]
        return _attribute(kind, logical_id, attribute) if attribute else _ref(kind, logical_id)


def resolve_stacks(parameters: Mapping[str, str], template: Path = TEMPLATE) -> dict[str, Stack]:
    """Return all stacks that a deployment with these parameters would make, by path; the root is "/".

    A pseudo parameter such as AWS::AccountId may be among them.
    Raises Refusal where CloudFormation refuses the parameters (values, Rules) or a function,
    samtranslator's InvalidDocumentException for what SAM refuses.
    """
    return {stack.path: stack for stack in _with_descendants(_stack("/", template, parameters))}


def read_template(path: Path) -> dict[str, Any]:
    """Return a template as data that the caller may change: !Ref X is {"Ref": "X"}."""
    loaded: dict[str, Any] = json.loads(_json(path, path.stat().st_mtime_ns))
    return loaded


def expanded_template(path: Path, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return a template without SAM's transform. Raises samtranslator's InvalidDocumentException."""
    from samtranslator.parser.parser import Parser  # noqa: PLC0415 (it loads for a second)
    from samtranslator.translator.translator import Translator  # noqa: PLC0415

    template = read_template(path)
    if "Transform" not in template:
        return template
    shared = template.get("Globals", {}).get("Function", {})
    for properties in (shared, *(item.get("Properties") or {} for item in template["Resources"].values())):
        for name in UPLOAD_PROPERTIES:
            if isinstance(properties.get(name), str):
                properties[name] = {"Bucket": "uploaded", "Key": properties[name]}
    translator = Translator({}, Parser(), boto_session=SimpleNamespace(region_name=REGION))
    result: dict[str, Any] = translator.translate(template, dict(parameters))
    return result


@lru_cache(maxsize=64)
def _json(path: Path, changed_ns: int) -> str:
    return json.dumps(parse(path.read_text()), default=str)


def _with_descendants(stack: Stack) -> Iterator[Stack]:
    yield stack
    for child in stack.nested.values():
        yield from _with_descendants(child)


def _stack(path: str, file: Path, parameters: Mapping[str, str]) -> Stack:
    pseudo = {name: parameters.get(name, default) for name, default in PSEUDO.items()}
    given = {name: value for name, value in parameters.items() if name not in pseudo}
    template = expanded_template(file, given)
    values = parameter_values(template.get("Parameters", {}), given)
    scope = Scope({**pseudo, **values}, template.get("Mappings", {}), template.get("Conditions", {}))
    check_rules(template.get("Rules", {}), Scope(scope.values))
    stack = Stack(
        path,
        values,
        {name: holds(name, scope) for name in scope.conditions},
        {name: _resource(item) for name, item in _resolved_items(template["Resources"], scope)},
        {name: item["Value"] for name, item in _resolved_items(template.get("Outputs", {}), scope)},
    )
    return _with_nested(stack, file, {name: value for name, value in parameters.items() if name in pseudo})


def _resolved_items(declared: Mapping[str, Any], scope: Scope) -> Iterator[tuple[str, Any]]:
    """Yield the resources or outputs whose conditions hold, by name."""
    for name, item in declared.items():
        rest = {key: value for key, value in item.items() if key != "Condition"}
        if "Condition" not in item or holds(item["Condition"], scope):
            try:
                yield name, resolve(rest, scope)
            except Refusal as refusal:
                raise Refusal(f"{name}: {refusal}") from refusal


def _resource(resolved: dict[str, Any]) -> dict[str, Any]:
    others = resolved.pop("DependsOn", [])
    return {"Properties": {}, **resolved, "DependsOn": [others] if isinstance(others, str) else others}


def _with_nested(stack: Stack, file: Path, pseudo: Mapping[str, str]) -> Stack:
    """Return a stack with its nested stacks, each resolved after those whose outputs it gets.

    pseudo: the pseudo parameters, which all have in common.
    """
    nested = {name: resource for name, resource in stack.resources.items() if resource["Type"] == NESTED}
    order = TopologicalSorter(
        {name: {other for other, _ in references(resource)} & {*nested} for name, resource in nested.items()}
    )
    for name in order.static_order():
        properties = nested[name]["Properties"]
        flat = stack.flat(properties.get("Parameters", {}))
        given = {key: scalar_text(value) for key, value in flat.items()}
        path = f"{stack.path.rstrip('/')}/{name}"
        try:
            child = _stack(path, file.parent / properties["TemplateURL"], {**given, **pseudo})
        except Refusal as refusal:  # by then the deployment has begun
            raise Refusal(f"{name}: {refusal}") from refusal
        stack = replace(stack, nested={**stack.nested, name: child})
    return stack


def _arn(kind: str, logical_id: str) -> str:
    form = ARNS.get(kind, kind.split("::")[1].lower() + ":{at}:{name}")
    rest = form.format(at=f"{REGION}:{ACCOUNT}", account=ACCOUNT, name=_name(kind, logical_id))
    return f"arn:{PARTITION}:{rest}"


def _name(kind: str, logical_id: str) -> str:
    """Return a resource's name or id: bucket-, queue-, subnet-like, as its type has them."""
    digest = hashlib.sha256(logical_id.encode()).hexdigest()
    if kind.startswith("AWS::EC2::"):
        return f"{EC2_IDS.get(kind.rpartition('::')[2], 'id')}-{digest[:17]}"
    if kind == "AWS::ApiGatewayV2::Api":
        return re.sub(r"\d", "a", digest)[:10]
    name = f"{STACK}-{logical_id}-{digest[:12]}"
    return name.lower() if kind == "AWS::S3::Bucket" else name


def _ref(kind: str, logical_id: str) -> str:
    if kind == "AWS::SQS::Queue":
        return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{_name(kind, logical_id)}"
    return _arn(kind, logical_id) if kind in REF_IS_ARN else _name(kind, logical_id)


def _attribute(kind: str, logical_id: str, attribute: str) -> str:
    if attribute == "StreamArn" and kind == "AWS::DynamoDB::Table":
        return _arn(kind, logical_id) + "/stream/2026-01-01T00:00:00.000"
    if attribute == "MasterUserSecret.SecretArn":
        return _arn("AWS::SecretsManager::Secret", f"rds!{logical_id}")
    if attribute.lower().endswith("arn"):
        return _arn(kind, logical_id)
    if attribute == "ApiEndpoint":
        return f"https://{_name(kind, logical_id)}.execute-api.{REGION}.amazonaws.com"
    if attribute == "Endpoint.Port":
        return "5432"
    name = _name(kind, logical_id)
    return f"{name}.{attribute.lower()}" if "." in attribute else name
