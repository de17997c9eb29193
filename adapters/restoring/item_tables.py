"""A table that is filled again: what is there stays, or is made to be what it must be (rule 21)."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from adapters.platform.batches import query_all, scan_all
from adapters.platform.items import Item

WRITERS = 16


class ItemTable:
    """One table. keys: its partition key and perhaps its sort key."""

    def __init__(self, dynamodb: Any, table: str, keys: Sequence[str]) -> None:
        self._dynamodb, self._table, self._keys = dynamodb, table, tuple(keys)

    def put_missing(self, items: Iterable[Item]) -> int:
        """Put items whose keys the table does not have; returns how many those were."""
        listed = list(items)
        if len(listed) < 2:
            return sum(map(self._put_new, listed))
        with ThreadPoolExecutor(WRITERS) as pool:
            return sum(pool.map(self._put_new, listed))

    def make_equal(self, first: str, items: Iterable[Item]) -> int:
        """Let a partition have these items and no others; returns how many were put or deleted.

        first: the partition key's value.
        """
        wanted = {self._key_of(each): each for each in items}
        found = {self._key_of(each): each for each in self._of(first)}
        for key in found.keys() - wanted.keys():
            self.delete(found[key])
        changed = [each for key, each in wanted.items() if found.get(key) != each]
        for each in changed:
            self.put(each)
        return len(changed) + len(found.keys() - wanted.keys())

    def put(self, new: Item) -> None:
        """Put an item, whatever is there."""
        self._dynamodb.put_item(TableName=self._table, Item=new)

    def delete(self, stored: Item) -> None:
        """Delete an item."""
        self._dynamodb.delete_item(TableName=self._table, Key={name: stored[name] for name in self._keys})

    def all_items(self) -> Iterator[Item]:
        """Yield all items, strongly consistent."""
        return scan_all(self._dynamodb, TableName=self._table, ConsistentRead=True)

    def first_of(self, stored: Item) -> str:
        """Return the value of an item's partition key."""
        return str(next(iter(stored[self._keys[0]].values())))

    def _of(self, first: str) -> Iterator[Item]:
        return query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="#first = :first",
            ExpressionAttributeNames={"#first": self._keys[0]},
            ExpressionAttributeValues={":first": {"S": first}},
            ConsistentRead=True,
        )

    def _key_of(self, stored: Item) -> tuple[str, ...]:
        return tuple(str(next(iter(stored[name].values()))) for name in self._keys)

    def _put_new(self, new: Item) -> bool:
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item=new,
                ConditionExpression="attribute_not_exists(#first)",
                ExpressionAttributeNames={"#first": self._keys[0]},
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True
