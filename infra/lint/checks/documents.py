"""Policy documents as strictly as IAM reads them: what it calls MalformedPolicyDocument is a fault here."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.lint.checks.found import Stacks, listed
from infra.lint.checks.policies import Policy, policies
from infra.lint.faults import Fault

VERSION = "2012-10-17"
KEYS = {
    *("Sid", "Effect", "Condition", "Principal", "NotPrincipal"),
    *("Action", "NotAction", "Resource", "NotResource"),
}
ARN = re.compile(r"arn:[a-z*-]+:[a-z0-9*-]+:[a-z0-9*-]*:(\d{12}|aws|\*)?:\S+")
COMPARED = {
    "String": ("Equals", "NotEquals", "EqualsIgnoreCase", "NotEqualsIgnoreCase", "Like", "NotLike"),
    "Numeric": ("Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals"),
    "Date": ("Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals"),
    "Arn": ("Equals", "NotEquals", "Like", "NotLike"),
    "IpAddress": ("",),
    "NotIpAddress": ("",),
    "Binary": ("Equals",),
    "Bool": ("",),
}
OPERATORS = {kind + way for kind, ways in COMPARED.items() for way in ways}


def faults(stacks: Stacks) -> Iterator[Fault]:
    """Find documents that IAM would refuse, whatever they allow."""
    for policy in policies(stacks):
        for reason in _refused(policy):
            yield Fault(policy.stack, policy.logical_id, f"its policy {policy.name} {reason}")


def _refused(policy: Policy) -> Iterator[str]:
    if policy.document.get("Version") != VERSION:
        yield f'has no Version "{VERSION}"'
    statements = listed(policy.document["Statement"])
    if not statements:
        yield "has no statement: IAM refuses an empty list"
    sids = [each["Sid"] for each in statements if "Sid" in each]
    if len(sids) != len(set(sids)):
        yield f"has a Sid twice: {', '.join(sids)}"
    for statement in statements:
        yield from _statement(policy.kind, statement)


def _statement(kind: str, statement: Mapping[str, Any]) -> Iterator[str]:
    if statement.get("Effect") not in ("Allow", "Deny"):
        yield "has a statement without an Effect of Allow or Deny"
    for key in statement.keys() - KEYS:
        yield f"has a key that IAM does not know: {key}"
    for one in ("Action", *(() if kind == "trust" else ("Resource",))):
        values = [*listed(statement.get(one, [])), *listed(statement.get(f"Not{one}", []))]
        if not values:
            yield f"has a statement without {one}"
        if one in statement and f"Not{one}" in statement:
            yield f"has a statement with both {one} and Not{one}"
        yield from (f"has a statement with an empty {one}" for each in values if not each)
    yield from _who(kind, statement)
    for each in [*listed(statement.get("Resource", [])), *listed(statement.get("NotResource", []))]:
        if each not in ("*", "") and not ARN.fullmatch(str(each)):
            yield f"has a Resource that is no ARN: {each}"
    yield from _condition(statement.get("Condition", {}))


def _who(kind: str, statement: Mapping[str, Any]) -> Iterator[str]:
    named = statement.get("Principal", statement.get("NotPrincipal"))
    if kind == "identity" and named is not None:
        yield "has a Principal, which a role's own policy may not have"
    if kind != "identity" and not named:
        yield "has a statement without Principal"
    if kind == "trust" and ("Resource" in statement or "NotResource" in statement):
        yield "has a Resource, which a trust policy may not have"


def _condition(condition: Mapping[str, Any]) -> Iterator[str]:
    for operator, compared in condition.items():
        plain = re.sub(r"^For(AllValues|AnyValue):", "", operator).removesuffix("IfExists")
        if plain not in OPERATORS and operator != "Null":
            yield f"has a condition operator that does not exist: {operator}"
        for key, values in compared.items():
            if ":" not in key:
                yield f"has a condition on {key}, which names no service: aws:{key}?"
            if not all(str(each) for each in listed(values)) or values == []:
                yield f"has a condition that compares {key} with nothing"
