"""Values that follow from one parameter left empty while another is given."""

from collections.abc import Iterator

from infra.lint.checks.found import Stacks, made, texts
from infra.lint.faults import Fault


def faults(stacks: Stacks) -> Iterator[Fault]:
    """Find lists with an empty string in them. No service takes one: Rules should refuse the parameters."""
    for stack, name, properties in made(stacks):
        for path, text in texts(properties):
            if not text and path[-1].isdigit() and not any(key.startswith("Fn::") for key in path):
                reason = (
                    f"its {'.'.join(path[:-1])} has an empty string: Rules should refuse these parameters"
                )
                yield Fault(stack.path, name, reason)
