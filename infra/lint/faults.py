"""A fault that the lint found, and the fewest parameters with which it occurs; and what several checks
look for in stacks.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.lint.stacks import Stack, references


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """stack: its path, such as /Network, or a file. place: a logical id or a section. reason: a sentence."""

    stack: str
    place: str
    reason: str

    def __str__(self) -> str:
        """Return one line: /Network Vpc: reason."""
        return f"{self.stack} {self.place}: {self.reason}"


def fewest_parameters(
    parameters: Mapping[str, str], still: Callable[[Mapping[str, str]], bool]
) -> dict[str, str]:
    """Return parameters without those that a fault does not need. still: whether it occurs with fewer."""
    left = dict(parameters)
    for name in parameters:
        fewer = {other: value for other, value in left.items() if other != name}
        left = fewer if still(fewer) else left
    return left


def parameters_in_words(parameters: Mapping[str, str]) -> str:
    """Return parameters as words: A=1 and B=nothing."""
    return (
        " and ".join(f"{name}={value or 'nothing'}" for name, value in parameters.items()) or "the defaults"
    )


# What several checks look for in stacks.


Stacks = Mapping[str, Stack]


def resources_of(stacks: Stacks, *kinds: str) -> Iterator[tuple[Stack, str, Mapping[str, Any]]]:
    """Give the resources of some types, or all: their stack, logical id and properties."""
    for stack in stacks.values():
        for name, resource in stack.resources.items():
            if not kinds or resource["Type"] in kinds:
                yield stack, name, resource["Properties"]


def on_aws(stacks: Stacks) -> bool:
    """Tell whether the set is for AWS, and not for the laptop's emulator."""
    return stacks["/"].conditions.get("OnAws", True)


def as_list(value: Any) -> list[Any]:
    """Return what may be one or a list as a list."""
    return value if isinstance(value, list) else [value]


def referred_id(stack: Stack, value: Any, kind: str) -> str:
    """Return the logical id of the first resource of that type that a value names, or ""."""
    return next((name for name, _ in references(value) if stack.types.get(name) == kind), "")


def texts_in(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give all strings within a value, with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts_in(item, (*path, str(key)))
