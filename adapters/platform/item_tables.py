"""Items of any table, read by key, and changed only if they still are what was read: tables that are filled
again (rule 21), and items that have become old.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from adapters.platform.aws import THROTTLES, pauses
from adapters.platform.items import Item
from adapters.platform.tables import WRITE_MAX, Unprocessed, chunks, get_all, query_all, scan_all

WRITERS = 16
ATTEMPTS_MAX = 8
CHANGED = "ConditionalCheckFailed"


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


Statement = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgedItems:
    """A table's items.

    A deletion or a change costs a write of the item, whether it still is what was read or not; one of an item
    that is gone costs a unit.
    """

    dynamodb: Any
    table: str
    key: tuple[str, ...]  # the names of its key, the partition's first

    def held(self, keys: Iterable[Mapping[str, str]]) -> list[Item]:
        """Return the items that are there, strongly consistent. keys: none twice. Raises Unprocessed."""
        return get_all(self.dynamodb, self.table, keys)

    def delete(self, items: Sequence[Item]) -> int:
        """Delete items, each if all that was read of it is as it was; returns how many others there were.

        Deleting what is gone changes nothing. Raises Unprocessed; it is safe to repeat.
        """
        change = f'DELETE FROM "{self.table}"'  # noqa: S608 (a setting names the table)
        return self._carry_out([self._statement(change, (), each, each) for each in items])

    def remove(self, items: Sequence[Item], name: str, left: Sequence[tuple[str, Any]] = ()) -> int:
        """Take an attribute out of items, each if it has the value that was read; returns how many had not.

        left: attributes to set instead, one of each item, by name and wire format. Raises Unprocessed.
        """
        made = []
        for index, each in enumerate(items):
            instead = left[index : index + 1]
            sets = "".join(f' SET "{other}" = ?' for other, _ in instead)
            change = f'UPDATE "{self.table}"{sets} REMOVE "{name}"'
            made.append(self._statement(change, [value for _, value in instead], each, (name,)))
        return self._carry_out(made)

    def _statement(
        self, change: str, values: Sequence[Any], before: Item, compared: Iterable[str]
    ) -> Statement:
        names = [*self.key, *(name for name in compared if name not in self.key)]
        conditions = " AND ".join(f'"{name}" = ?' for name in names)
        return {
            "Statement": f"{change} WHERE {conditions}",
            "Parameters": [*values, *(before[name] for name in names)],
        }

    def _carry_out(self, statements: Sequence[Statement]) -> int:
        changed = 0
        for chunk in chunks(statements, WRITE_MAX):
            left = chunk
            for _ in pauses(ATTEMPTS_MAX):
                codes = self._run_statements(left)
                changed += codes.count(CHANGED)
                left = [each for each, code in zip(left, codes, strict=True) if code in THROTTLES]
                if not left:
                    break
            else:
                raise Unprocessed(f"{self.table}: items left unchanged")
        return changed

    def _run_statements(self, statements: Sequence[Statement]) -> list[str]:
        answer = self.dynamodb.batch_execute_statement(Statements=list(statements))
        errors = [each.get("Error", {}) for each in answer["Responses"]]
        codes = [str(each.get("Code", "")) for each in errors]
        for code, error in zip(codes, errors, strict=True):
            if code and code != CHANGED and code not in THROTTLES:
                raise RuntimeError(f"{self.table}: {code}: {error.get('Message')}")
        return codes
