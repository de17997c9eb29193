"""Holds measured units against the file of them: what a path costs more, or less, than it says."""

from collections.abc import Iterator, Mapping
from typing import Any

ACCEPT = "make units"
Functions = Mapping[str, Mapping[str, float]]


def differences(planned: Mapping[str, Any], measured: Mapping[str, Any]) -> list[str]:
    """Return a line for each figure that has changed; [] if the file says what was measured.

    Each names path, function and unit, with the figure before and after.
    """
    told = [*_paths(planned["paths"], measured["paths"])]
    told += [*_functions("row", planned["rows"], measured["rows"])]
    return told


def message(told: list[str]) -> str:
    """Return what to say of the differences, with the command that accepts them."""
    return "\n".join(["a path's units have changed:", *told, f"if that is meant: {ACCEPT}"])


def _paths(planned: Mapping[str, Functions], measured: Mapping[str, Functions]) -> Iterator[str]:
    for path in sorted(planned.keys() | measured.keys()):
        yield from sorted(_functions(path, planned.get(path, {}), measured.get(path, {})))


def _functions(path: str, planned: Functions, measured: Functions) -> Iterator[str]:
    for function in sorted(planned.keys() | measured.keys()):
        before, after = planned.get(function, {}), measured.get(function, {})
        for name in sorted(before.keys() | after.keys()):
            old, new = before.get(name, 0), after.get(name, 0)
            if old != new:
                yield f"  {path}, {function}: {name} was {old:g} and is {new:g}{_sense(old, new)}"


def _sense(old: float, new: float) -> str:
    return " (dearer)" if new > old else " (cheaper)"
