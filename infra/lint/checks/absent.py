"""References to what a set of parameters does not make. CloudFormation refuses them at once."""

from collections.abc import Iterator

from infra.lint.checks.found import Stacks
from infra.lint.faults import Fault
from infra.lint.resolved import Stack, references

OUTPUT = "Outputs."


def faults(stacks: Stacks) -> Iterator[Fault]:
    """Find resources and outputs that name a resource, or a nested stack's output, that is not made."""
    for stack in stacks.values():
        for name, resource in stack.resources.items():
            yield from _named(stack, name, resource)
            for after in resource["DependsOn"]:
                yield from _missing(stack, name, after, "")
        for name, value in stack.outputs.items():
            yield from _named(stack, f"output {name}", value)


def _named(stack: Stack, name: str, value: object) -> Iterator[Fault]:
    for logical_id, attribute in dict.fromkeys(references(value)):
        if not logical_id.startswith("AWS::"):
            yield from _missing(stack, name, logical_id, attribute)


def _missing(stack: Stack, name: str, logical_id: str, attribute: str) -> Iterator[Fault]:
    if logical_id in stack.absent:
        because = f"its condition {stack.absent[logical_id]} does not hold"
        yield Fault(stack.path, name, f"it names {logical_id}, which is not made: {because}")
    elif logical_id not in stack.resources:
        yield Fault(stack.path, name, f"it names {logical_id}, which no template declares")
    elif logical_id in stack.nested and attribute.startswith(OUTPUT):
        output = attribute.removeprefix(OUTPUT)
        if output not in stack.nested[logical_id].outputs:
            yield Fault(stack.path, name, f"it names the output {output} of {logical_id}, which is not there")
