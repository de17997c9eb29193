"""Reserved concurrency. A new account may have 10 executions, of which some must stay free."""

from collections.abc import Iterator

from infra.lint.checks.found import Stacks, made
from infra.lint.faults import Fault

PROPERTY = "ReservedConcurrentExecutions"


def faults(stacks: Stacks) -> Iterator[Fault]:
    """Find reservations. They are for those who ask for them, so only the defaults are looked at."""
    reserved = {
        name: int(properties[PROPERTY])
        for _, name, properties in made(stacks, "AWS::Lambda::Function")
        if PROPERTY in properties
    }
    if sum(reserved.values()):
        where = f"{len(reserved)} functions reserve {sum(reserved.values())} concurrent executions"
        yield Fault("/", ", ".join(reserved), f"{where}; a new account may have 10, so nothing can be made")
