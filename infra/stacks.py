"""What CloudFormation would make for one set of parameters: a template and what it nests, resolved.

    stacks = resolve_stacks({"Size": "large"})
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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from infra.template_text import ROOT, parse

TEMPLATE = ROOT / "template.yaml"
NESTED = "AWS::CloudFormation::Stack"
NO_VALUE = {"Ref": "AWS::NoValue"}
# `sam package` uploads what these name and puts its address in S3 instead.
UPLOAD_PROPERTIES = ("CodeUri", "ContentUri", "DefinitionUri")
logging.getLogger("samtranslator").setLevel(logging.ERROR)  # it warns of metrics that nobody reads

REGION = "us-east-1"
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
ZONES = [f"{REGION}{letter}" for letter in "abc"]


class Refusal(ValueError):
    """What CloudFormation refuses before it makes anything; the message is its sentence."""


@lru_cache(maxsize=64)
def _json(path: Path, changed_ns: int) -> str:
    return json.dumps(parse(path.read_text()), default=str)


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
    for properties in (shared, *(each.get("Properties") or {} for each in template["Resources"].values())):
        for name in UPLOAD_PROPERTIES:
            if isinstance(properties.get(name), str):
                properties[name] = {"Bucket": "uploaded", "Key": properties[name]}
    translator = Translator({}, Parser(), boto_session=SimpleNamespace(region_name=REGION))
    result: dict[str, Any] = translator.translate(template, dict(parameters))
    return result


# Intrinsic functions.


@dataclass(frozen=True, slots=True)
class Scope:
    """What a template's functions may name.

    values: name of a parameter, or id.attribute -> value, by a dictionary or another thing with its `get`.
    conditions: name -> expression.
    """

    values: Any
    mappings: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)


def function(value: Any) -> tuple[str, Any]:
    """Return name and argument of an intrinsic function, or ("", None) if the value is none."""
    if isinstance(value, dict) and len(value) == 1:
        name, argument = next(iter(value.items()))
        if name in ("Ref", "Condition") or name.startswith("Fn::"):
            return name, argument
    return "", None


def scalar_text(value: Any) -> str:
    """Return a scalar as CloudFormation spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# What conditions and Rules compare with: both sides are texts or lists of texts.
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "Fn::Equals": lambda left, right: bool(left == right),
    "Fn::Contains": lambda items, wanted: wanted in items,
    "Fn::EachMemberEquals": lambda items, wanted: set(items) <= {wanted},
    "Fn::EachMemberIn": lambda items, among: set(items) <= set(among),
}


def holds(expression: Any, scope: Scope) -> bool:
    """Evaluate a condition, by name or as an expression, or what a Rule asserts; raises Refusal."""
    if isinstance(expression, str):
        if expression not in scope.conditions:
            raise Refusal(f"the condition {expression} is not declared")
        return holds(scope.conditions[expression], scope)
    name, argument = function(expression)
    if name == "Condition":
        return holds(argument, scope)
    if name in ("Fn::And", "Fn::Or"):
        return (all if name == "Fn::And" else any)([holds(each, scope) for each in argument])
    if name == "Fn::Not":
        return not holds(argument[0], scope)
    if name not in COMPARISONS:
        raise Refusal(f"{expression} is no condition")
    left, right = (_texts(resolve(each, scope)) for each in argument)
    return COMPARISONS[name](left, right)


def _texts(value: Any) -> Any:
    return [scalar_text(each) for each in value] if isinstance(value, list) else scalar_text(value)


def resolve(value: Any, scope: Scope) -> Any:
    """Return a value in which all is evaluated that can be; AWS::NoValue takes its key or item away."""
    name, argument = function(value)
    if name:
        return _evaluate(name, argument, scope)
    if isinstance(value, dict):
        found = {key: resolve(each, scope) for key, each in value.items()}
        return {key: each for key, each in found.items() if each != NO_VALUE}
    if isinstance(value, list):
        return [each for each in (resolve(each, scope) for each in value) if each != NO_VALUE]
    return value


def _evaluate(name: str, argument: Any, scope: Scope) -> Any:
    if name == "Ref":
        return _known(argument, {"Ref": argument}, scope)
    if name == "Fn::If":
        condition, yes, no = argument
        return resolve(yes if holds(condition, scope) else no, scope)
    if name == "Fn::GetAtt":
        parts = argument.split(".", 1) if isinstance(argument, str) else argument
        return _known(".".join(parts), {name: [parts[0], ".".join(parts[1:])]}, scope)
    if name == "Fn::Sub":
        return _substituted(argument, scope)
    resolved = resolve(argument, scope)
    if name == "Fn::FindInMap":
        return _entry(scope.mappings, resolved)
    return LISTS[name](resolved) if name in LISTS else {name: resolved}


def _known(name: str, reference: Any, scope: Scope) -> Any:
    value = scope.values.get(name)
    return reference if value is None else value


MARK = re.compile(r"\$\{(!?)([^}]*)\}")


def _substituted(argument: Any, scope: Scope) -> Any:
    text, variables = (argument, {}) if isinstance(argument, str) else argument
    own = {name: resolve(each, scope) for name, each in variables.items()}
    left = {name: each for name, each in own.items() if _sub_text(each) is None}

    def put(found: re.Match[str]) -> str:
        name = found[2].strip()
        known = own[name] if name in own else None if found[1] else scope.values.get(name)
        if isinstance(known, list):
            raise Refusal(f"Fn::Sub takes no list: {name}")
        return found[0] if known is None or name in left else _sub_text(known) or ""

    filled = MARK.sub(put, text)
    return {"Fn::Sub": [filled, left]} if left else _simplest(filled)


def _sub_text(value: Any) -> str | None:
    """Return a scalar or a reference as it is written within Fn::Sub; None for what has no such form."""
    name, argument = function(value)
    if name == "Ref":
        return f"${{{argument}}}"
    if name == "Fn::GetAtt":
        return f"${{{argument[0]}.{argument[1]}}}"
    if name == "Fn::Sub":
        return argument if isinstance(argument, str) else None
    return None if isinstance(value, dict | list) else scalar_text(value).replace("${", "${!")


def _simplest(text: str) -> Any:
    """Return text of Fn::Sub in its simplest form: a string, one Ref, one GetAtt, or Fn::Sub."""
    names = [found[2] for found in MARK.finditer(text) if not found[1]]
    if not names:
        return text.replace("${!", "${")
    if text != f"${{{names[0]}}}":
        return {"Fn::Sub": text}
    logical_id, _, attribute = names[0].partition(".")
    return {"Fn::GetAtt": [logical_id, attribute]} if attribute else {"Ref": logical_id}


def _join(argument: Any) -> Any:
    between, items = argument
    texts = [_sub_text(each) for each in items] if isinstance(items, list) else [None]
    known = [each for each in texts if each is not None]
    return _simplest(between.join(known)) if len(known) == len(texts) else {"Fn::Join": argument}


def _split(argument: Any) -> Any:
    between, text = argument
    return text.split(between) if isinstance(text, str) else {"Fn::Split": argument}


def _select(argument: Any) -> Any:
    index, items = argument
    if not isinstance(items, list):
        return {"Fn::Select": argument}
    if not 0 <= int(index) < len(items):
        raise Refusal(f"Fn::Select wants item {index} of {len(items)}")
    return items[int(index)]


LISTS: Mapping[str, Callable[[Any], Any]] = {
    "Fn::Join": _join,
    "Fn::Split": _split,
    "Fn::Select": _select,
    "Fn::GetAZs": lambda _: ZONES,
}


def _entry(mappings: Any, keys: list[Any]) -> Any:
    for key in keys:
        if not isinstance(key, str | int) or str(key) not in mappings:
            raise Refusal(f"Fn::FindInMap finds no {keys}")
        mappings = mappings[str(key)]
    return mappings


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


# Parameters and Rules.


def parameter_values(declared: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the value of each parameter: a string, a number for the type Number, a list for a list's type.

    Raises Refusal for a value that is missing, unknown or not allowed.
    """
    unknown = sorted(set(given) - set(declared))
    if unknown:
        raise Refusal(f"there is no parameter {', '.join(unknown)}")
    missing = [name for name, shape in declared.items() if name not in given and "Default" not in shape]
    if missing:
        raise Refusal(f"the parameter {', '.join(missing)} has no value")
    return {
        name: _parameter_value(name, shape, scalar_text(given.get(name, shape.get("Default"))))
        for name, shape in declared.items()
    }


def _parameter_value(name: str, shape: Mapping[str, Any], text: str) -> Any:
    kind = shape["Type"]
    is_list = kind.startswith("List<") or kind == "CommaDelimitedList"
    allowed = [scalar_text(each) for each in shape.get("AllowedValues", [])]
    items = [each.strip() for each in text.split(",")] if is_list else [text]
    for each in items:
        if allowed and each not in allowed:
            raise Refusal(f"{name} may be {', '.join(allowed)}, not {each!r}")
    if not re.fullmatch(shape.get("AllowedPattern", "(?s:.*)"), text):
        wanted = shape.get("ConstraintDescription", f"must match {shape['AllowedPattern']}")
        raise Refusal(f"{name} {wanted}, unlike {text!r}")
    if kind != "Number":
        return items if is_list else text
    try:
        number = float(text) if "." in text else int(text)
    except ValueError as error:
        raise Refusal(f"{name} must be a number, unlike {text!r}") from error
    if not float(shape.get("MinValue", number)) <= number <= float(shape.get("MaxValue", number)):
        limits = f"from {shape.get('MinValue')} to {shape.get('MaxValue')}"
        raise Refusal(f"{name} must be {limits}, unlike {text}")
    return number


def _check_rules(rules: Mapping[str, Any], scope: Scope) -> None:
    """Raise Refusal with the first assertion that does not hold. Rules see no conditions or mappings."""
    for name, rule in rules.items():
        if holds(rule.get("RuleCondition", {"Fn::Equals": ["", ""]}), scope):
            for each in rule["Assertions"]:
                if not holds(each["Assert"], scope):
                    raise Refusal(each.get("AssertDescription", f"the rule {name} does not hold"))


# Stand-ins for what only AWS knows: the ARNs and names of resources that are made. All are well-formed.


# type of resource -> the rest of its ARN. A type that is missing here has its service's usual form.
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


# Stacks.


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack, resolved.

    path: "/" for the root, "/Network" for what it nests under that logical id.
    parameters: name -> value. conditions: name -> whether it holds. resources: logical id -> resource as in a
    template (Type, Properties, DependsOn as a list, DeletionPolicy ...), only those that are made.
    outputs: name -> value, only those that are made. nested: logical id -> stack.
    """

    path: str
    parameters: Mapping[str, Any]
    conditions: Mapping[str, bool]
    resources: Mapping[str, Mapping[str, Any]]
    outputs: Mapping[str, Any]
    nested: Mapping[str, "Stack"] = field(default_factory=dict)

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
    return {each.path: each for each in _all(_stack("/", template, parameters))}


def _all(stack: Stack) -> Iterator[Stack]:
    yield stack
    for each in stack.nested.values():
        yield from _all(each)


def _stack(path: str, file: Path, parameters: Mapping[str, str]) -> Stack:
    pseudo = {name: parameters.get(name, usual) for name, usual in PSEUDO.items()}
    given = {name: value for name, value in parameters.items() if name not in pseudo}
    template = expanded_template(file, given)
    values = parameter_values(template.get("Parameters", {}), given)
    scope = Scope({**pseudo, **values}, template.get("Mappings", {}), template.get("Conditions", {}))
    _check_rules(template.get("Rules", {}), Scope(scope.values))
    stack = Stack(
        path,
        values,
        {name: holds(name, scope) for name in scope.conditions},
        {name: _resource(each) for name, each in _made(template["Resources"], scope)},
        {name: each["Value"] for name, each in _made(template.get("Outputs", {}), scope)},
    )
    return _with_nested(stack, file, {name: each for name, each in parameters.items() if name in pseudo})


def _made(declared: Mapping[str, Any], scope: Scope) -> Iterator[tuple[str, Any]]:
    for name, each in declared.items():
        rest = {key: value for key, value in each.items() if key != "Condition"}
        if "Condition" not in each or holds(each["Condition"], scope):
            try:
                yield name, resolve(rest, scope)
            except Refusal as refusal:
                raise Refusal(f"{name}: {refusal}") from refusal


def _resource(resolved: dict[str, Any]) -> dict[str, Any]:
    after = resolved.pop("DependsOn", [])
    return {"Properties": {}, **resolved, "DependsOn": [after] if isinstance(after, str) else after}


def _with_nested(stack: Stack, file: Path, pseudo: Mapping[str, str]) -> Stack:
    """Resolve what a stack nests, each after those whose outputs it is given. pseudo: as it has them."""
    nested = {name: each for name, each in stack.resources.items() if each["Type"] == NESTED}
    order = TopologicalSorter(
        {name: {id_ for id_, _ in references(each)} & {*nested} for name, each in nested.items()}
    )
    for name in order.static_order():
        properties = nested[name]["Properties"]
        given = {key: scalar_text(each) for key, each in stack.flat(properties.get("Parameters", {})).items()}
        path = f"{stack.path.rstrip('/')}/{name}"
        try:
            child = _stack(path, file.parent / properties["TemplateURL"], {**given, **pseudo})
        except Refusal as refusal:  # by then the deployment has begun
            raise Refusal(f"{name}: {refusal}") from refusal
        stack = replace(stack, nested={**stack.nested, name: child})
    return stack
