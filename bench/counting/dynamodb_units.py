"""DynamoDB's arithmetic: how large items are, and what writes and reads of them cost in units.

The rules are those of the developer guide: "Item sizes and formats", "Read and write operations".
"""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from adapters.platform.items import Item

WRITE_UNIT_BYTES = 1024
READ_UNIT_BYTES = 4096
# What DynamoDB adds to each item, and to each entry of an index, when it bills storage.
STORED_OVERHEAD_BYTES = 100
CONTAINER_BYTES = 3
ELEMENT_BYTES = 1
KeyNames = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index of a table."""

    name: str
    key_names: KeyNames
    projected: frozenset[str] | None  # names of attributes; None: all

    def entry(self, item: Item | None) -> Item | None:
        """Return the index's entry for an item; None if the item lacks one of the index's keys."""
        if item is None or any(key not in item for key in self.key_names):
            return None
        return {
            name: value for name, value in item.items() if self.projected is None or name in self.projected
        }

    def units(self, before: Item | None, after: Item | None) -> int:
        """Return the index's write units for a change of an item."""
        old, new = self.entry(before), self.entry(after)
        if old == new:
            return 0
        if old is None or new is None or all(old[key] == new[key] for key in self.key_names):
            return write_units(old, new)
        return write_units(old) + write_units(new)  # an entry whose key changes is deleted and put


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table's keys and indexes."""

    name: str
    key_names: KeyNames
    indexes: tuple[Index, ...]
    has_stream: bool

    def key_of(self, item: Mapping[str, Any]) -> Item:
        """Return an item's key."""
        return {name: item[name] for name in self.key_names}

    def units(self, before: Item | None, after: Item | None) -> dict[str, int]:
        """Return a change's write units by `table` and `table/index`. The table's own are at least one."""
        units_by_index = {
            f"{self.name}/{index.name}": units
            for index in self.indexes
            if (units := index.units(before, after))
        }
        return {self.name: write_units(before, after), **units_by_index}

    def stored_bytes(self, item: Item | None) -> int:
        """Return the bytes that are billed for an item and its entries in indexes."""
        entries = [item, *(index.entry(item) for index in self.indexes)]
        return sum(item_bytes(entry) + STORED_OVERHEAD_BYTES for entry in entries if entry is not None)


def shape_of(definition: Mapping[str, Any]) -> TableShape:
    """Return the shape of a table from CreateTable's arguments."""
    key_names = _key_names(definition)
    indexes = tuple(_index(each, key_names) for each in definition.get("GlobalSecondaryIndexes", ()))
    return TableShape(definition["TableName"], key_names, indexes, "StreamSpecification" in definition)


def _index(definition: Mapping[str, Any], table_keys: KeyNames) -> Index:
    key_names, projection = _key_names(definition), definition["Projection"]
    projected = frozenset({*key_names, *table_keys, *projection.get("NonKeyAttributes", ())})
    has_all = projection["ProjectionType"] == "ALL"
    return Index(definition["IndexName"], key_names, None if has_all else projected)


def _key_names(definition: Mapping[str, Any]) -> KeyNames:
    return tuple(each["AttributeName"] for each in definition["KeySchema"])


def item_bytes(item: Item | None) -> int:
    """Return the bytes of an item: names and values; 0 for None."""
    return sum(_attribute_bytes(name, value) for name, value in (item or {}).items())


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
        return CONTAINER_BYTES + sum(
            ELEMENT_BYTES + _attribute_bytes(name, each) for name, each in inner.items()
        )
    if kind == "L":
        return CONTAINER_BYTES + sum(ELEMENT_BYTES + value_bytes(each) for each in inner)
    if kind == "SS":  # a set has no overhead of its own
        return sum(len(each.encode()) for each in inner)
    if kind in ("BOOL", "NULL"):
        return 1
    raise TypeError(f"no table of ours holds the type {kind}")


def _attribute_bytes(name: str, value: Mapping[str, Any]) -> int:
    return len(name.encode()) + value_bytes(value)


def _number_bytes(text: str) -> int:
    """Return about a byte for two significant digits, one more, and one for a sign."""
    digits = text.lstrip("-").replace(".", "").strip("0")
    return ceil(max(len(digits), 1) / 2) + 1 + text.startswith("-")


def write_units(*images: Item | None) -> int:
    """Return a write's units from the item before and after it: the larger of both counts."""
    return max(1, ceil(max(map(item_bytes, images)) / WRITE_UNIT_BYTES))


def read_units(size_bytes: int, *, consistent: bool) -> float:
    """Return the units of reading so many bytes; a read of nothing costs as much as one of 4 KB."""
    units = max(1, ceil(size_bytes / READ_UNIT_BYTES))
    return float(units) if consistent else units / 2
