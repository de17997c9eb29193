"""What is kept of a person in DynamoDB's tables: found by key, and deleted. Indexes follow their tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.items import Item, item
from adapters.platform.tables import WRITE_MAX, Unprocessed, chunks, get_all, query_all
from adapters.privacy.person import Person

ATTEMPTS_MAX = 8
Partitions = Callable[[Person], Iterable[str]]
Keys = Callable[[Person], Iterable[dict[str, str]]]


@dataclass(frozen=True, slots=True)
class PartitionEraser:
    """All items of some partitions. key: the names of the table's key, the partition's first."""

    dynamodb: Any
    table: str
    key: tuple[str, ...]
    partitions: Partitions

    def items(self, person: Person) -> Iterator[Item]:
        """Yield the whole items, strongly consistent."""
        for partition in self.partitions(person):
            yield from query_all(self.dynamodb, **self._query(partition))

    def find(self, person: Person) -> list[Item]:
        """Return the items' keys."""
        names = {f"#k{place}": name for place, name in enumerate(self.key)}
        keys = (
            each
            for partition in self.partitions(person)
            for each in query_all(
                self.dynamodb,
                **{**self._query(partition), "ExpressionAttributeNames": names},
                ProjectionExpression=", ".join(names),
            )
        )
        return [{name: each[name] for name in self.key} for each in keys]

    def remove(self, found: Sequence[Item]) -> None:
        """Delete what was found."""
        delete_all(self.dynamodb, self.table, found)

    def _query(self, partition: str) -> dict[str, Any]:
        return {
            "TableName": self.table,
            "KeyConditionExpression": "#k0 = :partition",
            "ExpressionAttributeNames": {"#k0": self.key[0]},
            "ExpressionAttributeValues": item({":partition": partition}),
            "ConsistentRead": True,
        }


@dataclass(frozen=True, slots=True)
class KeyEraser:
    """Items whose whole keys follow from the person. keys: may name items that are not there."""

    dynamodb: Any
    table: str
    keys: Keys

    def items(self, person: Person) -> Iterator[Item]:
        """Yield the whole items, strongly consistent."""
        for some in chunks(self._distinct(person), WRITE_MAX):
            yield from get_all(self.dynamodb, self.table, some)

    def find(self, person: Person) -> list[Item]:
        """Return the keys of those that are there."""
        return [
            {name: each[name] for name in key}
            for some in chunks(self._distinct(person), WRITE_MAX)
            for each in get_all(self.dynamodb, self.table, some)
            for key in some[:1]
        ]

    def remove(self, found: Sequence[Item]) -> None:
        """Delete what was found."""
        delete_all(self.dynamodb, self.table, found)

    def _distinct(self, person: Person) -> list[dict[str, str]]:
        return list({tuple(each.values()): each for each in self.keys(person)}.values())


def delete_all(dynamodb: Any, table: str, keys: Sequence[Item]) -> None:
    """Delete items by key; those that are not there do no harm. Raises Unprocessed."""
    for chunk in chunks(keys, WRITE_MAX):
        request: dict[str, Any] = {table: [{"DeleteRequest": {"Key": each}} for each in chunk]}
        for _ in pauses(ATTEMPTS_MAX):
            request = dynamodb.batch_write_item(RequestItems=request).get("UnprocessedItems") or {}
            if not request:
                break
        else:
            raise Unprocessed(f"{table}: items left undeleted")
