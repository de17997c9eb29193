"""How two books differ, in lines for people."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

# A text with none of these reads as one without quotation marks.
MARKS = re.compile(r'[\x00-\x1f\x7f-\x9f,\[\]{}"]|^\s|\s$|^$')


def differences(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield a line for each value that two documents do not share, in the order of their keys.

    Example: `event_types.CHECK_IN.points: 5 -> 8`.
    """
    for name in sorted(old.keys() | new.keys()):
        at = f"{path}{name}"
        if name not in new:
            yield f"{at}: {_shown(old[name])} -> gone"
        elif name not in old:
            yield f"{at}: new: {_shown(new[name])}"
        elif isinstance(old[name], Mapping) and isinstance(new[name], Mapping):
            yield from differences(old[name], new[name], f"{at}.")
        elif old[name] != new[name]:
            yield f"{at}: {_shown(old[name])} -> {_shown(new[name])}"


def _shown(value: Any) -> str:
    """Return a value of a document as YAML writes it in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_shown(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, str) and not MARKS.search(value) and not _is_other(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_other(text: str) -> bool:
    """Whether a text without quotation marks would be a number, a truth value or null."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
