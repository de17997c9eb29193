"""A stored item against the item that must be there, attribute by attribute."""

from dataclasses import dataclass
from typing import Any

from adapters.platform.items import Item, decode_item


@dataclass(frozen=True, slots=True)
class Difference:
    """One attribute of one item, or of one row of the lake, that is not what it must be."""

    user_id: str
    table: str  # UserStreaks, DailyActivity or UserStats; or `lake.ENTITY` for a row
    key: str  # a day's date; "" for a profile or stats
    attribute: str  # "": the whole item is missing, or must not be there
    stored: Any  # stored, expected: None if the attribute is absent
    expected: Any


def differences(
    user_id: str, table: str, key: str, stored: Item | None, expected: Item | None
) -> list[Difference]:
    """Return in what an item differs from what it must be. A value of another type is a difference, too."""
    if stored == expected:
        return []
    stored_values, expected_values = _readable(stored), _readable(expected)
    if stored is None or expected is None:
        return [Difference(user_id, table, key, "", stored_values or None, expected_values or None)]
    return [
        Difference(user_id, table, key, name, stored_values.get(name), expected_values.get(name))
        for name in sorted(stored.keys() | expected.keys())
        if stored.get(name) != expected.get(name)
    ]


def _readable(stored: Item | None) -> dict[str, Any]:
    """Return plain values. A value of a type that we do not use stays in its wire format."""
    return decode_item(stored or {})
