"""Leaderboards: their snapshots in the table Boards, the best streaks from the index StreakLeaderboard, and
under which name a user is on them: an alias, or a pseudonym, never the user id.
"""

import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import uuid4

from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.tables import Refresh, get_all, put_all, query_all, scan_all
from rules.days import EPOCH, OTHER_REGION, REGIONS, stamp, unstamp
from rules.engagement.boards import (
    GLOBAL,
    LISTED_MAX,
    PSEUDONYM_DIGITS,
    Standing,
    Standings,
    chunk_of,
    count_above,
    pack_index,
    pack_rows,
    partitions_of,
    pause_between,
    pseudonym,
    unpack_rows,
)

SNAPSHOTS_KEPT = timedelta(days=1)
MANIFEST = encode_item({"board": "manifest", "part": "newest"})
# A snapshot is made each five minutes; of many users less often (rules.engagement.boards).
OLD = timedelta(minutes=10)
# This long a process answers without looking for a newer generation.
FRESH_SECONDS = 30
# Rows of a partition that have not lapsed, in a list: the first 100, and all who tie with the last of them.
# Beyond these it is left to chance who of many with the same streak is listed.
READ_MAX = 2000
NAMES_KEPT = timedelta(minutes=1)
# Of the table of profiles, read at the same time: one is decoded while others are on their way.
SEGMENTS = 4
# `timezone` is a word of DynamoDB's own.
COUNTED = "user_id, #zone, total_bestie_points, current_streak, lapses_at, alias"


@dataclass(frozen=True, slots=True)
class BoardManifest:
    """What the manifest says."""

    generation: str
    as_of: datetime
    users: int
    expires_at: int
    index: dict[str, bytes]  # by "board#region", the packed first scores of its chunks

    def is_old(self, now: datetime) -> bool:
        """Whether the snapshot was made longer ago than ordinarily."""
        return now - self.as_of > max(OLD, 2 * pause_between(self.users))


class BoardSnapshots:
    """The newest snapshot, as one process sees it. It keeps what it has read of a generation."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._manifest: BoardManifest | None = None
        self._refresh = Refresh()
        self._parts: dict[tuple[str, str], bytes] = {}

    def newest(self, now: datetime) -> BoardManifest | None:
        """Return the newest snapshot's manifest, at most half a minute old; None if there is no snapshot."""
        if self._manifest is None or self._refresh.is_over:
            asked_at = time.monotonic()
            self._look()
            self._refresh.renew(asked_at, FRESH_SECONDS)
        manifest = self._manifest
        return manifest if manifest and manifest.expires_at > now.timestamp() else None

    def _look(self) -> None:
        """Take the stored manifest, unless a replica has an older one than we have."""
        found = self._get(MANIFEST)
        manifest = _manifest_from(found) if found else None
        if manifest and (self._manifest is None or manifest.as_of > self._manifest.as_of):
            self._manifest, self._parts = manifest, {}

    def top(self, manifest: BoardManifest, region: str) -> list[Standing] | None:
        """Return a snapshot's best rows by points; None if they are gone."""
        if f"points#{region}" not in manifest.index:
            return []
        data = self._part(manifest, f"points#{region}", "top")
        return None if data is None else unpack_rows(data)

    def count_above(self, manifest: BoardManifest, board: str, region: str, score: int) -> int | None:
        """Return how many had a higher score; None if that part of the snapshot is gone."""
        number = chunk_of(manifest.index.get(f"{board}#{region}", b""), score)
        if number is None:
            return 0
        data = self._part(manifest, f"{board}#{region}", str(number))
        return None if data is None else count_above(data, score)

    def _part(self, manifest: BoardManifest, board: str, name: str) -> bytes | None:
        """Return a part's data; None if it is gone, which only somebody's hand could do."""
        part = f"{manifest.generation}#{name}"
        if (board, part) not in self._parts:
            key = encode_item({"board": board, "part": part})
            # The manifest may have arrived at a replica before its parts.
            found = self._get(key) or self._get(key, ConsistentRead=True)
            if found is None:
                return None
            self._parts[board, part] = found["data"]["B"]
        return self._parts[board, part]

    def _get(self, key: Item, **options: Any) -> Item | None:
        found: Item | None = self._dynamodb.get_item(TableName=self._table, Key=key, **options).get("Item")
        return found


def count_scores(dynamodb: Any, profiles: str, now: datetime, until: float = math.inf) -> Standings:
    """Count all users' scores, as they were about a second ago, at half the price.

    A profile that somebody has damaged is left out; the nightly run repairs it. Raises TimeoutError at the
    monotonic second `until`.
    """
    counted, lock = Standings(now), threading.Lock()

    def count(segment: int) -> None:
        names = {"#zone": "timezone"}
        scan = {"TableName": profiles, "ProjectionExpression": COUNTED, "ExpressionAttributeNames": names}
        for item in scan_all(dynamodb, **scan, Segment=segment, TotalSegments=SEGMENTS):
            if row := _score_row(item):
                with lock:
                    counted.add(*row)
            if time.monotonic() >= until:
                raise TimeoutError(f"{counted.users} users were counted when the time was up")

    with ThreadPoolExecutor(SEGMENTS) as pool:
        list(pool.map(count, range(SEGMENTS)))
    return counted


def _score_row(profile: Item) -> tuple[str, str, int, int, int, str] | None:
    """Return user, zone, points, streak, when that lapses, and alias; None for a damaged profile."""
    none = {"N": "0"}
    try:
        return (
            profile["user_id"]["S"],
            profile["timezone"]["S"],
            int(profile["total_bestie_points"]["N"]),
            int(profile.get("current_streak", none)["N"]),
            int(profile.get("lapses_at", none)["N"]),
            profile.get("alias", {"S": ""})["S"],
        )
    except (KeyError, ValueError):
        return None


def write_snapshot(dynamodb: Any, table: str, counted: Standings) -> bool:
    """Write a generation, then the manifest; returns whether it is the newest now.

    Raises Unprocessed; then nobody sees what has been written.
    """
    as_of = stamp(counted.as_of)
    generation = f"{as_of}-{uuid4().hex[:8]}"
    expires_at = int((counted.as_of + SNAPSHOTS_KEPT).timestamp())
    index: dict[str, bytes] = {}
    put_all(dynamodb, table, [*_parts_of(counted, generation, expires_at, index)])
    manifest = {**MANIFEST, "index": {"M": {name: {"B": data} for name, data in index.items()}}}
    fields = {"generation": generation, "as_of": as_of, "users": counted.users, "expires_at": expires_at}
    try:
        dynamodb.put_item(
            TableName=table,
            Item=manifest | encode_item(fields),
            ConditionExpression="attribute_not_exists(board) OR as_of < :as_of",
            ExpressionAttributeValues=encode_item({":as_of": as_of}),
        )
    except dynamodb.exceptions.ConditionalCheckFailedException:
        return False
    return True


def _parts_of(
    counted: Standings, generation: str, expires_at: int, index: dict[str, bytes]
) -> Iterator[Item]:
    """Yield all parts of a generation; fills the index."""
    for (board, region), rows, chunks in counted.boards():
        name = f"{board}#{region}"
        index[name] = pack_index(chunks)
        parts = {str(number): each.data for number, each in enumerate(chunks)}
        parts |= {"top": pack_rows(rows)} if rows else {}
        for part, data in parts.items():
            key = encode_item({"board": name, "part": f"{generation}#{part}", "expires_at": expires_at})
            yield {**key, "data": {"B": data}}


def _manifest_from(item: Item) -> BoardManifest:
    return BoardManifest(
        generation=item["generation"]["S"],
        as_of=unstamp(item["as_of"]["S"]),
        users=int(item["users"]["N"]),
        expires_at=int(item["expires_at"]["N"]),
        index={name: each["B"] for name, each in item["index"]["M"].items()},
    )


Scores = list[tuple[str, int]]


class LeaderboardIndex:
    """Lists of streaks. They read the first rows of each shard, however many users there are.

    shards: of a region.
    """

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def top(self, region: str, now: datetime) -> Scores:
        """Return the first 100, (user, streak), best first, ties by user id. Eventually consistent."""
        return _first(row for partition in self._partitions(region) for row in self._best(partition, now))

    def tops(self, now: datetime) -> dict[str, Scores]:
        """Return the first 100 of each region and of all together."""
        found = {region: self.top(region, now) for region in (*REGIONS, OTHER_REGION)}
        return found | {GLOBAL: _first(row for scores in found.values() for row in scores)}

    def count_above(self, region: str, score: int, now: datetime) -> int | None:
        """Return how many have a longer streak; None if a partition has more of them than fit into a page."""
        above = 0
        for partition in self._partitions(region):
            asked = self._partition_query(partition, now, " AND current_streak > :score", {":score": score})
            page = self._dynamodb.query(**asked, Select="COUNT")
            if "LastEvaluatedKey" in page:
                return None
            above += page["Count"]
        return above

    def _partitions(self, region: str) -> list[str]:
        regions = (*REGIONS, OTHER_REGION) if region == GLOBAL else (region,)
        return [name for each in regions for name in partitions_of(each, self._shards)]

    def _best(self, partition: str, now: datetime) -> Iterator[tuple[str, int]]:
        """Yield a partition's best streaks that have not lapsed, with all that tie with the last of them."""
        asked = self._partition_query(partition, now)
        rows = query_all(self._dynamodb, **asked, ScanIndexForward=False, Limit=LISTED_MAX)
        taken, last = 0, 0
        for each in map(decode_item, islice(rows, READ_MAX)):
            if taken >= LISTED_MAX and each["current_streak"] < last:
                return
            taken, last = taken + 1, each["current_streak"]
            yield each["user_id"], last

    def _partition_query(
        self, partition: str, now: datetime, also: str = "", values: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return a query of a partition. A streak that has lapsed stands there until the night lowers it."""
        named = {":partition": partition, ":now": int(now.timestamp()), **(values or {})}
        return {
            "TableName": self._table,
            "IndexName": "StreakLeaderboard",
            "KeyConditionExpression": f"leaderboard_partition = :partition{also}",
            "FilterExpression": "lapses_at > :now",
            "ExpressionAttributeValues": encode_item(named),
        }


def _first(rows: Iterable[tuple[str, int]]) -> Scores:
    return sorted(rows, key=lambda row: (-row[1], row[0]))[:LISTED_MAX]


class BoardNames:
    """The names under which users are on the boards. A process keeps those that it has read for a minute."""

    def __init__(self, dynamodb: Any, profiles: str, hashed: KeyedHash) -> None:
        self._dynamodb, self._profiles, self._hashed = dynamodb, profiles, hashed
        self._since, self._aliases = EPOCH, dict[str, str]()

    def of(self, user_ids: Iterable[str], now: datetime) -> dict[str, str]:
        """Return the name of each user: `Swift Heron 42` for one without an alias; it follows the key."""
        users = set(user_ids)
        if now - self._since > NAMES_KEPT:
            self._since, self._aliases = now, {}
        new = [{"user_id": user} for user in sorted(users - self._aliases.keys())]
        found = {each["user_id"]: each.get("alias", "") for each in map(decode_item, self._read(new))}
        self._aliases |= {each["user_id"]: found.get(each["user_id"], "") for each in new}
        return {user: self.shown(user, self._aliases[user]) for user in users}

    def shown(self, user_id: str, alias: str | None) -> str:
        """Return the alias, or what stands for a user without one: only who has the key can tell for whom."""
        return alias or pseudonym(self._hashed.of(f"board:{user_id}", PSEUDONYM_DIGITS))

    def forget(self, user_id: str) -> None:
        """Read a user's alias anew."""
        self._aliases.pop(user_id, None)

    def _read(self, keys: list[dict[str, str]]) -> Iterable[Any]:
        return get_all(self._dynamodb, self._profiles, keys, "user_id, alias") if keys else ()
