"""The differences between two documents of rules, as lines for people."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

# Texts that would be ambiguous to a person without quotation marks. YAML itself would quote some more.
NEEDS_QUOTES = re.compile(r'[\x00-\x1f\x7f-\x9f,\[\]{}"]|^\s|\s$|^$')


def differences(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield a line for each value that two documents do not share, in the order of their keys.

    Example: `event_types.CHECK_IN.points: 5 -> 8`. path: where both documents stand in the book, with a dot
    at its end; "" if they are the book.
    """
    for name in sorted(old.keys() | new.keys()):
        value_path = f"{path}{name}"
        if name not in new:
            yield f"{value_path}: {_yaml_text(old[name])} -> gone"
        elif name not in old:
            yield f"{value_path}: new: {_yaml_text(new[name])}"
        elif isinstance(old[name], Mapping) and isinstance(new[name], Mapping):
            yield from differences(old[name], new[name], f"{value_path}.")
        elif old[name] != new[name]:
            yield f"{value_path}: {_yaml_text(old[name])} -> {_yaml_text(new[name])}"


def _yaml_text(value: Any) -> str:
    """Return a value of a document as YAML writes it in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_yaml_text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml_text, value)) + "]"
    if isinstance(value, str) and not NEEDS_QUOTES.search(value) and not _is_json(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_json(text: str) -> bool:
    """Whether a text without quotation marks would be a number, a truth value or null."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
