"""Every online store of the inventory, with its eraser (docs/rules.md, rule 10).

Erasers of items, of answers, of phones and of PostgreSQL are in erasers.py. The others are here: of objects,
of keys of Redis, and of rows of boards.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any, Protocol, TypeVar

from adapters.engagement.engagement_cache import ids_by_bucket, recent_keys, top_list_key
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.limits import subscription_counter
from adapters.platform.redis import Redis
from adapters.platform.tables import chunks, scan_all
from adapters.postgresql.sql import Database
from adapters.privacy.erasers import (
    IdentityEraser,
    KeyEraser,
    PartitionEraser,
    ResponseEraser,
    SubscriptionEraser,
)
from rules.engagement.boards import ALL_REGIONS, pack_rows, unpack_rows
from rules.leads.lead_events import SORT_KEY
from rules.leads.series import mark_of
from rules.outgoing.notices import lead_holder
from rules.privacy.erasures import Person

# Kinds of calls that are counted per caller, for two minutes (ingest/web/rate_limit.py).
RATES = (
    *("events", "commands", "reads", "subscriptions"),
    *("answers", "relayed answers", "questions"),
)
MINUTES = range(-3, 2)  # from now; counts of calls in these minutes may still exist, as clocks differ
OBJECTS_MAX = 1000  # in one request
TOP = "#top"  # in the keys of the boards' parts with the best rows
EXPORTS = "exports/"  # the bucket keeps them for a day
READ_AT_ONCE = 16  # a client has this many connections
Question = TypeVar("Question")
Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True)
class PrivacyTables:
    """All stores that have data of persons, without copies and caches."""

    user_streaks_table: str
    bp_events_table: str  # "bp" are bestie points
    daily_activity_table: str
    rewards_ledger_table: str
    rewards_table: str
    idempotency_keys_table: str
    limits_table: str
    event_table: str  # lead events
    memory_table: str
    feature_table: str
    responses_table: str
    subscriptions_table: str
    user_stats_table: str
    notifications_table: str
    payload_bucket: str
    identity_url: str
    fingerprint_secret_arn: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class ErasureSettings(PrivacyTables):
    """Settings of ErasureFunction."""

    boards_table: str
    group_events_table: str
    redis_url: str
    settle_seconds: int  # this long after a tombstone was written, every process that writes knows it


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
    database: Database | None  # None in a deployment without leads


def online_stores(clients: Clients, tables: PrivacyTables, now: datetime) -> Mapping[str, StoreEraser]:
    """Return erasers by the stores' names in rules.privacy.inventory, without stores that are copies."""

    def table(name: str, *key: str, of: Callable[[Person], Iterable[str]] = _user_ids) -> PartitionEraser:
        return PartitionEraser(clients.dynamodb, name, key, of)

    lead_events = table(tables.event_table, "lead_organization_id", SORT_KEY, of=_lead_ids)
    claims = tables.idempotency_keys_table
    stores: dict[str, StoreEraser] = {
        "UserStreaks": table(tables.user_streaks_table, "user_id"),
        "BPEvents": _user_events(clients.dynamodb, tables),
        "DailyActivity": _active_days(clients.dynamodb, tables),
        "RewardsLedger": table(tables.rewards_ledger_table, "account_id", "created_at"),
        "Rewards": table(tables.rewards_table, "holder", "place"),
        "IdempotencyKeys": UserAndLeadEraser(
            table(claims, "user_id", "idempotency_key"),
            KeyEraser(clients.dynamodb, claims, lambda person: _claims_of_leads(lead_events.items(person))),
        ),
        "Notifications": table(tables.notifications_table, "holder", "place", of=_notice_holders),
        "Limits": KeyEraser(clients.dynamodb, tables.limits_table, lambda person: _counters(person, now)),
        "Event": lead_events,
        "Memory": table(tables.memory_table, "lead_organization_id", "memory_type#key", of=_lead_ids),
        "Feature": table(tables.feature_table, "lead_organization_id", of=_lead_ids),
        "Responses": ResponseEraser(clients.dynamodb, tables.responses_table),
        "UserStats": table(tables.user_stats_table, "fingerprint_hash", of=lambda person: person.hashes),
        "Subscriptions": SubscriptionEraser(
            clients.dynamodb, clients.sns, tables.subscriptions_table, tables.limits_table
        ),
        "PayloadBucket": ObjectEraser(clients.s3, tables.payload_bucket, lead_events),
    }
    if clients.database:
        stores["PostgreSQL"] = IdentityEraser(clients.database)
    return stores


def all_stores(clients: Clients, config: ErasureSettings, now: datetime) -> Mapping[str, StoreEraser]:
    """Return erasers of all stores, also of those that are copies of others."""
    dynamodb = clients.dynamodb
    days, user_events = _active_days(dynamodb, config), _user_events(dynamodb, config)
    group_events_key = ("root_id", "event_type#occurred_at#id")
    return {
        **online_stores(clients, config, now),
        "Boards": BoardEraser(dynamodb, config.boards_table),
        "GroupEvents": PartitionEraser(dynamodb, config.group_events_table, group_events_key, _lead_ids),
        "Redis": RedisEraser(config.redis_url, days, user_events, now),
    }


def whole_lead(stores: Mapping[str, StoreEraser], lead: Person) -> Person:
    """Return a lead with all leaves and identities that PostgreSQL has now."""
    identities = stores["PostgreSQL"]
    assert isinstance(identities, IdentityEraser)  # noqa: S101 (leads have a database)
    return identities.person(lead)


@dataclass(frozen=True, slots=True)
class ObjectEraser:
    """Erases objects of the payload bucket, with all of their versions."""

    s3: Callable[[], Any]
    bucket: str
    lead_events: PartitionEraser  # the events' ids are in their objects' keys

    def find(self, person: Person) -> list[dict[str, str]]:
        """Return key and version of every version of the objects below the person's folders."""
        return [version for folder in self.folders(person) for version in self._versions(folder)]

    def folders(self, person: Person) -> Iterator[str]:
        """Yield the prefixes of the keys of the person's objects, exports among them."""
        yield f"{EXPORTS}{person.digest}/"
        yield from self._payloads(person)

    def _payloads(self, person: Person) -> Iterator[str]:
        for key in self.lead_events.find(person) if person.leads else ():
            yield f"leads/{key[SORT_KEY]['S'].partition('#')[2]}/"

    def contents(self, person: Person) -> Iterator[tuple[str, bytes]]:
        """Yield key and content of the newest version of each object, without exports."""
        with ThreadPoolExecutor(READ_AT_ONCE) as pool:
            listings = _read_ahead(pool, self._keys, self._payloads(person))
            yield from _read_ahead(pool, self._content, chain.from_iterable(listings))

    def _keys(self, folder: str) -> Iterator[str]:
        """Return the keys below a folder. The first thousand are read before it returns."""
        pages = iter(self.s3().get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=folder))
        first = next(pages)
        return (entry["Key"] for page in chain([first], pages) for entry in page.get("Contents", ()))

    def _content(self, key: str) -> tuple[str, bytes]:
        return key, bytes(self.s3().get_object(Bucket=self.bucket, Key=key)["Body"].read())

    def remove(self, items: Sequence[dict[str, str]]) -> None:
        """Delete what find has returned; raises RuntimeError if S3 did not delete some of it."""
        for chunk in chunks(items, OBJECTS_MAX):
            answer = self.s3().delete_objects(Bucket=self.bucket, Delete={"Objects": chunk, "Quiet": True})
            if answer.get("Errors"):
                raise RuntimeError(f"{self.bucket}: {answer['Errors'][0].get('Code')}")

    def _versions(self, folder: str) -> Iterator[dict[str, str]]:
        pages = self.s3().get_paginator("list_object_versions").paginate(Bucket=self.bucket, Prefix=folder)
        for page in pages:
            for version in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
                yield {"Key": version["Key"], "VersionId": version["VersionId"]}


@dataclass(frozen=True, slots=True)
class RedisEraser:
    """Erases keys of Redis that name a user.

    Keys of leads are left alone: they are digests, and expire within an hour. After an erasure nobody looks
    up events of the lead there.
    """

    url: str  # "": no Redis
    days: PartitionEraser  # finds the user's dates, which are in some keys of Redis
    events: PartitionEraser  # finds the user's event ids, which are in others
    now: datetime
    # The connection once it is open. It is a list, because the class is frozen.
    _connection: list[Redis] = field(default_factory=list)

    def find(self, person: Person) -> list[str]:
        """Return the keys that exist; raises RedisError."""
        if not self.url or not person.user_id:
            return []
        keys = self._keys(person)
        answers = self._redis().pipeline([["EXISTS", key] for key in keys])
        return [key for key, answer in zip(keys, answers, strict=True) if answer]

    def remove(self, items: Sequence[str]) -> None:
        """Delete what find has returned, and the lists of the first 100, which are made anew each minute."""
        if items:
            keys = (*items, *map(top_list_key, ALL_REGIONS))
            self._redis().pipeline([["DEL", key] for key in keys])

    def _keys(self, person: Person) -> list[str]:
        user, minute = person.user_id, int(self.now.timestamp()) // 60
        keys = recent_keys(user, self.now)
        keys += ids_by_bucket(user, (key["event_id"]["S"] for key in self.events.find(person)))
        keys += [f"active:{user}:{key['activity_date']['S']}" for key in self.days.find(person)]
        callers = (user, *(f"{kind}:{user}" for kind in RATES))
        return keys + [f"rate:{caller}:{minute + offset}" for caller in callers for offset in MINUTES]

    def _redis(self) -> Redis:
        if not self._connection:
            self._connection.append(Redis(self.url))
        return self._connection[0]


@dataclass(frozen=True, slots=True)
class BoardEraser:
    """Erases rows of the boards' snapshots: their parts are written again without the user."""

    dynamodb: Any
    table: str

    def find(self, person: Person) -> list[tuple[Item, bytes]]:
        """Return the keys of the parts that have the user, each with its rows without the user, packed."""
        parts = scan_all(
            self.dynamodb,
            TableName=self.table,
            FilterExpression="contains(#part, :top)",
            ExpressionAttributeNames={"#part": "part"},
            ExpressionAttributeValues=encode_item({":top": TOP}),
        )
        changes = []
        for part in parts:
            rows = unpack_rows(part["data"]["B"])
            others = [row for row in rows if row.user_id != person.user_id]
            if len(others) < len(rows):
                key = {name: part[name] for name in ("board", "part")}
                changes.append((key, pack_rows(others)))
        return changes

    def remove(self, items: Sequence[tuple[Item, bytes]]) -> None:
        """Write the parts without the user. A part that has expired since is not written."""
        for key, data in items:
            try:
                self.dynamodb.update_item(
                    TableName=self.table,
                    Key=key,
                    UpdateExpression="SET #data = :data",
                    ConditionExpression="attribute_exists(board)",
                    ExpressionAttributeNames={"#data": "data"},
                    ExpressionAttributeValues={":data": {"B": data}},
                )
            except self.dynamodb.exceptions.ConditionalCheckFailedException:
                continue


@dataclass(frozen=True, slots=True)
class UserAndLeadEraser:
    """Erases items of users, and items of leads, in one table."""

    users: PartitionEraser
    leads: KeyEraser

    def find(self, person: Person) -> Sequence[Any]:
        """Return the keys of a user's items and of a lead's items."""
        return [*self.users.find(person), *self.leads.find(person)]

    def items(self, person: Person) -> Iterator[Any]:
        """Yield a user's items and a lead's items."""
        yield from self.users.items(person)
        yield from self.leads.items(person)

    def remove(self, items: Sequence[Any]) -> None:
        """Delete what find has returned. The keys have one form, so either eraser can delete both."""
        self.users.remove(items)


def _user_events(dynamodb: Any, tables: PrivacyTables) -> PartitionEraser:
    return PartitionEraser(dynamodb, tables.bp_events_table, ("user_id", "event_id"), _user_ids)


def _active_days(dynamodb: Any, tables: PrivacyTables) -> PartitionEraser:
    return PartitionEraser(dynamodb, tables.daily_activity_table, ("user_id", "activity_date"), _user_ids)


def _read_ahead(
    pool: Executor, ask: Callable[[Question], Reply], questions: Iterable[Question]
) -> Iterator[Reply]:
    """Yield the replies to questions, in their order. It asks at most READ_AT_ONCE questions ahead."""
    replies = deque[Future[Reply]]()
    for question in questions:
        replies.append(pool.submit(ask, question))
        if len(replies) == READ_AT_ONCE:
            yield replies.popleft().result()
    while replies:
        yield replies.popleft().result()


def _user_ids(person: Person) -> Iterable[str]:
    return [person.user_id] if person.user_id else []


def _notice_holders(person: Person) -> Iterable[str]:
    return [*_user_ids(person), *map(lead_holder, person.leads)]


def _lead_ids(person: Person) -> Iterable[str]:
    return person.leads


def _claims_of_leads(events: Iterable[Any]) -> Iterator[dict[str, str]]:
    """Yield the keys of claims, orders and notes that leads' events may have."""
    for event in map(decode_item, events):
        source = str(event["source"])
        moment, number = mark_of(*str(event[SORT_KEY]).split("#", 1))
        names = (f"{source}#{event['external_event_id']}", f"{source}#order:{event.get('object_id')}")
        yield from ({"user_id": name, "idempotency_key": "lead-event"} for name in names)
        yield {"user_id": f"lead-counted#{moment:x}.{number}", "idempotency_key": "counted"}


def _counters(person: Person, now: datetime) -> Iterator[dict[str, str]]:
    if person.user_id:
        yield {"counter": subscription_counter(person.user_id)}
        yield {"counter": f"open-questions#{person.user_id}"}
        minute = int(now.timestamp()) // 60
        for kind in RATES:
            yield from ({"counter": f"{kind}#{person.user_id}#{minute + offset}"} for offset in MINUTES)
