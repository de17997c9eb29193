"""Compares a stored item with the item that must be stored, attribute by attribute."""

from dataclasses import dataclass
from typing import Any

from adapters.platform.items import Item, decode_item


@dataclass(frozen=True, slots=True)
class Difference:
    """A wrong attribute of one item, or of one row of the lake."""

    user_id: str
    table: str  # UserStreaks, DailyActivity or UserStats; or `lake.ENTITY` for a row
    key: str  # a day's date; "" for a profile or stats
    attribute: str  # "": the whole item is missing, or must not exist
    stored: Any  # None: the attribute is absent
    expected: Any  # None: the attribute must be absent


def differences(
    user_id: str, table: str, key: str, stored: Item | None, expected: Item | None
) -> list[Difference]:
    """Return in what an item differs from the expected one. A value of another type is a difference, too."""
    if stored == expected:
        return []
    # decode_item leaves a value of a type that this system does not use in its wire format.
    stored_values, expected_values = decode_item(stored or {}), decode_item(expected or {})
    if stored is None or expected is None:
        return [Difference(user_id, table, key, "", stored_values or None, expected_values or None)]
    return [
        Difference(user_id, table, key, name, stored_values.get(name), expected_values.get(name))
        for name in sorted(stored.keys() | expected.keys())
        if stored.get(name) != expected.get(name)
    ]
