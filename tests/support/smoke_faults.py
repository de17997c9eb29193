"""Faults that are planted in the answers that `streakline smoke` gets."""

from collections.abc import Callable
from typing import Any

Answer = tuple[int, Any]
# A step, how requests start, and what becomes of their answer while the step runs
Fault = tuple[str, str, Callable[[int, Any], Answer]]


def becomes(status: int, answer: Any = None) -> Callable[[int, Any], Answer]:
    return lambda _, before: (status, before if answer is None else answer)


def with_(**values: Any) -> Callable[[int, Any], Answer]:
    return lambda status, before: (status, before | values)
