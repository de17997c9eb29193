"""Checks of templates as a whole: AWS's limits, references to what is not made, values left empty, and
what a failed first deployment would leave.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from infra.lint.faults import Fault, Stacks, resources_of, texts_in
from infra.lint.stacks import STACK_ID, Stack, expanded_template, references, shipped_identifiers

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


def limit_faults(stacks: Stacks) -> Iterator[Fault]:
    """Find stacks, functions and state machines beyond a limit."""
    for stack in stacks.values():
        yield from _stack_faults(stack)
    for stack, name, properties in resources_of(stacks, "AWS::Lambda::Function"):
        yield from (Fault(stack.path, name, reason) for reason in _function_faults(stack, properties))
    for stack, name, properties in resources_of(stacks, "AWS::StepFunctions::StateMachine"):
        size = _definition_bytes(stack, properties)
        if size > DEFINITION_BYTES_MAX:
            reason = f"its definition has {size} bytes; {DEFINITION_BYTES_MAX} are allowed"
            yield Fault(stack.path, name, reason)


def _stack_faults(stack: Stack) -> Iterator[Fault]:
    for section, count in _sizes(stack.template).items():
        if count > SECTIONS_MAX[section]:
            yield Fault(stack.path, section, f"the template has {count}; {SECTIONS_MAX[section]} are allowed")


@cache
def _sizes(template: Path) -> dict[str, int]:
    """Return the size of each section after the transform, and the bytes, before it if these are more."""
    after = expanded_template(template, {})
    size = max(template.stat().st_size, len(json.dumps(after, separators=(",", ":"))))
    return {each: size if each == "bytes" else len(after.get(each, {})) for each in SECTIONS_MAX}


def _function_faults(stack: Stack, properties: Mapping[str, Any]) -> Iterator[str]:
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


# References to what a set of parameters does not make. CloudFormation refuses them at once.


OUTPUT = "Outputs."


def absence_faults(stacks: Stacks) -> Iterator[Fault]:
    """Find resources and outputs that name a resource, or a nested stack's output, that is not made."""
    for stack in stacks.values():
        for name, resource in stack.resources.items():
            yield from _reference_faults(stack, name, resource)
            for after in resource["DependsOn"]:
                yield from _missing_faults(stack, name, after, "")
        for name, value in stack.outputs.items():
            yield from _reference_faults(stack, f"output {name}", value)


def _reference_faults(stack: Stack, name: str, value: object) -> Iterator[Fault]:
    for logical_id, attribute in dict.fromkeys(references(value)):
        if not logical_id.startswith("AWS::"):
            yield from _missing_faults(stack, name, logical_id, attribute)


def _missing_faults(stack: Stack, name: str, logical_id: str, attribute: str) -> Iterator[Fault]:
    if logical_id in stack.absent:
        because = f"its condition {stack.absent[logical_id]} does not hold"
        yield Fault(stack.path, name, f"it names {logical_id}, which is not made: {because}")
    elif logical_id not in stack.resources:
        yield Fault(stack.path, name, f"it names {logical_id}, which no template declares")
    elif logical_id in stack.nested and attribute.startswith(OUTPUT):
        output = attribute.removeprefix(OUTPUT)
        if output not in stack.nested[logical_id].outputs:
            yield Fault(stack.path, name, f"it names the output {output} of {logical_id}, which is not there")


# What a failed first deployment would leave behind, or could not remove.


# SAM keeps a function's versions, for the alias to go back to. They cost nothing and go with the function.
BY_SAM = ("AWS::Lambda::Version",)
KEEPING_POLICIES = ("Retain", "RetainExceptOnCreate", "Snapshot")
PROTECTIONS = ("DeletionProtection", "DeletionProtectionEnabled")
UNIQUE = STACK_ID.rpartition("/")[2].split("-")
LEFT = "a failed first deployment leaves it behind: its DeletionPolicy must be RetainExceptOnCreate"
WORDS = "name it by a part of AWS::StackId, or let CloudFormation choose"
# Stacks of two regions find it by its name. The next deployment leaves WitnessRegion empty, and makes none.
SHARED_NAMES = ("Register",)


def retention_faults(stacks: Stacks) -> Iterator[Fault]:
    """Find resources that are kept although their creation failed, and fixed names of what is kept."""
    for stack in stacks.values():
        for name, resource in stack.resources.items():
            if resource.get("DeletionPolicy") == "Retain" and resource["Type"] not in BY_SAM:
                yield Fault(stack.path, name, LEFT)
            if resource.get("DeletionPolicy") in KEEPING_POLICIES and name not in SHARED_NAMES:
                yield from _fixed_name_faults(stack, name, resource)


def protection_faults(stacks: Stacks) -> Iterator[Fault]:
    """Find deletion protection. It is for sets with which somebody may deploy for the first time."""
    for stack in stacks.values():
        for name, resource in stack.resources.items():
            values = [str(stack.flat(resource["Properties"].get(each, ""))).lower() for each in PROTECTIONS]
            if {"true", "active"} & {*values}:
                reason = "it has deletion protection, so a failed first deployment cannot be rolled back"
                yield Fault(stack.path, name, reason)


def _fixed_name_faults(stack: Stack, name: str, resource: Mapping[str, Any]) -> Iterator[Fault]:
    for each in shipped_identifiers(resource["Type"]):
        value = resource["Properties"].get(each)
        text = str(stack.flat(value))
        if value is not None and not any(part in text for part in UNIQUE):
            yield Fault(
                stack.path, name, f"it is kept, so the next deployment finds its {each} {text} taken: {WORDS}"
            )


# Values that follow from one parameter left empty while another is given.


def value_faults(stacks: Stacks) -> Iterator[Fault]:
    """Find lists with an empty string in them. No service takes one: Rules should refuse the parameters."""
    for stack, name, properties in resources_of(stacks):
        for path, text in texts_in(properties):
            if not text and path[-1].isdigit() and not any(key.startswith("Fn::") for key in path):
                reason = (
                    f"its {'.'.join(path[:-1])} has an empty string: Rules should refuse these parameters"
                )
                yield Fault(stack.path, name, reason)
