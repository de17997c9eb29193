"""How two books differ, in lines for people."""

from collections.abc import Iterator, Mapping
from typing import Any


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
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_shown(each)}" for name, each in value.items()) + "}"
    return str(value)
