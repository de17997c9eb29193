"""Finds policy documents, of every kind, wherever a resource has one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.lint.checks.found import Stacks, made
from infra.lint.resolved import Stack

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
    for stack, name, properties in made(stacks):
        yield from _within(stack, name, properties, "")


def _within(stack: Stack, logical_id: str, value: Any, key: str) -> Iterator[Policy]:
    if isinstance(value, dict) and "Statement" in value:
        identity = stack.types[logical_id] in IDENTITY_TYPES
        kind = "trust" if key == TRUST else "identity" if identity else "resource"
        yield Policy(stack.path, logical_id, key, kind, stack.flat(value))
    elif isinstance(value, dict):
        for inner, item in value.items():
            name = value.get("PolicyName", inner) if inner == "PolicyDocument" else inner
            yield from _within(stack, logical_id, item, str(name))
    elif isinstance(value, list):
        for item in value:
            yield from _within(stack, logical_id, item, key)
