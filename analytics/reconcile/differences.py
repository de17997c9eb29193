"""What is stored against what must be, attribute by attribute."""

from dataclasses import dataclass
from typing import Any

from adapters.platform.items import Item, decode_item


@dataclass(frozen=True, slots=True)
class Difference:
    """One attribute of one item that is not what it must be. None: the attribute is absent.

    table: UserStreaks, DailyActivity or UserStats; or `lake.ENTITY`, of which a row is not what it must be.
    key: the day's date, or "" for a profile. attribute: "" if the whole item is missing, or is one too many.
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
    """Compare an item with what it must be. A value of another type is a difference too."""
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
    """Return plain values. A value of a type that we do not use stays in its wire format."""
    return decode_item(stored or {})
