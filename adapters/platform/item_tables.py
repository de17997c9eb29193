"""Items of any table: ItemTable fills tables again (rule 21), and AgedItems deletes items that are too old.

AgedItems changes an item only if it still is what was read. ItemTable is used while nobody else writes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from adapters.platform.items import Item
from adapters.platform.tables import REFUSED, get_all, query_all, refused_statements, scan_all, write_if

WRITERS = 16
Statement = dict[str, Any]  # of PartiQL


class ItemTable:
    """One table that a restore fills again."""

    def __init__(self, dynamodb: Any, table: str, keys: Sequence[str]) -> None:
        """keys: the names of its partition key and perhaps its sort key."""
        self._dynamodb, self._table, self._keys = dynamodb, table, tuple(keys)

    def put_missing(self, items: Iterable[Item]) -> int:
        """Put items whose keys the table does not have; returns how many those were."""
        with ThreadPoolExecutor(WRITERS) as pool:
            return sum(pool.map(self._put_new, items))

    def make_equal(self, partition: str, items: Iterable[Item]) -> int:
        """Make a partition have these items and no others; returns how many were put or deleted.

        partition: the partition key's value.
        """
        restored = {self._key_of(item): item for item in items}
        stored = {self._key_of(item): item for item in self._items_of(partition)}
        surplus = [item for key, item in stored.items() if key not in restored]
        for item in surplus:
            self.delete(item)
        different = [item for key, item in restored.items() if stored.get(key) != item]
        for item in different:
            self.put(item)
        return len(different) + len(surplus)

    def stored_keys(self, keys: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
        """Return those of the keys that the table has, strongly consistent. keys: none twice, all of text.

        Raises Unprocessed.
        """
        named_keys = (dict(zip(self._keys, key, strict=True)) for key in keys)
        return {self._key_of(item) for item in get_all(self._dynamodb, self._table, named_keys)}

    def put(self, new: Item) -> None:
        """Put an item. It replaces a stored one with the same key."""
        self._dynamodb.put_item(TableName=self._table, Item=new)

    def delete(self, stored: Item) -> None:
        """Delete an item."""
        self._dynamodb.delete_item(TableName=self._table, Key={name: stored[name] for name in self._keys})

    def all_items(self) -> Iterator[Item]:
        """Yield all items, strongly consistent."""
        return scan_all(self._dynamodb, TableName=self._table, ConsistentRead=True)

    def partition_of(self, stored: Item) -> str:
        """Return the value of an item's partition key."""
        return self._key_of(stored)[0]

    def _items_of(self, partition: str) -> Iterator[Item]:
        return query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="#partition = :partition",
            ExpressionAttributeNames={"#partition": self._keys[0]},
            ExpressionAttributeValues={":partition": {"S": partition}},
            ConsistentRead=True,
        )

    def _key_of(self, stored: Item) -> tuple[str, ...]:
        """Return the values of an item's key, without their types."""
        return tuple(str(next(iter(stored[name].values()))) for name in self._keys)

    def _put_new(self, new: Item) -> bool:
        """Put an item; returns False if the table has its key already."""
        return write_if(
            self._dynamodb.put_item,
            TableName=self._table,
            Item=new,
            ConditionExpression="attribute_not_exists(#partition)",
            ExpressionAttributeNames={"#partition": self._keys[0]},
        )


@dataclass(frozen=True, slots=True)
class AgedItems:
    """The old items of a table. An item is deleted or shortened only if it has not changed since it was read.

    A change costs a write of the item, even if its condition refuses it. If the item is gone, it costs one
    unit.
    """

    dynamodb: Any
    table: str
    key: tuple[str, ...]  # the names of its key, the partition's first

    def read(self, keys: Iterable[Mapping[str, str]]) -> list[Item]:
        """Return the items that exist, strongly consistent. keys: none twice. Raises Unprocessed."""
        return get_all(self.dynamodb, self.table, keys)

    def delete(self, items: Sequence[Item]) -> int:
        """Delete each item that still has all attributes as they were read; returns how many items do not.

        Raises Unprocessed; it is safe to repeat.
        """
        change = f'DELETE FROM "{self.table}"'  # noqa: S608 (a setting names the table)
        return self._carry_out([self._statement(change, (), item, item) for item in items])

    def remove(self, items: Sequence[Item], name: str, replacements: Sequence[tuple[str, Any]] = ()) -> int:
        """Remove an attribute from each item in which it still has the value that was read.

        replacements: for each item an attribute to set instead, as name and value in DynamoDB's wire format;
        (): none. Returns how many items have another value. Raises Unprocessed.
        """
        statements = []
        for item, replacement in zip_longest(items, replacements):
            set_clause, values = "", list[Any]()
            if replacement:
                other_name, value = replacement
                set_clause, values = f' SET "{other_name}" = ?', [value]
            change = f'UPDATE "{self.table}"{set_clause} REMOVE "{name}"'
            statements.append(self._statement(change, values, item, (name,)))
        return self._carry_out(statements)

    def _statement(
        self, change: str, values: Sequence[Any], before: Item, compared: Iterable[str]
    ) -> Statement:
        """Return a change of one item, on condition that the compared attributes are as before."""
        names = [*self.key, *(name for name in compared if name not in self.key)]
        conditions = " AND ".join(f'"{name}" = ?' for name in names)
        return {
            "Statement": f"{change} WHERE {conditions}",
            "Parameters": [*values, *(before[name] for name in names)],
        }

    def _carry_out(self, statements: Sequence[Statement]) -> int:
        return len(refused_statements(self.dynamodb, self.table, statements, REFUSED))
