"""What is kept of a person under other names: answers, phones, and who is who."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from adapters.platform.items import Item, item, plain
from adapters.platform.limits import places_of
from adapters.platform.tables import get_all, query_all, scan_all
from adapters.postgresql.sql import Database, ask, ask_for_many
from adapters.privacy.person import Person
from adapters.privacy.table_erasers import delete_all
from adapters.questions.phones.subscription_items import KEY, keys_of, subscription_from


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
                ExpressionAttributeValues=item({":person": person_hash}),
            )
        ]

    def items(self, person: Person) -> Iterator[Item]:
        """Yield the whole items."""
        keys = [{name: value["S"] for name, value in each.items()} for each in self.find(person)]
        yield from get_all(self.dynamodb, self.table, keys)

    def remove(self, found: Sequence[Item]) -> None:
        """Delete what was found."""
        delete_all(self.dynamodb, self.table, found)


@dataclass(frozen=True, slots=True)
class AnswerLineEraser:
    """A person's answers that still stand in line, among the few that do."""

    dynamodb: Any
    table: str

    def find(self, person: Person) -> list[Item]:
        """Return the keys of the answers."""
        return [
            {name: each[name] for name in ("question_id", "response_id")}
            for each in scan_all(self.dynamodb, TableName=self.table, ConsistentRead=True)
            if each["response_id"]["S"] in person.hashes
        ]

    def remove(self, found: Sequence[Item]) -> None:
        """Delete what was found."""
        delete_all(self.dynamodb, self.table, found)


@dataclass(frozen=True, slots=True)
class SubscriptionEraser:
    """A user's phones: the places that they hold in the table Limits tell which ones there are."""

    dynamodb: Any
    sns: Callable[[], Any]
    table: str
    limits_table: str

    def items(self, person: Person) -> Iterator[Item]:
        """Yield the subscriptions' own items."""
        key = {"counter": places_of(person.user_id)}
        for held in get_all(self.dynamodb, self.limits_table, [key] if person.user_id else []):
            ids = [{KEY: each} for each in held.get("held", {}).get("M", {})]
            for found in get_all(self.dynamodb, self.table, ids):
                if found.get("owner", {}).get("S") == person.user_id:
                    yield found

    def find(self, person: Person) -> list[Item]:
        """Return the subscriptions' own items."""
        return list(self.items(person))

    def remove(self, found: Sequence[Item]) -> None:
        """Delete the phones' endpoints, then the subscriptions with their markers, their own items last."""
        for each in found:
            subscription = subscription_from(plain(each))
            if subscription.endpoint_arn:
                self.sns().delete_endpoint(EndpointArn=subscription.endpoint_arn)
            own, *rest = keys_of(subscription)
            delete_all(self.dynamodb, self.table, [item({KEY: key}) for key in (*rest, own)])


@dataclass(frozen=True, slots=True)
class IdentityEraser:
    """Who is who, in PostgreSQL (sql/identity/0001_identity.sql)."""

    database: Database

    def person(self, known: Person) -> Person:
        """Return a person with all leaves and identities that are known by now, beside those known before."""
        call = "person(%s::text[], %s::text, %s::text[], %s::text[])"
        found = self.database.run(lambda each: ask_for_many(each, call, _values(known)))
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
        rows = int(self.database.run(lambda each: ask(each, call, _values(person))))
        return [person] * rows

    def remove(self, found: Iterable[Person]) -> None:
        """Delete the rows of the person."""
        call = "erase(%s::text[], %s::text, %s::text[], %s::text[])"
        for person in dict.fromkeys(found):
            values = _values(person)
            self.database.run(partial(ask, call=call, values=values))


def _values(person: Person) -> list[Any]:
    channels, names = [each[0] for each in person.identities], [each[1] for each in person.identities]
    return [list(person.leads), person.organization, channels, names]
