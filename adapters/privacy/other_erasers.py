"""What is kept of a person beside DynamoDB's keys: objects, keys of Redis, rows of boards."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, product
from typing import Any, TypeVar

from adapters.engagement.engagement_cache import forget_commands, in_buckets, list_key
from adapters.engagement.rank_sets import unrank_commands
from adapters.platform.items import Item, item
from adapters.platform.redis import Command, Redis
from adapters.platform.tables import chunks, scan_all
from adapters.privacy.person import Person
from adapters.privacy.table_erasers import PartitionEraser
from rules.engagement.boards import ALL_REGIONS, BOARDS, pack_rows, unpack_rows
from rules.leads.lead_events import SORT_KEY

# What callers are counted by, for two minutes (ingest/web/rate_limit.py).
RATES = (
    *("events", "commands", "reads", "subscriptions"),
    *("answers", "relayed answers", "questions"),
)
MINUTES = range(-3, 2)
OBJECTS_MAX = 1000  # in one request
TOP = "#top"
EXPORTS = "exports/"  # a day
READ_AT_ONCE = 16  # a client has as many connections
Asked = TypeVar("Asked")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class ObjectEraser:
    """Objects of the payload bucket, all versions of them. events: of leads, whose ids name their objects."""

    s3: Callable[[], Any]
    bucket: str
    events: PartitionEraser

    def find(self, person: Person) -> list[dict[str, str]]:
        """Return key and version of every object below the person's folders."""
        return [each for folder in self.folders(person) for each in self._versions(folder)]

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
            listings = _ahead(pool, self._keys, self._payloads(person))
            yield from _ahead(pool, self._content, chain.from_iterable(listings))

    def _keys(self, folder: str) -> Iterator[str]:
        """Return the keys below a folder; the first thousand have been read."""
        asked = self.s3().get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=folder)
        pages = iter(asked)
        first = next(pages)
        return (each["Key"] for page in chain([first], pages) for each in page.get("Contents", ()))

    def _content(self, key: str) -> tuple[str, bytes]:
        return key, bytes(self.s3().get_object(Bucket=self.bucket, Key=key)["Body"].read())

    def remove(self, found: Sequence[dict[str, str]]) -> None:
        """Delete what was found; raises RuntimeError if S3 kept some of it."""
        for chunk in chunks(found, OBJECTS_MAX):
            answer = self.s3().delete_objects(Bucket=self.bucket, Delete={"Objects": chunk, "Quiet": True})
            if answer.get("Errors"):
                raise RuntimeError(f"{self.bucket}: {answer['Errors'][0].get('Code')}")

    def _versions(self, folder: str) -> Iterator[dict[str, str]]:
        pages = self.s3().get_paginator("list_object_versions").paginate(Bucket=self.bucket, Prefix=folder)
        for page in pages:
            for each in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
                yield {"Key": each["Key"], "VersionId": each["VersionId"]}


def _ahead(pool: Executor, ask: Callable[[Asked], Found], asked: Iterable[Asked]) -> Iterator[Found]:
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
    """Keys of Redis that name a user. days, events: of tables, which name some of them. url: "": no Redis.

    What Redis knows of leads is under digests, for an hour; no event of theirs is looked up there any more.
    """

    url: str
    days: PartitionEraser
    events: PartitionEraser
    now: datetime
    _link: list[Redis] = field(default_factory=list)

    def find(self, person: Person) -> list[str]:
        """Return the keys that are there, and the user's places in the ranks; raises RedisError."""
        if not self.url or not person.user_id:
            return []
        keys = self._keys(person)
        ranked = [each for each in unrank_commands(person.user_id) if each[0] == "ZREM"]
        asked: list[Command] = [["EXISTS", key] for key in keys]
        asked += [["ZSCORE", each[1], person.user_id] for each in ranked]
        answers = self._redis().pipeline(asked)
        there = [key for key, answer in zip(keys, answers, strict=False) if answer]
        places = [
            each for each, answer in zip(ranked, answers[len(keys) :], strict=True) if answer is not None
        ]
        return there + [f"\x1f{person.user_id}" for _ in places[:1]]

    def remove(self, found: Sequence[str]) -> None:
        """Delete what was found, and the lists of the first 100, which are made anew each minute."""
        commands: list[Command] = []
        for each in found:
            commands += unrank_commands(each[1:]) if each.startswith("\x1f") else [["DEL", each]]
        if commands:
            lists = (list_key(region, board) for region, board in product(ALL_REGIONS, BOARDS))
            self._redis().pipeline([*commands, *(["DEL", each] for each in lists)])

    def _keys(self, person: Person) -> list[str]:
        user, minute = person.user_id, int(self.now.timestamp()) // 60
        keys = [str(each[1]) for each in forget_commands(user, self.now)]
        keys += in_buckets(user, (each["event_id"]["S"] for each in self.events.find(person)))
        keys += [f"active:{user}:{each['activity_date']['S']}" for each in self.days.find(person)]
        callers = (user, *(f"{kind}:{user}" for kind in RATES))
        return keys + [f"rate:{each}:{minute + at}" for each in callers for at in MINUTES]

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
            ExpressionAttributeValues=item({":top": TOP}),
        )
        found = []
        for part in parts:
            rows = unpack_rows(part["data"]["B"])
            others = [row for row in rows if row.user_id != person.user_id]
            if len(others) < len(rows):
                key = {name: part[name] for name in ("board", "part")}
                found.append((key, pack_rows(others)))
        return found

    def remove(self, found: Sequence[tuple[Item, bytes]]) -> None:
        """Put the parts without the user; one that has expired meanwhile stays gone."""
        for key, data in found:
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
