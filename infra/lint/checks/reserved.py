"""Reserved concurrency. A new account may have 10 executions, a usual one 1,000, of which 100 stay free."""

from collections.abc import Iterator

from infra.lint.checks.found import Stacks, made
from infra.lint.faults import Fault

PROPERTY = "ReservedConcurrentExecutions"
RESERVED_MAX = 900


def faults(stacks: Stacks) -> Iterator[Fault]:
    """Find reservations. They are for those who ask for them, so only the defaults are looked at."""
    reserved = _reserved(stacks)
    if sum(reserved.values()):
        where = f"{len(reserved)} functions reserve {sum(reserved.values())} concurrent executions"
        yield Fault("/", ", ".join(reserved), f"{where}; a new account may have 10, so nothing can be made")


def beyond_the_quota(stacks: Stacks) -> Iterator[Fault]:
    """Find reservations that sum up to more than an account with the usual quota can reserve."""
    reserved = _reserved(stacks)
    if (total := sum(reserved.values())) > RESERVED_MAX:
        where = f"{len(reserved)} functions reserve {total} concurrent executions"
        yield Fault(
            "/", ", ".join(reserved), f"{where}; an account with the usual quota may reserve {RESERVED_MAX}"
        )


def _reserved(stacks: Stacks) -> dict[str, int]:
    return {
        name: int(properties[PROPERTY])
        for _, name, properties in made(stacks, "AWS::Lambda::Function")
        if PROPERTY in properties
    }
