"""DynamoDB's arithmetic: how large an item is, and what a write or a read of it costs.

The rules are those of the developer guide: "Item sizes and formats", "Read and write operations".
"""

from base64 import b64decode
from collections.abc import Mapping
from math import ceil
from typing import Any

from adapters.platform.items import Item

WRITE_UNIT_BYTES = 1024
READ_UNIT_BYTES = 4096
# What DynamoDB adds to each item, and to each entry of an index, when it bills storage.
STORED_OVERHEAD_BYTES = 100
CONTAINER_BYTES = 3
ELEMENT_BYTES = 1


def value_bytes(value: Mapping[str, Any]) -> int:
    """Return the bytes of one value in wire format, such as {"S": "abc"}: 3."""
    ((kind, inner),) = value.items()
    if kind == "S":
        return len(inner.encode())
    if kind == "N":
        return _number_bytes(inner)
    if kind == "B":  # on the wire it is base64
        return len(b64decode(inner) if isinstance(inner, str) else inner)
    if kind == "M":
        return CONTAINER_BYTES + sum(ELEMENT_BYTES + _named(name, each) for name, each in inner.items())
    if kind == "L":
        return CONTAINER_BYTES + sum(ELEMENT_BYTES + value_bytes(each) for each in inner)
    if kind in ("BOOL", "NULL"):
        return 1
    raise TypeError(f"no table of ours holds the type {kind}")


def _number_bytes(text: str) -> int:
    """About a byte for two significant digits, and one more; a sign takes one, too."""
    digits = text.lstrip("-").replace(".", "").strip("0")
    return ceil(max(len(digits), 1) / 2) + 1 + text.startswith("-")


def _named(name: str, value: Mapping[str, Any]) -> int:
    return len(name.encode()) + value_bytes(value)


def item_bytes(item: Item | None) -> int:
    """Return the bytes of an item: names and values; 0 for None."""
    return sum(_named(name, value) for name, value in (item or {}).items())


def write_units(*images: Item | None) -> int:
    """Return the write units of an item of which these are the images before and after: the larger counts."""
    return max(1, ceil(max(map(item_bytes, images)) / WRITE_UNIT_BYTES))


def read_units(size_bytes: int, *, consistent: bool) -> float:
    """Return the read units of so many bytes; a read of nothing costs as much as one of 4 KB."""
    units = max(1, ceil(size_bytes / READ_UNIT_BYTES))
    return float(units) if consistent else units / 2
