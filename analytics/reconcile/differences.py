"""What is stored against what must be, attribute by attribute."""

from dataclasses import dataclass
from typing import Any

from adapters.platform.items import Item, plain


@dataclass(frozen=True, slots=True)
class Difference:
    """One attribute of one item that is not what it must be; None: it is absent.

    table: UserStreaks or DailyActivity. key: the item's date, or "". attribute: "" where the whole
    item is missing, or one too many.
    """

    user_id: str
    table: str
    key: str
    attribute: str
    stored: Any
    expected: Any


def differences(
    user_id: str, table: str, key: str, stored: Item | None, expected: Item | None
) -> list[Difference]:
    """Compare an item with what it must be, types included."""
    if stored == expected:
        return []
    was, must = _readable(stored), _readable(expected)
    if stored is None or expected is None:
        return [Difference(user_id, table, key, "", was or None, must or None)]
    return [
        Difference(user_id, table, key, name, was.get(name), must.get(name))
        for name in sorted(stored.keys() | expected.keys())
        if stored.get(name) != expected.get(name)
    ]


def _readable(stored: Item | None) -> dict[str, Any]:
    """Plain values; a value of a type that is not ours stays in its wire format."""
    return plain(stored or {})
