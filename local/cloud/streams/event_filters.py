"""Lambda's event filter patterns, as far as the template uses them: exact values, exists and prefix."""

from collections.abc import Sequence
from typing import Any


def is_wanted(record: dict[str, Any], patterns: Sequence[dict[str, Any]]) -> bool:
    """Whether a consumer with these patterns gets a record: without patterns it gets all."""
    return not patterns or any(matches(each, record) for each in patterns)


def matches(pattern: dict[str, Any], record: Any) -> bool:
    """Whether a record fits a pattern: each field of the pattern must match one of its alternatives."""
    return all(_fits(wanted, record, name) for name, wanted in pattern.items())


def _fits(wanted: Any, record: Any, name: str) -> bool:
    held = isinstance(record, dict) and name in record
    if isinstance(wanted, dict):
        return matches(wanted, record[name] if held else {})  # of nothing there is no field, which may fit
    return any(_is(alternative, record[name] if held else None, held=held) for alternative in wanted)


def _is(alternative: Any, value: Any, *, held: bool) -> bool:
    if not isinstance(alternative, dict):
        return held and bool(value == alternative)
    if "exists" in alternative:
        return bool(alternative["exists"]) is held
    if "prefix" in alternative:
        return isinstance(value, str) and value.startswith(alternative["prefix"])
    raise ValueError(f"the poller does not know the filter {alternative}")
