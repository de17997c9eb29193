"""What several checks look for in stacks."""

from collections.abc import Iterator, Mapping
from typing import Any

from infra.lint.resolved import Stack, references

Stacks = Mapping[str, Stack]


def made(stacks: Stacks, *kinds: str) -> Iterator[tuple[Stack, str, Mapping[str, Any]]]:
    """Give the resources of some types, or all: their stack, logical id and properties."""
    for stack in stacks.values():
        for name, resource in stack.resources.items():
            if not kinds or resource["Type"] in kinds:
                yield stack, name, resource["Properties"]


def on_aws(stacks: Stacks) -> bool:
    """Tell whether the set is for AWS, and not for the laptop's emulator."""
    return stacks["/"].conditions.get("OnAws", True)


def listed(value: Any) -> list[Any]:
    """Return what may be one or a list as a list."""
    return value if isinstance(value, list) else [value]


def referred(stack: Stack, value: Any, kind: str) -> str:
    """Return the logical id of the first resource of that type that a value names, or ""."""
    return next((name for name, _ in references(value) if stack.types.get(name) == kind), "")


def texts(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give all strings within a value, with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts(item, (*path, str(key)))
