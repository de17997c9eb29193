"""Keys and indexes of the template's tables, and what a write of an item costs in each index."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.platform.items import Item
from bench.counting.item_sizes import write_units

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index. kept: the attributes that it projects; None: all of them."""

    name: str
    keys: Key
    kept: frozenset[str] | None

    def entry(self, item: Item | None) -> Item | None:
        """Return what the index holds of an item; None if it lacks one of the index's keys."""
        if item is None or any(key not in item for key in self.keys):
            return None
        return {name: value for name, value in item.items() if self.kept is None or name in self.kept}

    def units(self, before: Item | None, after: Item | None) -> int:
        """Return the write units of a change: an entry whose key changes is deleted and put."""
        old, new = self.entry(before), self.entry(after)
        if old == new:
            return 0
        if old is None or new is None:
            return write_units(old, new)
        if all(old[key] == new[key] for key in self.keys):
            return write_units(old, new)
        return write_units(old) + write_units(new)


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table. keys: the names of its key's attributes."""

    name: str
    keys: Key
    indexes: tuple[Index, ...]
    has_stream: bool

    def key_of(self, item: Mapping[str, Any]) -> Item:
        """Return an item's key."""
        return {name: item[name] for name in self.keys}

    def units(self, before: Item | None, after: Item | None) -> dict[str, int]:
        """Return the write units of a change by table and `table/index`; a change of nothing costs one."""
        found = {self.name: write_units(before, after)}
        return found | {
            f"{self.name}/{index.name}": units
            for index in self.indexes
            if (units := index.units(before, after))
        }


def shape_of(definition: Mapping[str, Any]) -> TableShape:
    """Read CreateTable's arguments."""
    keys = _keys(definition)
    return TableShape(
        definition["TableName"],
        keys,
        tuple(_index(each, keys) for each in definition.get("GlobalSecondaryIndexes", ())),
        "StreamSpecification" in definition,
    )


def _keys(definition: Mapping[str, Any]) -> Key:
    return tuple(each["AttributeName"] for each in definition["KeySchema"])


def _index(definition: Mapping[str, Any], table_keys: Key) -> Index:
    keys, projection = _keys(definition), definition["Projection"]
    kept = frozenset({*keys, *table_keys, *projection.get("NonKeyAttributes", ())})
    return Index(definition["IndexName"], keys, None if projection["ProjectionType"] == "ALL" else kept)
