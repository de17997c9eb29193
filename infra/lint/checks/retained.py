"""What a failed first deployment would leave behind, or could not remove."""

from collections.abc import Iterator, Mapping
from typing import Any

from infra.lint.checks.found import Stacks
from infra.lint.faults import Fault
from infra.lint.placeholders import STACK_ID
from infra.lint.resolved import Stack
from infra.lint.shipped import identifiers

# SAM keeps a function's versions, for the alias to go back to. They cost nothing and go with the function.
BY_SAM = ("AWS::Lambda::Version",)
KEPT = ("Retain", "RetainExceptOnCreate", "Snapshot")
PROTECTIONS = ("DeletionProtection", "DeletionProtectionEnabled")
UNIQUE = STACK_ID.rpartition("/")[2].split("-")
LEFT = "a failed first deployment leaves it behind: its DeletionPolicy must be RetainExceptOnCreate"
WORDS = "name it by a part of AWS::StackId, or let CloudFormation choose"
# Stacks of two regions find it by its name. The next deployment leaves WitnessRegion empty, and makes none.
SHARED_NAMES = ("Register",)


def faults(stacks: Stacks) -> Iterator[Fault]:
    """Find resources that are kept although their creation failed, and fixed names of what is kept."""
    for stack in stacks.values():
        for name, resource in stack.resources.items():
            if resource.get("DeletionPolicy") == "Retain" and resource["Type"] not in BY_SAM:
                yield Fault(stack.path, name, LEFT)
            if resource.get("DeletionPolicy") in KEPT and name not in SHARED_NAMES:
                yield from _fixed(stack, name, resource)


def protected(stacks: Stacks) -> Iterator[Fault]:
    """Find deletion protection. It is for sets with which somebody may deploy for the first time."""
    for stack in stacks.values():
        for name, resource in stack.resources.items():
            values = [str(stack.flat(resource["Properties"].get(each, ""))).lower() for each in PROTECTIONS]
            if {"true", "active"} & {*values}:
                reason = "it has deletion protection, so a failed first deployment cannot be rolled back"
                yield Fault(stack.path, name, reason)


def _fixed(stack: Stack, name: str, resource: Mapping[str, Any]) -> Iterator[Fault]:
    for each in identifiers(resource["Type"]):
        value = resource["Properties"].get(each)
        text = str(stack.flat(value))
        if value is not None and not any(part in text for part in UNIQUE):
            yield Fault(
                stack.path, name, f"it is kept, so the next deployment finds its {each} {text} taken: {WORDS}"
            )
