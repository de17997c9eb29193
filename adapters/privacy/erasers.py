"""Erasers: each finds the items that one store has of a person, and deletes them (docs/rules.md, rule 10).

An eraser has `find`, which returns keys or items to delete, and `remove`, which deletes them. An export reads
`items` of an ItemEraser, and `rows` of a PersonFinder.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from adapters.platform.items import Item, encode_item
from adapters.platform.tables import WRITE_MAX, chunks, delete_all, get_all, query_all
from rules.parts import Part
from rules.privacy.erasures import Person


class StoreEraser(Protocol):
    """The eraser of one store. Deleting an item twice is no error."""

    def find(self, person: Person) -> Sequence[Any]:
        """Return keys of all items that the store has of a person now."""

    def remove(self, items: Sequence[Any]) -> None:
        """Delete the items that find has returned."""


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients that reach the stores."""

    dynamodb: Any
    s3: Callable[[], Any]  # s3, sns: return the client, which is made when needed
    sns: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class ItemEraser:
    """Erases a person's items of one table."""

    dynamodb: Any
    table: str
    key: tuple[str, ...]  # the names of the table's key
    items: Callable[[Person], Iterable[Item]]  # returns the items

    def find(self, person: Person) -> list[Item]:
        """Return the items' keys."""
        return [{name: item[name] for name in self.key} for item in self.items(person)]

    def remove(self, items: Sequence[Item]) -> None:
        """Delete what find has returned."""
        delete_all(self.dynamodb, self.table, items)


def partition_eraser(
    dynamodb: Any, table: str, key: tuple[str, ...], partitions: Callable[[Person], Iterable[str]]
) -> ItemEraser:
    """Return the eraser of all items of a person's partitions. key: the partition's name first."""

    def items(person: Person) -> Iterator[Item]:
        for partition in partitions(person):
            yield from query_all(
                dynamodb,
                TableName=table,
                KeyConditionExpression="#key = :partition",
                ExpressionAttributeNames={"#key": key[0]},  # some names are reserved words of DynamoDB
                ExpressionAttributeValues=encode_item({":partition": partition}),
                ConsistentRead=True,
            )

    return ItemEraser(dynamodb, table, key, items)


def items_of_keys(dynamodb: Any, table: str, keys: Iterable[dict[str, str]]) -> Iterator[Item]:
    """Yield the items that have these keys. A key may come twice."""
    distinct = {tuple(key.values()): key for key in keys}.values()
    for chunk in chunks(distinct, WRITE_MAX):
        yield from get_all(dynamodb, table, chunk)


@runtime_checkable
class NamesInLake(Protocol):
    """An eraser whose items alone tell the names that the lake has for what they are of."""

    lake_kind: str  # of the names: rules/privacy/erasures.py

    def lake_names(self, items: Sequence[Item]) -> Iterable[str]:
        """Return the names of items that find has returned."""


@runtime_checkable
class PersonFinder(Protocol):
    """An eraser of the store that says which names are one person."""

    def person(self, named: Person) -> Person:
        """Return a person with all names that are stored with those of `named`."""

    def rows(self, person: Person) -> Iterable[Mapping[str, Any]]:
        """Return what an export has of the store."""


def _none(*_: Any) -> Iterable[Any]:
    return ()


@dataclass(frozen=True, slots=True)
class PartErasers:
    """A part's erasers, and what other stores have because of it."""

    part: Part
    settings: Mapping[str, type]  # further settings of whoever erases
    # Returns erasers by store, of the clients and the settings
    erasers: Callable[[Clients, Any], Mapping[str, StoreEraser]]
    rates: tuple[str, ...] = ()  # kinds of calls that are counted per caller
    counters: Callable[[str], Iterable[str]] = _none  # returns a user's other counters in the table Limits
    holders: Callable[[Person], Iterable[str]] = _none  # returns the person's holders of notifications
    # These two take the part's own erasers by store, and the person. They return keys of the table
    # IdempotencyKeys, and prefixes of keys of the payload bucket.
    claims: Callable[[Mapping[str, StoreEraser], Person], Iterable[dict[str, str]]] = _none
    folders: Callable[[Mapping[str, StoreEraser], Person], Iterable[str]] = _none
