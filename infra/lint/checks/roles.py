"""What IAM and Lambda demand of a role or permission as a whole."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from infra.lint.checks.found import Stacks, made
from infra.lint.faults import Fault
from infra.lint.resolved import Stack

# IAM's quotas. White space does not count.
INLINE_CHARACTERS_MAX = 10_240
TRUST_CHARACTERS_MAX = 2_048
MANAGED_MAX = 10
BY_SAM = "AWSLambdaVPCAccessExecutionRole"
# The service in a permission's SourceArn, where it is not the principal's own name.
SOURCES = {"apigateway": "execute-api"}


def faults(stacks: Stacks) -> Iterator[Fault]:
    """Find roles beyond IAM's quotas or with a policy twice, and permissions for another service's ARN."""
    for stack, name, properties in made(stacks, "AWS::IAM::Role"):
        yield from (Fault(stack.path, name, reason) for reason in _role(stack, properties))
    for stack, name, properties in made(stacks, "AWS::Lambda::Permission"):
        principal = str(stack.flat(properties.get("Principal", ""))).removesuffix(".amazonaws.com")
        source = str(stack.flat(properties.get("SourceArn", "")))
        wanted = SOURCES.get(principal, principal)
        if source and source.split(":")[2:3] != [wanted]:
            yield Fault(
                stack.path,
                name,
                f"it lets {principal} invoke the function for {source}, which is not {wanted}'s",
            )


def _role(stack: Stack, properties: Mapping[str, Any]) -> Iterator[str]:
    managed = [str(each) for each in stack.flat(properties.get("ManagedPolicyArns", []))]
    for arn in _twice(managed):
        why = ": SAM adds it itself as soon as VpcConfig is named" if arn.endswith(BY_SAM) else ""
        yield f"it has the managed policy {arn} twice{why}"
    if len(managed) > MANAGED_MAX:
        yield f"it has {len(managed)} managed policies; {MANAGED_MAX} are allowed"
    inline = properties.get("Policies", [])
    for policy in _twice([str(stack.flat(each["PolicyName"])) for each in inline]):
        yield f"it has two policies named {policy}"
    size = sum(_characters(stack, each["PolicyDocument"]) for each in inline)
    if size > INLINE_CHARACTERS_MAX:
        yield f"its inline policies have {size} characters; {INLINE_CHARACTERS_MAX} are allowed"
    trust = _characters(stack, properties.get("AssumeRolePolicyDocument", {}))
    if trust > TRUST_CHARACTERS_MAX:
        yield f"its trust policy has {trust} characters; {TRUST_CHARACTERS_MAX} are allowed"


def _twice(names: list[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _characters(stack: Stack, document: Any) -> int:
    return len(json.dumps(stack.flat(document), separators=(",", ":")))
