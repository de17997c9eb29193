"""Erases a lead: its items, its objects, and its identities in PostgreSQL (docs/rules.md, rule 10)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from adapters.leads.lead_event_store import CLAIM_KEY
from adapters.platform.items import decode_item
from adapters.postgresql.postgres import database
from adapters.postgresql.sql import Database, call_function
from adapters.privacy.erasers import Clients, PartErasers, StoreEraser, partition_eraser
from rules.leads.lead_events import SORT_KEY
from rules.leads.notice_kinds import lead_holder
from rules.parts import Part
from rules.privacy.erasures import Person


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

    def rows(self, person: Person) -> Iterator[dict[str, str]]:
        """Yield what an export has of the person: the leaves, and the identities."""
        stored = self.person(person)
        yield from ({"lead_organization_id": lead} for lead in stored.leads)
        yield from ({"channel": channel, "external_id": name} for channel, name in stored.identities)

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


@cache  # so that the connection is kept
def identity_eraser(url: str) -> IdentityEraser:
    """Return the eraser of the identity database with a URL, which is not opened yet. Raises ValueError."""
    return IdentityEraser(database(url))


def erasers(clients: Clients, tables: Any) -> Mapping[str, StoreEraser]:
    """Return erasers by the stores' names in the inventory."""

    def table(name: str, *key: str) -> StoreEraser:
        return partition_eraser(clients.dynamodb, name, key, lambda person: person.leads)

    identities = {"PostgreSQL": identity_eraser(tables.identity_url)} if tables.identity_url else {}
    return {
        "Event": table(tables.event_table, "lead_organization_id", SORT_KEY),
        "Memory": table(tables.memory_table, "lead_organization_id", "memory_type#key"),
        "Feature": table(tables.feature_table, "lead_organization_id"),
        "GroupEvents": table(tables.group_events_table, "root_id", "event_type#occurred_at#id"),
        **identities,
    }


def claims(stores: Mapping[str, Any], person: Person) -> Iterator[dict[str, str]]:
    """Yield the keys of the claims of a lead's events and orders."""
    for event in map(decode_item, stores["Event"].items(person)):
        source = str(event["source"])
        names = (f"{source}#{event['external_event_id']}", f"{source}#order:{event.get('object_id')}")
        yield from ({"user_id": name, "idempotency_key": CLAIM_KEY} for name in names)


def folders(stores: Mapping[str, Any], person: Person) -> Iterator[str]:
    """Yield the prefixes of the keys of a lead's objects: of each event, the webhook as it came."""
    for key in stores["Event"].find(person):
        yield f"leads/{key[SORT_KEY]['S'].partition('#')[2]}/"


ERASERS = PartErasers(
    Part.LEADS,
    dict.fromkeys(
        ("event_table", "memory_table", "feature_table", "group_events_table", "identity_url"), str
    ),
    erasers,
    holders=lambda person: map(lead_holder, person.leads),
    claims=claims,
    folders=folders,
)
