"""Erasers: each finds the items that one store has of a person, and deletes them (docs/rules.md, rule 10).

An eraser has `find`, which returns keys or items to delete, and `remove`, which deletes them. An export reads
`items` of an ItemEraser. LeadErasureStarter begins the erasure of a lead when a source asks for it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol, runtime_checkable

from adapters.platform.items import Item, encode_item
from adapters.platform.tables import WRITE_MAX, chunks, delete_all, get_all, query_all
from adapters.postgresql.sql import Database, call_function
from adapters.privacy.erasure_jobs import ErasureJobs, begin_erasure
from adapters.privacy.tombstones import Tombstones
from rules.leads.identity import Identity
from rules.privacy.erasures import Person


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


@dataclass(frozen=True, slots=True)
class PartErasers:
    """A part's erasers, and what is counted of its users."""

    settings: Mapping[str, type]  # further settings of whoever erases
    # Returns erasers by store, of a client of DynamoDB, what returns one of SNS, and the settings
    erasers: Callable[[Any, Callable[[], Any], Any], Mapping[str, Any]]
    rates: tuple[str, ...]  # kinds of calls that are counted per caller
    counters: Callable[[str], tuple[str, ...]]  # returns a user's other counters in the table Limits


@dataclass(frozen=True, slots=True)
class IdentityEraser:
    """Erases the identities of leads in PostgreSQL (sql/identity/0001_identity.sql)."""

    database: Database

    def person(self, named: Person) -> Person:
        """Return a lead with the leaves and identities of `named`, and all that are stored with them."""
        call = "person(%s::text[], %s::text, %s::text[], %s::text[])"
        stored = self.database.run(lambda connection: call_function(connection, call, _values(named)))
        leads = dict.fromkeys([*named.leads, *stored["leads"]])
        stored_identities = [(channel, name) for channel, name in stored["identities"]]
        return Person(
            named.digest,
            organization=named.organization or stored["organization"] or "",
            leads=tuple(leads),
            identities=tuple(dict.fromkeys([*named.identities, *stored_identities])),
        )

    def find(self, person: Person) -> list[Person]:
        """Return the person once for each row in the database: an erasure counts what `find` returns."""
        if not person.leads:
            return []
        call = "person_rows(%s::text[], %s::text, %s::text[], %s::text[])"
        values = _values(person)
        rows = int(self.database.run(lambda connection: call_function(connection, call, values)))
        return [person] * rows

    def remove(self, items: Iterable[Person]) -> None:
        """Delete the rows of the person."""
        call = "erase(%s::text[], %s::text, %s::text[], %s::text[])"
        for person in dict.fromkeys(items):
            values = _values(person)
            self.database.run(partial(call_function, call=call, values=values))


def _values(person: Person) -> list[Any]:
    channels = [channel for channel, _ in person.identities]
    names = [name for _, name in person.identities]
    return [list(person.leads), person.organization, channels, names]


@dataclass(frozen=True, slots=True)
class LeadErasureStarter:
    """Begins the erasure of a lead that an organization names. ErasureFunction continues it."""

    identities: IdentityEraser
    jobs: ErasureJobs
    tombstones: Tombstones

    def begin(
        self, organization: str, identities: Collection[Identity], leaves: Iterable[str], now: datetime
    ) -> str | None:
        """Begin an erasure; returns its id, or None if no lead is found and no customer's id is given.

        identities: as the source names the lead. leaves: leads that the lead's orders have led to. Raises
        ErasureMoved, and the errors of the stores.

        The person is found by the customer's id, else by the address. A phone number is used only if the
        source gives neither: a household shares a number, and nobody else of it may be erased. Tombstones are
        set for the person's stored identities, and for the customer's id even if no lead has it.
        """
        nobody = Person("", organization=organization)  # begin_erasure computes the digests
        ordering_leads = self.identities.person(replace(nobody, leads=tuple(leaves))).leads
        leads = tuple(dict.fromkeys([*ordering_leads, *self._leads_named(nobody, identities)]))
        stored_identities = self.identities.person(replace(nobody, leads=leads)).identities
        customers = _of_channel(identities, "customer")
        all_identities = tuple(dict.fromkeys([*stored_identities, *customers]))
        if not leads and not all_identities:
            return None
        person = replace(nobody, leads=leads, identities=all_identities)
        return begin_erasure(self.jobs, self.tombstones, next(iter(leads), ""), person, now)

    def _leads_named(self, nobody: Person, identities: Collection[Identity]) -> tuple[str, ...]:
        """Return the leads of the first kind of identity that leads to any. nobody: has the organization."""
        customers, emails, phones = (
            _of_channel(identities, channel) for channel in ("customer", "email", "phone")
        )
        for candidates in (customers, emails, () if customers or emails else phones):
            leads = self.identities.person(replace(nobody, identities=candidates)).leads
            if leads:
                return leads
        return ()


def _of_channel(identities: Iterable[Identity], channel: str) -> tuple[tuple[str, str], ...]:
    return tuple((each.channel, each.external_id) for each in identities if each.channel == channel)
