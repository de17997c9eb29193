"""AWS's limits of templates and of what they make. No quota raises them."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from infra.lint.checks.found import Stacks, made
from infra.lint.expanded import expanded
from infra.lint.faults import Fault
from infra.lint.resolved import Stack

SECTIONS_MAX = {
    "Resources": 500,
    "Parameters": 200,
    "Outputs": 200,
    "Mappings": 200,
    "bytes": 1_000_000,  # in S3, where `sam deploy` puts templates; 51,200 if it were sent with the call
}
DEFINITION_BYTES_MAX = 1_048_576  # of a state machine, inline or in S3
ENVIRONMENT_BYTES_MAX = 4_096
LAYERS_MAX = 5


def faults(stacks: Stacks) -> Iterator[Fault]:
    """Find stacks, functions and state machines beyond a limit."""
    for stack in stacks.values():
        yield from _stack(stack)
    for stack, name, properties in made(stacks, "AWS::Lambda::Function"):
        yield from (Fault(stack.path, name, reason) for reason in _function(stack, properties))
    for stack, name, properties in made(stacks, "AWS::StepFunctions::StateMachine"):
        size = _definition_bytes(stack, properties)
        if size > DEFINITION_BYTES_MAX:
            reason = f"its definition has {size} bytes; {DEFINITION_BYTES_MAX} are allowed"
            yield Fault(stack.path, name, reason)


def _stack(stack: Stack) -> Iterator[Fault]:
    for section, count in _sizes(stack.template).items():
        if count > SECTIONS_MAX[section]:
            yield Fault(stack.path, section, f"the template has {count}; {SECTIONS_MAX[section]} are allowed")


@cache
def _sizes(template: Path) -> dict[str, int]:
    """Return the size of each section after the transform, and the bytes, before it if these are more."""
    after = expanded(template, {})
    size = max(template.stat().st_size, len(json.dumps(after, separators=(",", ":"))))
    return {each: size if each == "bytes" else len(after.get(each, {})) for each in SECTIONS_MAX}


def _function(stack: Stack, properties: Mapping[str, Any]) -> Iterator[str]:
    variables = stack.flat(properties.get("Environment", {}).get("Variables", {}))
    size = sum(len(f"{key}{value}".encode()) for key, value in variables.items())
    if size > ENVIRONMENT_BYTES_MAX:
        yield f"its environment has {size} bytes; {ENVIRONMENT_BYTES_MAX} are allowed"
    layers = len(properties.get("Layers", []))
    if layers > LAYERS_MAX:
        yield f"it has {layers} layers; {LAYERS_MAX} are allowed"


def _definition_bytes(stack: Stack, properties: Mapping[str, Any]) -> int:
    uploaded = properties.get("DefinitionS3Location", {}).get("Key")
    if uploaded:
        return int((stack.template.parent / uploaded).stat().st_size)
    inline = properties.get("DefinitionString", properties.get("Definition", ""))
    text = stack.flat(inline)
    return len((text if isinstance(text, str) else json.dumps(text)).encode())
