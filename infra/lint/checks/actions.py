"""Actions of policies: whether they exist, and whether the statement's resources are what they act on."""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from typing import Any

from infra.lint import shipped
from infra.lint.checks.found import Stacks, listed, on_aws
from infra.lint.checks.policies import policies
from infra.lint.faults import Fault

# AWS's reference says `.*` of these resources, which would let a bucket pass for an object.
RESOURCES = {
    ("s3", "bucket"): "[^/]+",
    ("s3", "object"): "[^/]+/.+",
    ("dynamodb", "table"): "table/[^/]+",
    ("dynamodb", "index"): "table/[^/]+/index/.+",
    ("dynamodb", "stream"): "table/[^/]+/stream/.+",
}
# The reference names no resource for mobile push, but SNS asks for these: its refusals name them.
UNLISTED = {
    "sns:createplatformendpoint": ["arn:[^:]*:sns:[^:]*:[^:]*:app/.+"],
    "sns:deleteendpoint": ["arn:[^:]*:sns:[^:]*:[^:]*:endpoint/.+"],
    "sns:getendpointattributes": ["arn:[^:]*:sns:[^:]*:[^:]*:endpoint/.+"],
    "sns:setendpointattributes": ["arn:[^:]*:sns:[^:]*:[^:]*:endpoint/.+"],
}


def faults(stacks: Stacks) -> Iterator[Fault]:
    """Find actions that do not exist, and resources that do not match. The emulator has its own actions."""
    if not on_aws(stacks):
        return
    for policy in policies(stacks):
        for statement in listed(policy.document["Statement"]):
            for reason in _statement(statement, narrow=policy.kind == "identity"):
                yield Fault(policy.stack, policy.logical_id, f"its policy {policy.name} {reason}")


def _statement(statement: Mapping[str, Any], *, narrow: bool) -> Iterator[str]:
    named = [str(each) for each in listed(statement.get("Action", []))]
    types = {action: arns_of(action) for action in named if action != "*" and exists(action)}
    for action in named:
        if action != "*" and action not in types:
            yield f"names an action that does not exist: {action}"
    arns = [str(each) for each in listed(statement.get("Resource", [])) if each]
    if "*" in arns:
        narrower = ", ".join(action for action, forms in types.items() if forms)
        if narrow and narrower and statement.get("Effect") == "Allow" and "Condition" not in statement:
            yield f'allows {narrower} on "*", although it could name the resource'
    elif arns and "*" not in named:
        yield from _unmatched(types, arns)


def _unmatched(types: Mapping[str, list[str]], arns: list[str]) -> Iterator[str]:
    for action, forms in types.items():
        if not forms:
            yield f'allows {action} on {arns[0]}, but it acts on nothing narrower than "*"'
        elif not any(_matches(arn, forms) for arn in arns):
            yield f"allows {action} on {', '.join(arns)}, which is nothing that it acts on"
    for arn in arns:
        if types and all(types.values()) and not any(_matches(arn, forms) for forms in types.values()):
            yield f"names {arn}, on which none of its actions acts: {', '.join(types)}"


def _found(action: str) -> Iterator[tuple[Mapping[str, Any], str, str]]:
    """Give all that an action with wildcards stands for: what is known of its service, and both names."""
    service, _, name = action.lower().partition(":")
    known = shipped.actions().get(service, {"Actions": {}})
    yield from ((known, service, each) for each in known["Actions"] if fnmatch(each, name))


@cache
def exists(action: str) -> bool:
    """Tell whether an action, or one that its wildcards stand for, exists."""
    return any(_found(action))


@cache
def arns_of(action: str) -> list[str]:
    """Return regular expressions of what an action acts on; [] if that is nothing narrower than *."""
    result = list(UNLISTED.get(action.lower(), []))
    for known, service, name in _found(action):
        for kind in listed(known["Actions"][name].get("Resources", [])):
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
