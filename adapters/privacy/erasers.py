"""Erasers: each finds what one store holds of a person, and deletes it (rule 10).

Some find items by their keys, others under other names: answers, phones, and who is who. The last class
begins the erasure of a lead when a source asks for it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.limits import subscription_counter
from adapters.platform.tables import WRITE_MAX, Unprocessed, chunks, get_all, query_all
from adapters.postgresql.sql import Database, call_function, call_in_pieces
from adapters.privacy.erasure_jobs import ErasureJobs, begin_erasure
from adapters.privacy.tombstones import Tombstones
from adapters.questions.subscription_store import KEY, keys_of, subscription_from
from rules.leads.identity import Identity
from rules.privacy.erasures import Person

ATTEMPTS_MAX = 8
Partitions = Callable[[Person], Iterable[str]]
Keys = Callable[[Person], Iterable[dict[str, str]]]


@dataclass(frozen=True, slots=True)
class PartitionEraser:
    """All items of some partitions."""

    dynamodb: Any
    table: str
    key: tuple[str, ...]  # the names of the table's key, the partition's first
    partitions: Partitions

    def items(self, person: Person) -> Iterator[Item]:
        """Yield the whole items, strongly consistent."""
        for partition in self.partitions(person):
            yield from query_all(self.dynamodb, **self._query(partition))

    def find(self, person: Person) -> list[Item]:
        """Return the items' keys."""
        names = {f"#k{index}": name for index, name in enumerate(self.key)}
        keys = (
            each
            for partition in self.partitions(person)
            for each in query_all(
                self.dynamodb,
                **{**self._query(partition), "ExpressionAttributeNames": names},
                ProjectionExpression=", ".join(names),
            )
        )
        return [{name: key[name] for name in self.key} for key in keys]

    def remove(self, items: Sequence[Item]) -> None:
        """Delete what was found."""
        delete_all(self.dynamodb, self.table, items)

    def _query(self, partition: str) -> dict[str, Any]:
        return {
            "TableName": self.table,
            "KeyConditionExpression": "#k0 = :partition",
            "ExpressionAttributeNames": {"#k0": self.key[0]},
            "ExpressionAttributeValues": encode_item({":partition": partition}),
            "ConsistentRead": True,
        }


@dataclass(frozen=True, slots=True)
class KeyEraser:
    """Items whose whole keys follow from the person."""

    dynamodb: Any
    table: str
    keys: Keys  # may name items that are not there

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

    def remove(self, items: Sequence[Item]) -> None:
        """Delete what was found."""
        delete_all(self.dynamodb, self.table, items)

    def _distinct(self, person: Person) -> list[dict[str, str]]:
        return list({tuple(key.values()): key for key in self.keys(person)}.values())


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


@dataclass(frozen=True, slots=True)
class ResponseEraser:
    """A person's answers, found by the index of their hashes."""

    dynamodb: Any
    table: str

    def find(self, person: Person) -> list[Item]:
        """Return the keys of the answers; one of the last moments may be missing until the next sweep."""
        return [
            {name: each[name] for name in ("question_id", "response_id")}
            for person_hash in person.hashes
            for each in query_all(
                self.dynamodb,
                TableName=self.table,
                IndexName="ByFingerprint",
                KeyConditionExpression="fingerprint_hash = :person",
                ExpressionAttributeValues=encode_item({":person": person_hash}),
            )
        ]

    def items(self, person: Person) -> Iterator[Item]:
        """Yield the whole items."""
        keys = [{name: value["S"] for name, value in each.items()} for each in self.find(person)]
        yield from get_all(self.dynamodb, self.table, keys)

    def remove(self, items: Sequence[Item]) -> None:
        """Delete what was found."""
        delete_all(self.dynamodb, self.table, items)


@dataclass(frozen=True, slots=True)
class SubscriptionEraser:
    """A user's phones: the places that they hold in the table Limits name them."""

    dynamodb: Any
    sns: Callable[[], Any]
    table: str
    limits_table: str

    def items(self, person: Person) -> Iterator[Item]:
        """Yield the subscriptions' own items."""
        key = {"counter": subscription_counter(person.user_id)}
        for held in get_all(self.dynamodb, self.limits_table, [key] if person.user_id else []):
            ids = [{KEY: each} for each in held.get("held", {}).get("M", {})]
            for found in get_all(self.dynamodb, self.table, ids):
                if found.get("owner", {}).get("S") == person.user_id:
                    yield found

    def find(self, person: Person) -> list[Item]:
        """Return the subscriptions' own items."""
        return list(self.items(person))

    def remove(self, items: Sequence[Item]) -> None:
        """Delete the phones' endpoints, then the subscriptions with their markers, their own items last."""
        for item in items:
            subscription = subscription_from(decode_item(item))
            if subscription.endpoint_arn:
                self.sns().delete_endpoint(EndpointArn=subscription.endpoint_arn)
            own, *rest = keys_of(subscription)
            delete_all(self.dynamodb, self.table, [encode_item({KEY: key}) for key in (*rest, own)])


@dataclass(frozen=True, slots=True)
class IdentityEraser:
    """Who is who, in PostgreSQL (sql/identity/0001_identity.sql)."""

    database: Database

    def person(self, known: Person) -> Person:
        """Return a person with all leaves and identities that are known by now, beside those known before."""
        call = "person(%s::text[], %s::text, %s::text[], %s::text[])"
        found = self.database.run(lambda each: call_in_pieces(each, call, _values(known)))
        leads = dict.fromkeys([*known.leads, *found["leads"]])
        identities = dict.fromkeys(
            [*known.identities, *((channel, name) for channel, name in found["identities"])]
        )
        organization = known.organization or found["organization"] or ""
        return Person(
            known.digest, organization=organization, leads=tuple(leads), identities=tuple(identities)
        )

    def find(self, person: Person) -> list[Person]:
        """Return the person once for each row that there is of them."""
        if not person.leads:
            return []
        call = "person_rows(%s::text[], %s::text, %s::text[], %s::text[])"
        rows = int(self.database.run(lambda each: call_function(each, call, _values(person))))
        return [person] * rows

    def remove(self, items: Iterable[Person]) -> None:
        """Delete the rows of the person."""
        call = "erase(%s::text[], %s::text, %s::text[], %s::text[])"
        for person in dict.fromkeys(items):
            values = _values(person)
            self.database.run(partial(call_function, call=call, values=values))


def _values(person: Person) -> list[Any]:
    channels, names = (
        [identity[0] for identity in person.identities],
        [identity[1] for identity in person.identities],
    )
    return [list(person.leads), person.organization, channels, names]


@dataclass(frozen=True, slots=True)
class LeadErasureStarter:
    """Begins the erasure of a lead by what its organization knows it by. ErasureFunction goes on with it."""

    identities: IdentityEraser
    jobs: ErasureJobs
    tombstones: Tombstones

    def begin(
        self, organization: str, named: Collection[Identity], leaves: Iterable[str], now: datetime
    ) -> str | None:
        """Begin an erasure; returns its id, or None if nobody is known and no customer is named.

        organization: whose identities are looked up. leaves: leads of it that are known by their orders.
        The best of the named identities that leads to somebody says who it is: the customer's id, else the
        address, and a number only if nothing else is named. A household shares a number, and nobody else of
        it may be erased. Nor do the others come under a tombstone: only the person's own identities do, and
        the customer's id, also if nobody is known by it. Raises ErasureMoved, and what the stores raise.
        """
        customers, emails, phones = (
            tuple(
                (identity.channel, identity.external_id) for identity in named if identity.channel == channel
            )
            for channel in ("customer", "email", "phone")
        )
        leads = self._lead(organization, leaves=tuple(leaves)).leads
        for some in (customers, emails, () if customers or emails else phones):
            if known_leads := self._lead(organization, identities=some).leads:
                leads = tuple(dict.fromkeys([*leads, *known_leads]))
                break
        own = self._lead(organization, leaves=leads).identities
        person = Person(
            "",
            organization=organization,
            leads=leads,
            identities=tuple(dict.fromkeys([*own, *customers])),
        )
        if not person.leads and not person.identities:
            return None
        subject = next(iter(leads), "")
        return begin_erasure(self.jobs, self.tombstones, subject, person, now)

    def _lead(
        self,
        organization: str,
        leaves: tuple[str, ...] = (),
        identities: tuple[tuple[str, str], ...] = (),
    ) -> Person:
        return self.identities.person(
            Person("", organization=organization, leads=leaves, identities=identities)
        )
