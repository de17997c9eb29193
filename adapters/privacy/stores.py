"""Every online store of the inventory, with its eraser (docs/rules.md, rule 10).

Erasers of items are in erasers.py, those of parts in their folders. The others are here: of objects, of keys
of Redis, and of rows of boards.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any

from adapters.engagement.engagement_cache import ids_by_bucket, recent_keys, top_list_key
from adapters.engagement.friend_store import end_erased_pairs, keys_back
from adapters.engagement.leagues import remove_member
from adapters.engagement.period_boards import pack_places, unpack_places
from adapters.outgoing.outbox_store import keys_beside
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.redis import Redis
from adapters.platform.tables import chunks, delete_all, get_all, get_one, scan_all, write_if
from adapters.privacy.erasers import (
    Clients,
    ItemEraser,
    PartErasers,
    PersonFinder,
    StoreEraser,
    items_of_keys,
    partition_eraser,
)
from adapters.settings import with_settings
from adapters.settings.parts import deployed_parts
from rules.engagement.boards import ALL_REGIONS, Standing, pack_rows, unpack_rows
from rules.engagement.period_standings import first_place, without_user
from rules.parts import said
from rules.privacy.erasures import Person
from rules.user_ids import kept_partition, user_holder

PARTS: list[PartErasers] = list(said("erasers"))
# Kinds of calls that are counted per caller, for two minutes (ingest/web/rate_limit.py).
RATES = (
    *("events", "commands", "commands for one user", "commands of one server", "reads"),
    *("reads of whole histories", "reads of past events", "waits"),
    *(rate for part in PARTS for rate in part.rates),
)
MINUTES = range(-3, 2)  # from now; counts of calls in these minutes may still exist, as clocks differ
OBJECTS_MAX = 1000  # in one request
TOP = "#top"  # in the keys of the boards' parts with the best rows
ROWS = "#rows"  # and of the pages of periods
EXPORTS = "exports/"  # the bucket keeps them for a day
READ_AT_ONCE = 16  # objects of an export; a client has this many connections


@dataclass(frozen=True, slots=True)
class OwnErasureSettings:
    """Settings of ErasureFunction, without those of parts."""

    user_streaks_table: str
    bp_events_table: str  # "bp" are bestie points
    daily_activity_table: str
    rewards_ledger_table: str
    rewards_table: str
    idempotency_keys_table: str
    friends_table: str
    limits_table: str
    notifications_table: str
    payload_bucket: str
    fingerprint_secret_arn: str
    erasures_table: str
    erasure_secret_arn: str
    boards_table: str
    redis_url: str
    settle_seconds: int  # this long after a tombstone was written, every process that writes knows it


ErasureSettings = with_settings(OwnErasureSettings, *(part.settings for part in PARTS))


def all_stores(clients: Clients, tables: OwnErasureSettings, now: datetime) -> Mapping[str, StoreEraser]:
    """Return erasers by the stores' names in rules.privacy.inventory, of the stores that are deployed."""
    dynamodb, deployed = clients.dynamodb, deployed_parts()

    def table(name: str, *key: str, of: Callable[[Person], Iterable[str]] = _user_ids) -> ItemEraser:
        return partition_eraser(dynamodb, name, key, of)

    of_parts = [(part, part.erasers(clients, tables)) for part in PARTS if part.part in deployed]
    claims = table(tables.idempotency_keys_table, "user_id", "idempotency_key")

    def all_claims(person: Person) -> Iterator[Item]:
        yield from claims.items(person)
        for part, stores in of_parts:
            yield from items_of_keys(dynamodb, claims.table, part.claims(stores, person))

    def folders(person: Person) -> Iterator[str]:
        for part, stores in of_parts:
            yield from part.folders(stores, person)

    days = table(tables.daily_activity_table, "user_id", "activity_date", of=_day_partitions)
    events = table(tables.bp_events_table, "user_id", "event_id")
    notices = table(tables.notifications_table, "holder", "place", of=_notice_holders)
    ties, blocks = (
        table(tables.friends_table, "user_id", "friend_id", of=of) for of in (_user_ids, _kept_partitions)
    )
    return {
        "UserStreaks": table(tables.user_streaks_table, "user_id"),
        "BPEvents": events,
        "DailyActivity": days,
        "RewardsLedger": table(tables.rewards_ledger_table, "account_id", "created_at"),
        "Rewards": table(tables.rewards_table, "holder", "place", of=_user_holders),
        "IdempotencyKeys": replace(claims, items=all_claims),
        "Notifications": NoticeEraser(dynamodb, notices.table, notices.key, notices.items),
        "Friends": TieEraser(dynamodb, ties.table, ties.key, ties.items, blocks.items, now),
        "Limits": ItemEraser(
            dynamodb,
            tables.limits_table,
            ("counter",),
            lambda person: items_of_keys(dynamodb, tables.limits_table, _counters(person, now)),
        ),
        **{name: eraser for _, stores in of_parts for name, eraser in stores.items()},
        "PayloadBucket": ObjectEraser(clients.s3, tables.payload_bucket, folders),
        "Boards": BoardEraser(dynamodb, tables.boards_table),
        "Redis": RedisEraser(tables.redis_url, days, events, now),
    }


def whole_lead(stores: Mapping[str, StoreEraser], lead: Person) -> Person:
    """Return a lead with all leaves and identities that are stored now."""
    finder = next(store for store in stores.values() if isinstance(store, PersonFinder))
    return finder.person(lead)


@dataclass(frozen=True, slots=True)
class NoticeEraser(ItemEraser):
    """Erases a holder's notifications, and those of friends that name the user."""

    def find(self, person: Person) -> list[Item]:
        """Return the items' keys. The user's own come last, because they lead to the others."""
        own = list(self.items(person))
        return [*keys_beside(own), *({name: item[name] for name in self.key} for item in own)]


@dataclass(frozen=True, slots=True)
class TieEraser(ItemEraser):
    """Erases a user's ties, and those that others have to the user. An export has the user's own ones."""

    marks: Callable[[Person], Iterable[Item]]  # returns the items that name who has blocked the user
    now: datetime

    def find(self, person: Person) -> list[Item]:
        """Return the items' keys. The user's own come last, because they name the others."""
        own = [*self.items(person), *self.marks(person)]
        back = items_of_keys(self.dynamodb, self.table, keys_back(map(decode_item, own)))
        return [{name: item[name] for name in self.key} for item in (*back, *own)]

    def remove(self, items: Sequence[Item]) -> None:
        """Delete what find has returned. Pairs end first, so that the lake learns of it."""
        found = get_all(self.dynamodb, self.table, [decode_item(key) for key in items])
        end_erased_pairs(self.dynamodb, self.table, found, self.now)
        delete_all(self.dynamodb, self.table, items)


@dataclass(frozen=True, slots=True)
class ObjectEraser:
    """Erases objects of the payload bucket, with all of their versions."""

    s3: Callable[[], Any]
    bucket: str
    folders: Callable[[Person], Iterable[str]]  # returns what the keys of the person's objects begin with

    def find(self, person: Person) -> list[dict[str, str]]:
        """Return key and version of every version of the objects below the person's folders."""
        folders = (f"{EXPORTS}{person.digest}/", *self.folders(person))
        return [version for folder in folders for version in self._versions(folder)]

    def contents(self, person: Person) -> Iterator[tuple[str, bytes]]:
        """Yield key and content of the newest version of each object, without exports."""
        with ThreadPoolExecutor(READ_AT_ONCE) as pool:
            for folders in chunks(self.folders(person), READ_AT_ONCE):
                keys = chain.from_iterable(pool.map(self._keys, folders))
                for some_keys in chunks(keys, READ_AT_ONCE):
                    yield from pool.map(self._content, some_keys)

    def _keys(self, folder: str) -> list[str]:
        pages = self.s3().get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=folder)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

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


@dataclass(frozen=True)
class RedisEraser:
    """Erases keys of Redis that name a user. None names a lead."""

    url: str  # "": no Redis
    days: StoreEraser  # finds the user's dates, which are in some keys of Redis
    events: StoreEraser  # finds the user's event ids, which are in others
    now: datetime

    @cached_property
    def _redis(self) -> Redis:
        return Redis(self.url)

    def find(self, person: Person) -> list[str]:
        """Return the keys that exist; raises RedisError."""
        if not self.url or not person.user_id:
            return []
        keys = self._keys(person)
        answers = self._redis.pipeline([["EXISTS", key] for key in keys])
        return [key for key, answer in zip(keys, answers, strict=True) if answer]

    def remove(self, items: Sequence[str]) -> None:
        """Delete what find has returned, and the lists of the first 100, which are made anew each minute."""
        if items:
            keys = (*items, *map(top_list_key, ALL_REGIONS))
            self._redis.pipeline([["DEL", key] for key in keys])

    def _keys(self, person: Person) -> list[str]:
        user, minute = person.user_id, int(self.now.timestamp()) // 60
        keys = recent_keys(user, self.now)
        keys += ids_by_bucket(user, (key["event_id"]["S"] for key in self.events.find(person)))
        keys += [f"active:{user}:{key['activity_date']['S']}" for key in self.days.find(person)]
        callers = (user, *(f"{kind}:{user}" for kind in RATES))
        return keys + [f"rate:{caller}:{minute + offset}" for caller in callers for offset in MINUTES]


@dataclass(frozen=True, slots=True)
class BoardEraser:
    """Erases rows of the boards' snapshots, and names of final results and of cohorts that are not finished.

    Parts with the first rows are written again without the user, pages of periods with a row without a name.
    """

    dynamodb: Any
    table: str

    def find(self, person: Person) -> list[tuple[Item, Item | str]]:
        """Return the keys of the parts that have the user, each with what it has in place of them.

        A cohort comes with the user's id instead.
        """
        parts = scan_all(
            self.dynamodb,
            TableName=self.table,
            FilterExpression=("contains(#part, :top) OR contains(#part, :rows) OR contains(#members, :user)"),
            ExpressionAttributeNames={"#part": "part", "#members": "members"},
            ExpressionAttributeValues=encode_item({":top": TOP, ":rows": ROWS, ":user": person.user_id}),
        )
        return [
            ({name: part[name] for name in ("board", "part")}, new)
            for part in parts
            if (new := person.user_id if "members" in part else self._without(part, person.user_id))
        ]

    def _without(self, part: Item, user_id: str) -> Item:
        """Return the attributes that a part has without a user; {} if it does not have the user."""
        rows, name, new = unpack_rows(part["data"]["B"]), part["part"]["S"], Item()
        if any(row.user_id == user_id for row in rows):
            others = without_user(rows, user_id)
            new["data"] = {"B": pack_rows(others if ROWS in name else [row for row in others if row.user_id])}
        places = unpack_places(part["firsts"]["B"]) if "firsts" in part else []
        if any(first == user_id for _, first in places):
            for number, (_, first) in reversed([*enumerate(places)]):
                if first == user_id and (page := without_user(self._page(part, number), user_id)):
                    places[number] = first_place(page, next(iter(places[number + 1 :]), None))
            new["firsts"] = {"B": pack_places(places)}
        return new

    def _page(self, first: Item, number: int) -> list[Standing]:
        """Return the rows of another page of the standing whose first page this is."""
        name = first["part"]["S"].partition(ROWS)[0] + f"{ROWS}{number}"
        item = get_one(self.dynamodb, self.table, {"board": first["board"]["S"], "part": name})
        return unpack_rows(item["data"]["B"]) if item else []

    def remove(self, items: Sequence[tuple[Item, Item | str]]) -> None:
        """Write the parts without the user. A part that has expired since is not written."""
        for key, new in items:
            if isinstance(new, str):
                remove_member(self.dynamodb, self.table, key, new)
                continue
            names = {f"#{name}": name for name in new}
            write_if(
                self.dynamodb.update_item,
                TableName=self.table,
                Key=key,
                UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in new),
                ConditionExpression="attribute_exists(board)",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={f":{name}": value for name, value in new.items()},
            )


def _user_ids(person: Person) -> Iterable[str]:
    return [person.user_id] if person.user_id else []


def _user_holders(person: Person) -> Iterable[str]:
    return map(user_holder, _user_ids(person))


def _day_partitions(person: Person) -> Iterable[str]:
    return [*_user_ids(person), *_kept_partitions(person)]


def _kept_partitions(person: Person) -> Iterable[str]:
    return map(kept_partition, _user_ids(person))


def _notice_holders(person: Person) -> Iterable[str]:
    return [*_user_holders(person), *(holder for part in PARTS for holder in part.holders(person))]


def _counters(person: Person, now: datetime) -> Iterator[dict[str, str]]:
    if person.user_id:
        yield from ({"counter": counter} for part in PARTS for counter in part.counters(person.user_id))
        minute = int(now.timestamp()) // 60
        for kind in RATES:
            yield from ({"counter": f"{kind}#{person.user_id}#{minute + offset}"} for offset in MINUTES)
