"""Queues that functions read. Lambda wants a message hidden for as long as the function may run."""

from collections.abc import Iterator
from typing import Any

from infra.lint.checks.found import Stacks, made, on_aws, referred
from infra.lint.faults import Fault
from infra.lint.resolved import Stack

SECONDS = 30  # of visibility, and 3 of a function's time, where nothing is said


def faults(stacks: Stacks) -> Iterator[Fault]:
    """Find queues whose visibility timeout is shorter than the timeout of a function that reads them."""
    for stack, _, properties in _mappings(stacks):
        queue = referred(stack, properties.get("EventSourceArn"), "AWS::SQS::Queue")
        function = _function(stack, properties.get("FunctionName"))
        if queue in stack.resources and function in stack.resources:
            hidden = int(stack.resources[queue]["Properties"].get("VisibilityTimeout", SECONDS))
            runs = int(stack.resources[function]["Properties"].get("Timeout", 3))
            if hidden < runs:
                reason = f"a message is hidden for {hidden} s, but {function} may run for {runs} s"
                yield Fault(stack.path, queue, reason)


def _mappings(stacks: Stacks) -> Iterator[tuple[Stack, str, Any]]:
    """Return the mappings on AWS. The emulator takes any timeout, and a laptop does not wait for minutes."""
    return iter(made(stacks, "AWS::Lambda::EventSourceMapping") if on_aws(stacks) else ())


def _function(stack: Stack, value: Any) -> str:
    """Return the logical id of a function that a value names, be it by an alias."""
    alias = referred(stack, value, "AWS::Lambda::Alias")
    named = stack.resources[alias]["Properties"]["FunctionName"] if alias in stack.resources else value
    return referred(stack, named, "AWS::Lambda::Function")
