"""What CloudFormation would make for one set of parameters: the template and what it nests, resolved.

    stacks = resolved({"Size": "large"})
    stacks["/"].resources["EventsApiFunction"]["Properties"]["Timeout"]      # 15
    stacks["/Network"].resources["Vpc"]["Type"]                              # "AWS::EC2::VPC"
    stacks["/"].flat({"Fn::GetAtt": ["LakeBucket", "Arn"]})                  # "arn:aws:s3:::..."

SAM's translator expands, conditions choose, and functions are evaluated. References to resources stay:
{"Ref": id}, {"Fn::GetAtt": [id, attribute]}, {"Fn::Sub": text}. `flat` puts well-formed stand-ins for them.
"""

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

from infra.lint import intrinsics
from infra.lint.intrinsics import (
    LISTS,
    MARK,
    ParametersRefused,
    Scope,
    Unresolvable,
    function,
    holds,
    resolve,
    scalar_text,
)
from infra.template_text import ROOT, parse

# Reads a template and expands it as CloudFormation does, by the SAM translator. Nothing here calls AWS.


REGION = "us-east-1"
TRANSFORM = "AWS::Serverless-2016-10-31"
# `sam package` uploads what these name and puts its address in S3 instead.
UPLOAD_PROPERTIES = ("CodeUri", "ContentUri", "DefinitionUri")
logging.getLogger("samtranslator").setLevel(logging.ERROR)  # it warns of metrics that nobody reads


@lru_cache(maxsize=64)
def _json(path: Path, changed_ns: int) -> str:
    return json.dumps(parse(path.read_text()), default=str)


def read_template(path: Path) -> dict[str, Any]:
    """Return a template as data that the caller may change: !Ref X is {"Ref": "X"}."""
    loaded: dict[str, Any] = json.loads(_json(path, path.stat().st_mtime_ns))
    return loaded


def expanded_template(path: Path, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Return a template without its transform.

    Raises samtranslator's InvalidDocumentException for what SAM refuses, ValueError for another transform.
    """
    template = read_template(path)
    transforms = template.get("Transform", [])
    if not transforms:
        return template
    if transforms not in (TRANSFORM, [TRANSFORM]):
        raise ValueError(f"{path.name} has a transform that the lint cannot carry out: {transforms}")
    for resource in template["Resources"].values():
        properties = resource.get("Properties") or {}
        for name in UPLOAD_PROPERTIES:
            if isinstance(properties.get(name), str):
                properties[name] = {"Bucket": "uploaded", "Key": properties[name]}
    translator = Translator({}, Parser(), boto_session=SimpleNamespace(region_name=REGION))
    result: dict[str, Any] = translator.translate(template, dict(parameters))
    return result


# Stand-ins for what only AWS knows: the ARNs and names of resources that are made. All are well-formed.


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
# type of resource -> the rest of its ARN. A type that is missing here has its service's usual form.
ARNS = {
    "AWS::ApiGatewayV2::Api": "execute-api:{at}:{name}",
    "AWS::Cognito::UserPool": "cognito-idp:{at}:userpool/{name}",
    "AWS::DynamoDB::Table": "dynamodb:{at}:table/{name}",
    "AWS::Glue::Database": "glue:{at}:database/{name}",
    "AWS::IAM::Role": "iam::{account}:role/{name}",
    "AWS::IAM::ManagedPolicy": "iam::{account}:policy/{name}",
    "AWS::Kinesis::Stream": "kinesis:{at}:stream/{name}",
    "AWS::KinesisFirehose::DeliveryStream": "firehose:{at}:deliverystream/{name}",
    "AWS::KMS::Key": "kms:{at}:key/{name}",
    "AWS::Lambda::Function": "lambda:{at}:function:{name}",
    "AWS::Lambda::Alias": "lambda:{at}:function:{name}:live",
    "AWS::Lambda::Version": "lambda:{at}:function:{name}:1",
    "AWS::Lambda::LayerVersion": "lambda:{at}:layer:{name}:1",
    "AWS::Logs::LogGroup": "logs:{at}:log-group:{name}:*",
    "AWS::RDS::DBCluster": "rds:{at}:cluster:{name}",
    "AWS::RDS::DBProxy": "rds:{at}:db-proxy:prx-{name}",
    "AWS::RedshiftServerless::Namespace": "redshift-serverless:{at}:namespace/{name}",
    "AWS::RedshiftServerless::Workgroup": "redshift-serverless:{at}:workgroup/{name}",
    "AWS::S3::Bucket": "s3:::{name}",
    "AWS::SecretsManager::Secret": "secretsmanager:{at}:secret:{name}-a1b2c3",
    "AWS::SNS::Topic": "sns:{at}:{name}",
    "AWS::SQS::Queue": "sqs:{at}:{name}",
    "AWS::StepFunctions::StateMachine": "states:{at}:stateMachine:{name}",
}
# Types whose Ref is their ARN.
REF_IS_ARN = {
    "AWS::Lambda::Alias",
    "AWS::Lambda::LayerVersion",
    "AWS::Lambda::Version",
    "AWS::IAM::ManagedPolicy",
    "AWS::SecretsManager::Secret",
    "AWS::SNS::Topic",
    "AWS::StepFunctions::StateMachine",
}
EC2_IDS = {
    "VPC": "vpc",
    "Subnet": "subnet",
    "SecurityGroup": "sg",
    "RouteTable": "rtb",
    "VPCEndpoint": "vpce",
}


def arn_of(kind: str, logical_id: str) -> str:
    """Return a resource's ARN."""
    at = f"{REGION}:{ACCOUNT}"
    service = kind.split("::")[1].lower() if "::" in kind else "custom"
    form = ARNS.get(kind, service + ":{at}:{name}")
    return f"arn:{PARTITION}:" + form.format(at=at, account=ACCOUNT, name=name_of(kind, logical_id))


def name_of(kind: str, logical_id: str) -> str:
    """Return a resource's name or id: bucket-, queue-, subnet-like, as its type has them."""
    *_, last = kind.split("::")
    digest = hashlib.sha256(logical_id.encode()).hexdigest()
    if kind.startswith("AWS::EC2::"):
        return f"{EC2_IDS.get(last, 'id')}-{digest[:17]}"
    if kind == "AWS::ApiGatewayV2::Api":
        return re.sub(r"\d", "a", digest)[:10]
    made = f"{STACK}-{logical_id}-{digest[:12]}"
    return made.lower() if kind == "AWS::S3::Bucket" else made


def ref_of(kind: str, logical_id: str) -> str:
    """Return what Ref gives of a resource."""
    if kind == "AWS::SQS::Queue":
        return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name_of(kind, logical_id)}"
    return arn_of(kind, logical_id) if kind in REF_IS_ARN else name_of(kind, logical_id)


def attribute_of(kind: str, logical_id: str, wanted: str) -> str:
    """Return what Fn::GetAtt gives of a resource, an ARN if the attribute's name ends so."""
    if wanted.lower().endswith("streamarn") and kind == "AWS::DynamoDB::Table":
        return arn_of(kind, logical_id) + "/stream/2026-01-01T00:00:00.000"
    if wanted == "MasterUserSecret.SecretArn":
        return arn_of("AWS::SecretsManager::Secret", f"rds!{logical_id}")
    if wanted.lower().endswith("arn"):
        return arn_of(kind, logical_id)
    if wanted == "ApiEndpoint":
        return f"https://{name_of(kind, logical_id)}.execute-api.{REGION}.amazonaws.com"
    if wanted in ("Endpoint.Port", "Port"):
        return "5432"
    return f"{name_of(kind, logical_id)}.{wanted.lower()}" if "." in wanted else name_of(kind, logical_id)


ALWAYS = {"Fn::Equals": ["", ""]}
NESTED = "AWS::CloudFormation::Stack"
TEMPLATE = ROOT / "template.yaml"


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack, resolved.

    path: "/" for the root, "/Network" for what it nests under that logical id. template: the file.
    parameters: name -> value. conditions: name -> whether it holds. resources: logical id -> resource as in a
    template (Type, Properties, DependsOn as a list, DeletionPolicy ...), only those that are made.
    absent: logical id -> the condition that does not hold. types: logical id -> type, whether made or not.
    outputs: name -> value, only those that are made.
    nested: logical id -> stack.
    """

    path: str
    template: Path
    parameters: Mapping[str, Any]
    conditions: Mapping[str, bool]
    resources: Mapping[str, Mapping[str, Any]]
    absent: Mapping[str, str]
    types: Mapping[str, str]
    outputs: Mapping[str, Any]
    nested: Mapping[str, "Stack"] = field(default_factory=dict)

    def flat(self, value: Any) -> Any:
        """Return a value with a well-formed stand-in for each reference; "" for one that leads nowhere."""
        name, argument = function(value)
        if name:
            return self._flat(name, argument)
        if isinstance(value, dict):
            return {key: self.flat(each) for key, each in value.items()}
        return [self.flat(each) for each in value] if isinstance(value, list) else value

    def _flat(self, name: str, argument: Any) -> Any:
        if name == "Ref":
            return self._named(argument, "")
        if name == "Fn::GetAtt":
            return self._named(*argument)
        if name == "Fn::Sub" and isinstance(argument, str):
            return MARK.sub(lambda found: self._marked(found[1], found[2]), argument)
        known = name in LISTS
        return resolve({name: self.flat(argument)}, Scope({})) if known else f"<{name}>"

    def _marked(self, literal: str, name: str) -> str:
        logical_id, _, attribute = name.partition(".")
        return f"${{{name}}}" if literal else scalar_text(self._named(logical_id, attribute))

    def _named(self, logical_id: str, attribute: str) -> Any:
        if logical_id not in self.resources:
            return ""
        if logical_id in self.nested:
            child = self.nested[logical_id]
            return (
                child.flat(child.outputs.get(attribute.removeprefix("Outputs."), ""))
                if attribute
                else child.path
            )
        kind = self.resources[logical_id]["Type"]
        find = attribute_of(kind, logical_id, attribute) if attribute else ""
        return find or ref_of(kind, logical_id)


def resolve_stacks(parameters: Mapping[str, str], template: Path = TEMPLATE) -> dict[str, Stack]:
    """Return all stacks that a deployment with these parameters would make, by path; the root is "/".

    A pseudo parameter such as AWS::AccountId may be among them.
    Raises ParametersRefused where CloudFormation refuses the parameters (values, Rules), Unresolvable for a
    function that it cannot evaluate, samtranslator's InvalidDocumentException for what SAM refuses.
    """
    return {each.path: each for each in walk(_stack("/", template, parameters))}


def walk(stack: Stack) -> Iterator[Stack]:
    """Give a stack, then all that it nests."""
    yield stack
    for each in stack.nested.values():
        yield from walk(each)


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Give the references within a resolved value: logical id, and attribute or ""."""
    name, argument = function(value)
    if name == "Ref":
        yield argument, ""
    elif name == "Fn::GetAtt":
        yield argument[0], argument[1]
    elif name == "Fn::Sub":
        text, variables = (argument, {}) if isinstance(argument, str) else argument
        marks = [found[2].partition(".") for found in MARK.finditer(text) if not found[1]]
        yield from ((each, attribute) for each, _, attribute in marks if each not in variables)
        yield from references(list(variables.values()))
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from references(each)


def _stack(path: str, file: Path, parameters: Mapping[str, str]) -> Stack:
    pseudo = {name: parameters.get(name, usual) for name, usual in PSEUDO.items()}
    given = {name: value for name, value in parameters.items() if name not in pseudo}
    template = expanded_template(file, given)
    values = intrinsics.parameter_values(template.get("Parameters", {}), given)
    scope = Scope({**pseudo, **values}, template.get("Mappings", {}), template.get("Conditions", {}))
    intrinsics.check_rules(template.get("Rules", {}), scope)
    made = {name: each for name, each in template["Resources"].items() if _is_made(each, scope)}
    outputs = {name: each for name, each in template.get("Outputs", {}).items() if _is_made(each, scope)}
    stack = Stack(
        path=path,
        template=file,
        parameters=values,
        conditions={name: holds(name, scope) for name in scope.conditions},
        resources={name: _resource(name, each, scope) for name, each in made.items()},
        absent={name: each["Condition"] for name, each in template["Resources"].items() if name not in made},
        types={name: each["Type"] for name, each in template["Resources"].items()},
        outputs={
            name: _resolve_value(f"output {name}", each["Value"], scope) for name, each in outputs.items()
        },
    )
    named = {name: each for name, each in parameters.items() if name in pseudo}
    return _with_nested(stack, named)


@lru_cache(maxsize=256)
def _nested_stack(path: str, file: Path, changed_ns: int, parameters: tuple[tuple[str, str], ...]) -> Stack:
    """Resolve a nested stack once for the same parameters, which most sets give it."""
    return _stack(path, file, dict(parameters))


def _is_made(declared: Mapping[str, Any], scope: Scope) -> bool:
    return holds(declared.get("Condition", ALWAYS), scope)


def _resolve_value(name: str, value: Any, scope: Scope) -> Any:
    try:
        return resolve(value, scope)
    except Unresolvable as refusal:
        raise Unresolvable(f"{name}: {refusal}") from refusal


def _resource(name: str, declared: Mapping[str, Any], scope: Scope) -> dict[str, Any]:
    found = _resolve_value(name, {key: each for key, each in declared.items() if key != "Condition"}, scope)
    after = found.pop("DependsOn", [])
    return {"Properties": {}, **found, "DependsOn": [after] if isinstance(after, str) else after}


def _with_nested(stack: Stack, pseudo: Mapping[str, str]) -> Stack:
    """Resolve what a stack nests, each after those whose outputs it is given. pseudo: as it has them."""
    nested = {name: each for name, each in stack.resources.items() if each["Type"] == NESTED}
    order = TopologicalSorter(
        {name: {id_ for id_, _ in references(each)} & {*nested} for name, each in nested.items()}
    )
    for name in order.static_order():
        properties = nested[name]["Properties"]
        file = stack.template.parent / properties["TemplateURL"]
        given = {key: scalar_text(each) for key, each in stack.flat(properties.get("Parameters", {})).items()}
        given |= pseudo
        try:
            path = f"{stack.path.rstrip('/')}/{name}"
            child = _nested_stack(path, file, file.stat().st_mtime_ns, tuple(given.items()))
        except ParametersRefused as refusal:  # by then the deployment has begun
            raise Unresolvable(f"{name} does not take its parameters: {refusal}") from refusal
        stack = replace(stack, nested={**stack.nested, name: child})
    return stack


# What cfn-lint ships of AWS: actions and what they act on, each type's schema. cfn-lint is not loaded.


def _read_reference(path: str) -> dict[str, Any]:
    spec = find_spec("cfnlint")
    assert spec is not None  # noqa: S101 (it is in the lock file)
    (folder,) = spec.submodule_search_locations or []
    found: dict[str, Any] = json.loads((Path(folder) / "data" / path).read_text())
    return found


@cache
def shipped_actions() -> Mapping[str, Any]:
    """Return services -> Actions (in small letters) -> Resources, and Resources -> ARNFormats.

    It is AWS's service authorization reference.
    """
    return _read_reference("AdditionalSpecs/Policies.json")


@cache
def shipped_identifiers(kind: str) -> list[str]:
    """Return the properties that identify a resource of a type in an account, and that a template may set."""
    types = _read_reference(f"schemas/providers/{REGION}.json")
    if kind not in types:
        return []
    schema = _read_reference(f"schemas/resources/{types[kind]}.json")
    read_only = {*schema.get("readOnlyProperties", [])}
    return [each.rpartition("/")[2] for each in schema.get("primaryIdentifier", []) if each not in read_only]
