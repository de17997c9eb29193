"""What CloudFormation, IAM and Lambda would refuse of resolved stacks: by cfn-lint, and what it cannot see.

What functions call is held against the resolved roles and networks in tests/infra/test_calls.py. cfn-lint is imported
where it is used: it takes a second, and each process of `make test` imports this module.
"""

import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from typing import Any

from infra.intrinsics import REGION, references
from infra.stacks import STACK_ID, Stack
from tests.support.declared import listed

Stacks = Mapping[str, Stack]


def faults(stacks: Stacks) -> list[str]:
    """Return what is wrong, but for what cfn-lint says: a sentence each, the logical id first."""
    if found := [each for stack in stacks.values() for each in reference_faults(stack)]:
        return found  # the others follow references
    checks = (policy_faults, role_faults, network_faults, layer_faults, retention_faults, quota_faults)
    return [each for stack in stacks.values() for check in checks for each in check(stack)]


def _of_type(stack: Stack, *kinds: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    return ((name, each["Properties"]) for name, each in stack.resources.items() if each["Type"] in kinds)


# ---- cfn-lint

# `sam deploy` packages nested templates; zones are resolved to stand-ins.
IGNORED = ["W3002", "W3010"]
# IAM and Lambda are shown ARNs. All else is shown references, so that they are checked.
BY_ARN = ("AWS::IAM::Role", "AWS::Lambda::Permission")


@cache
def _rules() -> Any:
    from cfnlint.core import get_rules

    return get_rules([], IGNORED, [])


def cfn_lint_faults(stack: Stack) -> list[str]:
    """Return what cfn-lint says of a stack as it is resolved."""
    from cfnlint.api import ManualArgs, lint

    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {name: _written(stack, each) for name, each in stack.resources.items()},
        "Outputs": {name: {"Value": each} for name, each in stack.outputs.items()},
    }
    text = json.dumps({name: each for name, each in template.items() if each}, indent=1)
    found = lint(text, _rules(), config=ManualArgs(regions=[REGION], ignore_checks=IGNORED))
    return [f"{'.'.join(map(str, each.path or []))}: {each.message} ({each.rule.id})" for each in found]


def _written(stack: Stack, resource: Mapping[str, Any]) -> dict[str, Any]:
    shown = stack.flat(resource) if resource["Type"] in BY_ARN else resource
    return {key: each for key, each in shown.items() if each not in ([], {})}


# ---- references, and values that one parameter leaves empty while another is given


def reference_faults(stack: Stack) -> Iterator[str]:
    """Find what names something that is not made, and lists with an empty text, which no service takes."""
    for name, value in [*stack.resources.items(), *stack.outputs.items()]:
        try:
            flat = stack.flat(value)
        except ValueError as refusal:
            yield f"{name}: {refusal}"
        else:
            for key, each in _inner(flat):
                if isinstance(each, list) and "" in each:
                    yield f"{name}: {key} has an empty text: Rules should refuse these parameters"


def _inner(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Give each value within a value, with the key that it is under."""
    yield key, value
    for inner, each in value.items() if isinstance(value, dict) else ():
        yield from _inner(each, inner)
    for each in value if isinstance(value, list) else ():
        yield from _inner(each, key)


# ---- policies

# AWS's reference says `.*` of these resources, which would let a bucket pass for an object.
RESOURCES = {
    ("s3", "bucket"): "[^/]+",
    ("s3", "object"): "[^/]+/.+",
    ("dynamodb", "table"): "table/[^/]+",
    ("dynamodb", "index"): "table/[^/]+/index/.+",
    ("dynamodb", "stream"): "table/[^/]+/stream/.+",
}


def policy_faults(stack: Stack) -> Iterator[str]:
    """Find policies, of roles or of what they guard, that IAM refuses, or by which a call would fail."""
    for name, each in stack.resources.items():
        for document in (
            value for _, value in _inner(each) if isinstance(value, dict) and "Statement" in value
        ):
            flat = stack.flat(document)
            statements = listed(flat["Statement"])
            if not statements:
                yield f"{name}: a policy has no statement"
            if flat.get("Version") != "2012-10-17":
                yield f'{name}: a policy has no Version "2012-10-17"'
            yield from (f"{name}: {reason}" for one in statements for reason in _statement_faults(one))


def _statement_faults(statement: Mapping[str, Any]) -> Iterator[str]:
    for key, values in (item for each in statement.get("Condition", {}).values() for item in each.items()):
        if ":" not in key:
            yield f"a condition on {key} names no service"
        if not values or "" in listed(values):
            yield f"a condition compares {key} with nothing"
    arns = listed(statement.get("Resource", []))
    known = {action: forms for action in listed(statement["Action"]) if (forms := _arns_of(action))}
    for action, forms in known.items():
        if "*" in arns:
            if statement["Effect"] == "Allow" and not statement.keys() & {"Principal", "Condition"}:
                yield f'{action} is allowed on "*", although it could name the resource'
        elif "Principal" not in statement and not any(_is_one(arn, forms) for arn in arns):
            yield f"{action} is allowed on {arns}, on which it does not act"
    for arn in arns if len(known) == len(listed(statement["Action"])) else ():
        if arn != "*" and not any(_is_one(arn, forms) for forms in known.values()):
            yield f"{arn} is named, on which none of {[*known]} acts"


@cache
def _reference() -> Any:
    """Return AWS's service authorization reference."""
    import cfnlint.data.AdditionalSpecs
    from cfnlint.helpers import load_resource

    return load_resource(cfnlint.data.AdditionalSpecs, "Policies.json")


@cache
def _arns_of(action: str) -> tuple[str, ...]:
    """Return patterns of what an action acts on; () for nothing narrower than *."""
    service, _, name = action.lower().partition(":")
    known = _reference().get(service, {"Actions": {}})
    kinds = {
        kind.lower()
        for each, of in known["Actions"].items()
        if fnmatch(each, name)
        for kind in listed(of.get("Resources", []))
    }
    return tuple(
        _pattern(form, service, kind) for kind in kinds for form in known["Resources"][kind]["ARNFormats"]
    )


def _pattern(form: str, service: str, kind: str) -> str:
    *begin, rest = form.split(":", 5)
    parts = ["[^:]*" if "$" in each else f"({re.escape(each)}|\\*)" for each in begin]
    return ":".join([*parts, RESOURCES.get((service, kind), rest)])


def _is_one(arn: str, forms: tuple[str, ...]) -> bool:
    """Tell whether an ARN, whose * may stand for several parts of a name, is of one of these forms."""
    return any(re.fullmatch(form, each) for form in forms for each in (arn, arn.replace("*", "x/x")))


def role_faults(stack: Stack) -> Iterator[str]:
    """Find roles beyond IAM's quotas, and permissions that name another service's ARN."""
    for name, properties in _of_type(stack, "AWS::IAM::Role"):
        inline = stack.flat([each["PolicyDocument"] for each in properties.get("Policies", [])])
        size = sum(len(json.dumps(each, separators=(",", ":"))) for each in inline)
        if size > 10_240:
            yield f"{name}: its inline policies have {size} characters; 10240 are allowed"
        if len(managed := properties.get("ManagedPolicyArns", [])) > 10:
            yield f"{name}: it has {len(managed)} managed policies; 10 are allowed"
    for name, properties in _of_type(stack, "AWS::Lambda::Permission"):
        principal = stack.flat(properties["Principal"]).removesuffix(".amazonaws.com")
        source = stack.flat(properties.get("SourceArn", f"::{principal}"))
        if source.split(":")[2] != {"apigateway": "execute-api"}.get(principal, principal):
            yield f"{name}: it lets {principal} invoke the function for {source}"


# ---- functions

DATABASE = re.compile(r"(rediss?|postgresql)://")


def network_faults(stack: Stack) -> Iterator[str]:
    """Find functions that cannot reach a database or a cache that they are given."""
    for name, properties in _of_type(stack, "AWS::Lambda::Function"):
        subnets = properties.get("VpcConfig", {}).get("SubnetIds", [])
        networks = [stack.nested[each] for each, _ in references(subnets) if each in stack.nested]
        is_open = any([*_of_type(each, "AWS::EC2::NatGateway")] for each in networks)
        for key, value in properties.get("Environment", {}).get("Variables", {}).items():
            ours = any(each in stack.nested for each, _ in references(value))
            if not DATABASE.match(str(stack.flat(value))):
                continue
            if ours and not subnets:
                yield f"{name}: its {key} is in a network, but it is in none"
            if networks and not ours and not is_open:
                yield f"{name}: its {key} is outside, but its network has no way out"


def layer_faults(stack: Stack) -> Iterator[str]:
    """Find layers that are for another Python or architecture than the functions that have them."""
    for name, properties in _of_type(stack, "AWS::Lambda::Function"):
        for layer in (
            stack.resources[each]["Properties"] for each, _ in references(properties.get("Layers"))
        ):
            runs_on = (properties["Runtime"], *properties.get("Architectures", ["x86_64"]))
            built = (*layer["CompatibleRuntimes"], *layer["CompatibleArchitectures"])
            if built != runs_on:
                yield f"{name}: it runs on {runs_on}, but its layer is for {built}"


def quota_faults(stack: Stack, allowed: int = 900) -> Iterator[str]:
    """Find reserved concurrency beyond what an account may reserve: 900 usually, and nothing in a new one."""
    reserved = sum(
        int(each.get("ReservedConcurrentExecutions", 0))
        for _, each in _of_type(stack, "AWS::Lambda::Function")
    )
    if reserved > allowed:
        yield f"functions reserve {reserved} concurrent executions; {allowed} can be reserved"


# ---- what a failed first deployment would leave behind, or could not remove

# Stacks of two regions find it by its name. The next deployment leaves WitnessRegion empty, and makes none.
SHARED_NAMES = ("Register",)


def retention_faults(stack: Stack) -> Iterator[str]:
    """Find what is kept although its creation failed, and fixed names of what is kept."""
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

    for name, each in stack.resources.items():
        policy, kind = each.get("DeletionPolicy", ""), each["Type"]
        if policy == "Retain" and kind != "AWS::Lambda::Version":  # SAM keeps these; they cost nothing
            yield f"{name}: a failed first deployment leaves it behind: its policy must be RetainExceptOnCreate"
        if policy in ("RetainExceptOnCreate", "Snapshot") and name not in SHARED_NAMES:
            schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, kind).schema
            for key in (path.rpartition("/")[2] for path in schema["primaryIdentifier"]):
                fixed = str(stack.flat(each["Properties"].get(key, STACK_ID)))
                if not any(part in fixed for part in STACK_ID.rpartition("/")[2].split("-")):
                    yield f"{name}: it is kept, so the next deployment finds its {key} {fixed} taken"


def protection_faults(stacks: Stacks) -> Iterator[str]:
    """Find deletion protection, with which a failed first deployment cannot be rolled back."""
    for stack in stacks.values():
        for name, each in stack.resources.items():
            for key in ("DeletionProtection", "DeletionProtectionEnabled"):
                if str(each["Properties"].get(key, "")).lower() in ("true", "active"):
                    yield f"{name}: it has deletion protection"
