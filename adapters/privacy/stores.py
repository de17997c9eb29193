"""Every online store of the inventory, with what finds and removes a person in it (rule 10).

What DynamoDB's keys or other names find has its erasers in erasers.py. Here are the others: objects, keys of
Redis, rows of boards.
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
from adapters.settings.common import ErasureSettings, PrivacyTables
from rules.engagement.boards import ALL_REGIONS, pack_rows, unpack_rows
from rules.leads.lead_events import SORT_KEY
from rules.leads.series import mark_of
from rules.outgoing.notices import lead_holder
from rules.privacy.erasures import Person

# What callers are counted by, for two minutes (ingest/web/rate_limit.py).
RATES = (
    *("events", "commands", "reads", "subscriptions"),
    *("answers", "relayed answers", "questions"),
)
MINUTES = range(-3, 2)
OBJECTS_MAX = 1000  # in one request
TOP = "#top"
EXPORTS = "exports/"  # a day
READ_AT_ONCE = 16  # a client has this many connections
Asked = TypeVar("Asked")
Found = TypeVar("Found")


class StoreEraser(Protocol):
    """One store. What find returns is what remove deletes; removing what is gone changes nothing."""

    def find(self, person: Person) -> Sequence[Any]:
        """Return everything of the person that is there now."""

    def remove(self, items: Sequence[Any]) -> None:
        """Delete it."""


@dataclass(frozen=True, slots=True)
class Clients:
    """What the stores are reached by."""

    dynamodb: Any
    s3: Callable[[], Any]  # s3, sns: made when needed
    sns: Callable[[], Any]
    database: Database | None  # None where nobody is a lead


def online_stores(clients: Clients, tables: PrivacyTables, now: datetime) -> Mapping[str, StoreEraser]:
    """Return the stores by their names in rules.privacy.inventory; without those that copy others."""

    def table(name: str, *key: str, of: Callable[[Person], Iterable[str]] = _user_ids) -> PartitionEraser:
        return PartitionEraser(clients.dynamodb, name, key, of)

    days = table(tables.daily_activity_table, "user_id", "activity_date")
    events = table(tables.event_table, "lead_organization_id", SORT_KEY, of=_lead_ids)
    sent = table(tables.bp_events_table, "user_id", "event_id")
    claims = tables.idempotency_keys_table
    found: dict[str, StoreEraser] = {
        "UserStreaks": table(tables.user_streaks_table, "user_id"),
        "BPEvents": sent,
        "DailyActivity": days,
        "RewardsLedger": table(tables.rewards_ledger_table, "account_id", "created_at"),
        "Rewards": table(tables.rewards_table, "holder", "place"),
        "IdempotencyKeys": UserAndLeadEraser(
            table(claims, "user_id", "idempotency_key"),
            KeyEraser(clients.dynamodb, claims, lambda person: _claims_of_leads(events.items(person))),
        ),
        "Notifications": table(tables.notifications_table, "holder", "place", of=_notice_holders),
        "Limits": KeyEraser(clients.dynamodb, tables.limits_table, lambda person: _counters(person, now)),
        "Event": events,
        "Memory": table(tables.memory_table, "lead_organization_id", "memory_type#key", of=_lead_ids),
        "Feature": table(tables.feature_table, "lead_organization_id", of=_lead_ids),
        "Responses": ResponseEraser(clients.dynamodb, tables.responses_table),
        "UserStats": table(tables.user_stats_table, "fingerprint_hash", of=lambda person: person.hashes),
        "Subscriptions": SubscriptionEraser(
            clients.dynamodb, clients.sns, tables.subscriptions_table, tables.limits_table
        ),
        "PayloadBucket": ObjectEraser(clients.s3, tables.payload_bucket, events),
    }
    if clients.database:
        found["PostgreSQL"] = IdentityEraser(clients.database)
    return found


def all_stores(clients: Clients, config: ErasureSettings, now: datetime) -> Mapping[str, StoreEraser]:
    """Return all of them, also those that only copy what others say."""
    dynamodb = clients.dynamodb
    days = PartitionEraser(dynamodb, config.daily_activity_table, ("user_id", "activity_date"), _user_ids)
    sent = PartitionEraser(dynamodb, config.bp_events_table, ("user_id", "event_id"), _user_ids)
    grouped = ("root_id", "event_type#occurred_at#id")
    return {
        **online_stores(clients, config, now),
        "Boards": BoardEraser(dynamodb, config.boards_table),
        "GroupEvents": PartitionEraser(dynamodb, config.group_events_table, grouped, _lead_ids),
        "Redis": RedisEraser(config.redis_url, days, sent, now),
    }


def whole_lead(stores: Mapping[str, StoreEraser], lead: Person) -> Person:
    """Return a lead with all leaves and identities that are known by now."""
    identities = stores["PostgreSQL"]
    assert isinstance(identities, IdentityEraser)  # noqa: S101 (leads have a database)
    return identities.person(lead)


@dataclass(frozen=True, slots=True)
class ObjectEraser:
    """Objects of the payload bucket, all versions of them."""

    s3: Callable[[], Any]
    bucket: str
    events: PartitionEraser  # of leads, whose ids name their objects

    def find(self, person: Person) -> list[dict[str, str]]:
        """Return key and version of every object below the person's folders."""
        return [version for folder in self.folders(person) for version in self._versions(folder)]

    def folders(self, person: Person) -> Iterator[str]:
        """Yield the prefixes of the person's objects; exports are among them."""
        yield f"{EXPORTS}{person.digest}/"
        yield from self._payloads(person)

    def _payloads(self, person: Person) -> Iterator[str]:
        for each in self.events.find(person) if person.leads else ():
            yield f"leads/{each[SORT_KEY]['S'].partition('#')[2]}/"

    def contents(self, person: Person) -> Iterator[tuple[str, bytes]]:
        """Yield key and content of the newest version of each object but exports; reads some side by side."""
        with ThreadPoolExecutor(READ_AT_ONCE) as pool:
            listings = _read_ahead(pool, self._keys, self._payloads(person))
            yield from _read_ahead(pool, self._content, chain.from_iterable(listings))

    def _keys(self, folder: str) -> Iterator[str]:
        """Return the keys below a folder; the first thousand have been read."""
        asked = self.s3().get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=folder)
        pages = iter(asked)
        first = next(pages)
        return (each["Key"] for page in chain([first], pages) for each in page.get("Contents", ()))

    def _content(self, key: str) -> tuple[str, bytes]:
        return key, bytes(self.s3().get_object(Bucket=self.bucket, Key=key)["Body"].read())

    def remove(self, items: Sequence[dict[str, str]]) -> None:
        """Delete what was found; raises RuntimeError if S3 kept some of it."""
        for chunk in chunks(items, OBJECTS_MAX):
            answer = self.s3().delete_objects(Bucket=self.bucket, Delete={"Objects": chunk, "Quiet": True})
            if answer.get("Errors"):
                raise RuntimeError(f"{self.bucket}: {answer['Errors'][0].get('Code')}")

    def _versions(self, folder: str) -> Iterator[dict[str, str]]:
        pages = self.s3().get_paginator("list_object_versions").paginate(Bucket=self.bucket, Prefix=folder)
        for page in pages:
            for each in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
                yield {"Key": each["Key"], "VersionId": each["VersionId"]}


def _read_ahead(pool: Executor, ask: Callable[[Asked], Found], asked: Iterable[Asked]) -> Iterator[Found]:
    """Yield the answers to questions in their order; at most READ_AT_ONCE of them wait for their turn."""
    waiting = deque[Future[Found]]()
    for each in asked:
        waiting.append(pool.submit(ask, each))
        if len(waiting) == READ_AT_ONCE:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@dataclass(frozen=True, slots=True)
class RedisEraser:
    """Keys of Redis that name a user.

    What Redis knows of leads is under digests, for an hour; no event of theirs is looked up there any more.
    """

    url: str  # "": no Redis
    days: PartitionEraser  # days, events: of tables, which name some of them
    events: PartitionEraser
    now: datetime
    _link: list[Redis] = field(default_factory=list)

    def find(self, person: Person) -> list[str]:
        """Return the keys that are there; raises RedisError."""
        if not self.url or not person.user_id:
            return []
        keys = self._keys(person)
        answers = self._redis().pipeline([["EXISTS", key] for key in keys])
        return [key for key, answer in zip(keys, answers, strict=True) if answer]

    def remove(self, items: Sequence[str]) -> None:
        """Delete what was found, and the lists of the first 100, which are made anew each minute."""
        if items:
            keys = (*items, *map(top_list_key, ALL_REGIONS))
            self._redis().pipeline([["DEL", key] for key in keys])

    def _keys(self, person: Person) -> list[str]:
        user, minute = person.user_id, int(self.now.timestamp()) // 60
        keys = recent_keys(user, self.now)
        keys += ids_by_bucket(user, (each["event_id"]["S"] for each in self.events.find(person)))
        keys += [f"active:{user}:{each['activity_date']['S']}" for each in self.days.find(person)]
        callers = (user, *(f"{kind}:{user}" for kind in RATES))
        return keys + [f"rate:{caller}:{minute + at}" for caller in callers for at in MINUTES]

    def _redis(self) -> Redis:
        if not self._link:
            self._link.append(Redis(self.url))
        return self._link[0]


@dataclass(frozen=True, slots=True)
class BoardEraser:
    """The rows of the best in the snapshots of a day: they are put again without the user."""

    dynamodb: Any
    table: str

    def find(self, person: Person) -> list[tuple[Item, bytes]]:
        """Return the parts that have the user, each with what it is to hold instead."""
        parts = scan_all(
            self.dynamodb,
            TableName=self.table,
            FilterExpression="contains(#part, :top)",
            ExpressionAttributeNames={"#part": "part"},
            ExpressionAttributeValues=encode_item({":top": TOP}),
        )
        found = []
        for part in parts:
            rows = unpack_rows(part["data"]["B"])
            others = [row for row in rows if row.user_id != person.user_id]
            if len(others) < len(rows):
                key = {name: part[name] for name in ("board", "part")}
                found.append((key, pack_rows(others)))
        return found

    def remove(self, items: Sequence[tuple[Item, bytes]]) -> None:
        """Put the parts without the user; one that has expired meanwhile stays gone."""
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
    """Two kinds of things in one table."""

    users: PartitionEraser
    leads: KeyEraser

    def find(self, person: Person) -> Sequence[Any]:
        """Return the keys of both."""
        return [*self.users.find(person), *self.leads.find(person)]

    def items(self, person: Person) -> Iterator[Any]:
        """Yield the whole items of both."""
        yield from self.users.items(person)
        yield from self.leads.items(person)

    def remove(self, items: Sequence[Any]) -> None:
        """Delete what was found."""
        self.users.remove(items)


def _user_ids(person: Person) -> Iterable[str]:
    return [person.user_id] if person.user_id else []


def _notice_holders(person: Person) -> Iterable[str]:
    return [*_user_ids(person), *map(lead_holder, person.leads)]


def _lead_ids(person: Person) -> Iterable[str]:
    return person.leads


def _claims_of_leads(events: Iterable[Any]) -> Iterator[dict[str, str]]:
    """Yield the keys of the claims, orders and notes of leads' events, whether they are there or not."""
    for event in map(decode_item, events):
        source, place = str(event["source"]), str(event[SORT_KEY])
        moment, number = mark_of(*place.split("#", 1))
        named = [f"{source}#{event['external_event_id']}", f"{source}#order:{event.get('object_id')}"]
        yield from ({"user_id": each, "idempotency_key": "lead-event"} for each in named)
        yield {"user_id": f"lead-counted#{moment:x}.{number}", "idempotency_key": "counted"}


def _counters(person: Person, now: datetime) -> Iterator[dict[str, str]]:
    if person.user_id:
        yield {"counter": subscription_counter(person.user_id)}
        yield {"counter": f"open-questions#{person.user_id}"}
        minute = int(now.timestamp()) // 60
        for kind in RATES:
            yield from ({"counter": f"{kind}#{person.user_id}#{minute + each}"} for each in MINUTES)
