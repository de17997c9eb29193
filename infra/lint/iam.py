"""Checks of IAM: policy documents as strictly as IAM reads them, actions and what they act on, roles as a
whole, ARNs of one partition.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from infra.lint import stacks as shipped
from infra.lint.faults import Fault, Stacks, as_list, on_aws, resources_of, texts_in
from infra.lint.stacks import Stack, read_template

# Finds policy documents, of every kind, wherever a resource has one.


TRUST = "AssumeRolePolicyDocument"
IDENTITY_TYPES = (
    "AWS::IAM::Role",
    "AWS::IAM::Policy",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::User",
    "AWS::IAM::Group",
)


@dataclass(frozen=True, slots=True)
class Policy:
    """document: with stand-ins for references. kind: identity, trust, or resource (a queue's, a bucket's)."""

    stack: str
    logical_id: str
    name: str
    kind: str
    document: Mapping[str, Any]


def policies(stacks: Stacks) -> Iterator[Policy]:
    """Give all policy documents of all stacks."""
    for stack, name, properties in resources_of(stacks):
        yield from _policies_in(stack, name, properties, "")


def _policies_in(stack: Stack, logical_id: str, value: Any, key: str) -> Iterator[Policy]:
    if isinstance(value, dict) and "Statement" in value:
        identity = stack.types[logical_id] in IDENTITY_TYPES
        kind = "trust" if key == TRUST else "identity" if identity else "resource"
        yield Policy(stack.path, logical_id, key, kind, stack.flat(value))
    elif isinstance(value, dict):
        for inner, item in value.items():
            name = value.get("PolicyName", inner) if inner == "PolicyDocument" else inner
            yield from _policies_in(stack, logical_id, item, str(name))
    elif isinstance(value, list):
        for item in value:
            yield from _policies_in(stack, logical_id, item, key)


VERSION = "2012-10-17"
KEYS = {
    *("Sid", "Effect", "Condition", "Principal", "NotPrincipal"),
    *("Action", "NotAction", "Resource", "NotResource"),
}
ARN = re.compile(r"arn:[a-z*-]+:[a-z0-9*-]+:[a-z0-9*-]*:(\d{12}|aws|\*)?:\S+")
OPERATOR_SUFFIXES = {
    "String": ("Equals", "NotEquals", "EqualsIgnoreCase", "NotEqualsIgnoreCase", "Like", "NotLike"),
    "Numeric": ("Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals"),
    "Date": ("Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals"),
    "Arn": ("Equals", "NotEquals", "Like", "NotLike"),
    "IpAddress": ("",),
    "NotIpAddress": ("",),
    "Binary": ("Equals",),
    "Bool": ("",),
}
OPERATORS = {kind + way for kind, ways in OPERATOR_SUFFIXES.items() for way in ways}


def document_faults(stacks: Stacks) -> Iterator[Fault]:
    """Find documents that IAM would refuse, whatever they allow."""
    for policy in policies(stacks):
        for reason in _document_problems(policy):
            yield Fault(policy.stack, policy.logical_id, f"its policy {policy.name} {reason}")


def _document_problems(policy: Policy) -> Iterator[str]:
    if policy.document.get("Version") != VERSION:
        yield f'has no Version "{VERSION}"'
    statements = as_list(policy.document["Statement"])
    if not statements:
        yield "has no statement: IAM refuses an empty list"
    sids = [each["Sid"] for each in statements if "Sid" in each]
    if len(sids) != len(set(sids)):
        yield f"has a Sid twice: {', '.join(sids)}"
    for statement in statements:
        yield from _document_statement(policy.kind, statement)


def _document_statement(kind: str, statement: Mapping[str, Any]) -> Iterator[str]:
    if statement.get("Effect") not in ("Allow", "Deny"):
        yield "has a statement without an Effect of Allow or Deny"
    for key in statement.keys() - KEYS:
        yield f"has a key that IAM does not know: {key}"
    for one in ("Action", *(() if kind == "trust" else ("Resource",))):
        values = [*as_list(statement.get(one, [])), *as_list(statement.get(f"Not{one}", []))]
        if not values:
            yield f"has a statement without {one}"
        if one in statement and f"Not{one}" in statement:
            yield f"has a statement with both {one} and Not{one}"
        yield from (f"has a statement with an empty {one}" for each in values if not each)
    yield from _principal_problems(kind, statement)
    for each in [*as_list(statement.get("Resource", [])), *as_list(statement.get("NotResource", []))]:
        if each not in ("*", "") and not ARN.fullmatch(str(each)):
            yield f"has a Resource that is no ARN: {each}"
    yield from _condition_problems(statement.get("Condition", {}))


def _principal_problems(kind: str, statement: Mapping[str, Any]) -> Iterator[str]:
    named = statement.get("Principal", statement.get("NotPrincipal"))
    if kind == "identity" and named is not None:
        yield "has a Principal, which a role's own policy may not have"
    if kind != "identity" and not named:
        yield "has a statement without Principal"
    if kind == "trust" and ("Resource" in statement or "NotResource" in statement):
        yield "has a Resource, which a trust policy may not have"


def _condition_problems(condition: Mapping[str, Any]) -> Iterator[str]:
    for operator, compared in condition.items():
        plain = re.sub(r"^For(AllValues|AnyValue):", "", operator).removesuffix("IfExists")
        if plain not in OPERATORS and operator != "Null":
            yield f"has a condition operator that does not exist: {operator}"
        for key, values in compared.items():
            if ":" not in key:
                yield f"has a condition on {key}, which names no service: aws:{key}?"
            if not all(str(each) for each in as_list(values)) or values == []:
                yield f"has a condition that compares {key} with nothing"


# Actions of policies: whether they exist, and whether the statement's resources are what they act on.


# AWS's reference says `.*` of these resources, which would let a bucket pass for an object.
RESOURCES = {
    ("s3", "bucket"): "[^/]+",
    ("s3", "object"): "[^/]+/.+",
    ("dynamodb", "table"): "table/[^/]+",
    ("dynamodb", "index"): "table/[^/]+/index/.+",
    ("dynamodb", "stream"): "table/[^/]+/stream/.+",
}
# The reference names no resource for mobile push, but SNS asks for these: its refusals name them.
UNLISTED_ACTIONS = {
    "sns:createplatformendpoint": ["arn:[^:]*:sns:[^:]*:[^:]*:app/.+"],
    "sns:deleteendpoint": ["arn:[^:]*:sns:[^:]*:[^:]*:endpoint/.+"],
    "sns:getendpointattributes": ["arn:[^:]*:sns:[^:]*:[^:]*:endpoint/.+"],
    "sns:setendpointattributes": ["arn:[^:]*:sns:[^:]*:[^:]*:endpoint/.+"],
}


def action_faults(stacks: Stacks) -> Iterator[Fault]:
    """Find actions that do not exist, and resources that do not match. The emulator has its own actions."""
    if not on_aws(stacks):
        return
    for policy in policies(stacks):
        for statement in as_list(policy.document["Statement"]):
            for reason in _action_statement(statement, narrow=policy.kind == "identity"):
                yield Fault(policy.stack, policy.logical_id, f"its policy {policy.name} {reason}")


def _action_statement(statement: Mapping[str, Any], *, narrow: bool) -> Iterator[str]:
    named = [str(each) for each in as_list(statement.get("Action", []))]
    types = {action: arns_of(action) for action in named if action != "*" and exists(action)}
    for action in named:
        if action != "*" and action not in types:
            yield f"names an action that does not exist: {action}"
    arns = [str(each) for each in as_list(statement.get("Resource", [])) if each]
    if "*" in arns:
        narrower = ", ".join(action for action, forms in types.items() if forms)
        if narrow and narrower and statement.get("Effect") == "Allow" and "Condition" not in statement:
            yield f'allows {narrower} on "*", although it could name the resource'
    elif arns and "*" not in named:
        yield from _unmatched_arns(types, arns)


def _unmatched_arns(types: Mapping[str, list[str]], arns: list[str]) -> Iterator[str]:
    for action, forms in types.items():
        if not forms:
            yield f'allows {action} on {arns[0]}, but it acts on nothing narrower than "*"'
        elif not any(_matches(arn, forms) for arn in arns):
            yield f"allows {action} on {', '.join(arns)}, which is nothing that it acts on"
    for arn in arns:
        if types and all(types.values()) and not any(_matches(arn, forms) for forms in types.values()):
            yield f"names {arn}, on which none of its actions acts: {', '.join(types)}"


def _known_actions(action: str) -> Iterator[tuple[Mapping[str, Any], str, str]]:
    """Give all that an action with wildcards stands for: what is known of its service, and both names."""
    service, _, name = action.lower().partition(":")
    known = shipped.shipped_actions().get(service, {"Actions": {}})
    yield from ((known, service, each) for each in known["Actions"] if fnmatch(each, name))


@cache
def exists(action: str) -> bool:
    """Tell whether an action, or one that its wildcards stand for, exists."""
    return any(_known_actions(action))


@cache
def arns_of(action: str) -> list[str]:
    """Return regular expressions of what an action acts on; [] if that is nothing narrower than *."""
    result = list(UNLISTED_ACTIONS.get(action.lower(), []))
    for known, service, name in _known_actions(action):
        for kind in as_list(known["Actions"][name].get("Resources", [])):
            forms = known["Resources"].get(kind.lower(), {}).get("ARNFormats", [])
            result += [_pattern(form, RESOURCES.get((service, kind.lower()))) for form in forms]
    return result


def _pattern(form: str, resource: str | None) -> str:
    *begin, rest = form.split(":", 5)
    parts = ["[^:]*" if "$" in each else f"({re.escape(each)}|\\*)" for each in begin]
    return ":".join([*parts, resource or rest])


def _matches(arn: str, forms: list[str]) -> bool:
    """Tell whether an ARN, whose * may stand for several parts of a name, is of one of these forms."""
    return any(re.fullmatch(form, each) for form in forms for each in (arn, arn.replace("*", "x/x")))


# What IAM and Lambda demand of a role or permission as a whole.


# IAM's quotas. White space does not count.
INLINE_CHARACTERS_MAX = 10_240
TRUST_CHARACTERS_MAX = 2_048
MANAGED_MAX = 10
BY_SAM = "AWSLambdaVPCAccessExecutionRole"
# The service in a permission's SourceArn, where it is not the principal's own name.
SOURCES = {"apigateway": "execute-api"}


def role_faults(stacks: Stacks) -> Iterator[Fault]:
    """Find roles beyond IAM's quotas or with a policy twice, and permissions for another service's ARN."""
    for stack, name, properties in resources_of(stacks, "AWS::IAM::Role"):
        yield from (Fault(stack.path, name, reason) for reason in _role_problems(stack, properties))
    for stack, name, properties in resources_of(stacks, "AWS::Lambda::Permission"):
        principal = str(stack.flat(properties.get("Principal", ""))).removesuffix(".amazonaws.com")
        source = str(stack.flat(properties.get("SourceArn", "")))
        wanted = SOURCES.get(principal, principal)
        if source and source.split(":")[2:3] != [wanted]:
            yield Fault(
                stack.path,
                name,
                f"it lets {principal} invoke the function for {source}, which is not {wanted}'s",
            )


def _role_problems(stack: Stack, properties: Mapping[str, Any]) -> Iterator[str]:
    managed = [str(each) for each in stack.flat(properties.get("ManagedPolicyArns", []))]
    for arn in _duplicates(managed):
        why = ": SAM adds it itself as soon as VpcConfig is named" if arn.endswith(BY_SAM) else ""
        yield f"it has the managed policy {arn} twice{why}"
    if len(managed) > MANAGED_MAX:
        yield f"it has {len(managed)} managed policies; {MANAGED_MAX} are allowed"
    inline = properties.get("Policies", [])
    for policy in _duplicates([str(stack.flat(each["PolicyName"])) for each in inline]):
        yield f"it has two policies named {policy}"
    size = sum(_characters(stack, each["PolicyDocument"]) for each in inline)
    if size > INLINE_CHARACTERS_MAX:
        yield f"its inline policies have {size} characters; {INLINE_CHARACTERS_MAX} are allowed"
    trust = _characters(stack, properties.get("AssumeRolePolicyDocument", {}))
    if trust > TRUST_CHARACTERS_MAX:
        yield f"its trust policy has {trust} characters; {TRUST_CHARACTERS_MAX} are allowed"


def _duplicates(names: list[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _characters(stack: Stack, document: Any) -> int:
    return len(json.dumps(stack.flat(document), separators=(",", ":")))


# ARNs that are right in one partition only: arn:aws: is not China's, nor the government's.


LITERAL = re.compile(r"arn:aws[a-z-]*:[^\s\"']*")


def partition_faults(template: Path) -> Iterator[Fault]:
    """Find literal partitions in a template, as it is written, and in the state machines that it names."""
    loaded = read_template(template)
    for name, resource in loaded["Resources"].items():
        found = list(texts_in(resource))
        definitions = [text for path, text in found if path[-1] == "DefinitionUri"]
        for text in (
            *(text for _, text in found),
            *((template.parent / each).read_text() for each in definitions),
        ):
            for arn in dict.fromkeys(LITERAL.findall(text)):
                yield Fault(template.name, name, f"{arn} is of one partition only: say ${{AWS::Partition}}")
