"""Leaderboards: their snapshots in the table Boards, and the names under which users are on them.

processors/ranks.py makes the snapshots. A user is on a board under an alias or a pseudonym, never under the
user id. The best streaks are read from an index (LeaderboardIndex). In this order: how a snapshot is written,
how it is read, names, the index.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import uuid4

from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.tables import Refresh, get_all, get_one, put_all, query_all, write_if
from rules.days import EPOCH, OTHER_REGION, REGIONS, stamp, unstamp
from rules.engagement.board_settings import board_settings_of, is_hidden
from rules.engagement.boards import (
    GLOBAL,
    HASH_DIGITS,
    LISTED_MAX,
    Standing,
    Standings,
    best_first,
    chunk_of,
    count_above_in_chunk,
    pack_index,
    pack_rows,
    partitions_of,
    pause_between,
    pseudonym,
    unpack_rows,
)

SNAPSHOTS_KEPT = timedelta(days=1)
MANIFEST_KEY = {"board": "manifest", "part": "newest"}
# A snapshot is made each five minutes; of many users less often (rules.engagement.boards). It is old when
# two of them were missed.
OLD_AFTER = timedelta(minutes=10)
# A process uses the newest snapshot that it knows for so long, before it looks for a newer one.
FRESH_SECONDS = 30
NAMES_KEPT = timedelta(minutes=1)
# At most so many rows are read of a partition of StreakLeaderboard: the first 100, and those that tie with
# the 100th. Of more ties than that, an arbitrary part is listed.
BEST_READ_MAX = 2000
Scores = list[tuple[str, int]]  # users with their scores, best first


def _is_hidden(profile: dict[str, Any]) -> bool:
    """Whether a user has left the boards. If the settings are damaged, nobody knows, so nobody is shown."""
    try:
        return is_hidden(board_settings_of(profile.get("board_settings")))
    except ValueError:
        return True


@dataclass(frozen=True, slots=True)
class BoardManifest:
    """The item that names the newest snapshot, and where to find a score in it."""

    generation: str  # begins the sort keys of the snapshot's parts
    as_of: datetime  # the instant before counting began
    users: int  # how many were counted
    expires_at: int  # epoch seconds
    index: dict[str, bytes]  # by "board#region", the packed first scores of its chunks

    def is_old(self, now: datetime) -> bool:
        """Whether a newer snapshot should have been made."""
        return now - self.as_of > max(OLD_AFTER, 2 * pause_between(self.users))


def new_generation(as_of: datetime) -> str:
    """Return what the sort keys of a snapshot's parts begin with."""
    return f"{stamp(as_of)}-{uuid4().hex[:8]}"


def write_snapshot(dynamodb: Any, table: str, standings: Standings, generation: str = "") -> bool:
    """Write the parts of a snapshot, then the manifest that names them; returns whether it is the newest now.

    generation: that of parts which are written already; "": there are none. Raises Unprocessed before the
    manifest is written. Then nobody sees the parts.
    """
    as_of = stamp(standings.as_of)
    generation = generation or new_generation(standings.as_of)
    expires_at = int((standings.as_of + SNAPSHOTS_KEPT).timestamp())
    parts: list[Item] = []
    index: Item = {}
    for (board, region), rows, chunks in standings.boards():
        name = f"{board}#{region}"
        index[name] = {"B": pack_index(chunks)}
        data_by_part = {str(number): chunk.data for number, chunk in enumerate(chunks)}
        if rows:
            data_by_part["top"] = pack_rows(rows)
        for part, data in data_by_part.items():
            key = encode_item({"board": name, "part": f"{generation}#{part}", "expires_at": expires_at})
            parts.append({**key, "data": {"B": data}})
    put_all(dynamodb, table, parts)
    fields = {"generation": generation, "as_of": as_of, "users": standings.users, "expires_at": expires_at}
    return write_if(
        dynamodb.put_item,
        TableName=table,
        Item={**encode_item(MANIFEST_KEY | fields), "index": {"M": index}},
        ConditionExpression="attribute_not_exists(board) OR as_of < :as_of",
        ExpressionAttributeValues=encode_item({":as_of": as_of}),
    )


def _manifest_from(item: Item) -> BoardManifest:
    return BoardManifest(
        generation=item["generation"]["S"],
        as_of=unstamp(item["as_of"]["S"]),
        users=int(item["users"]["N"]),
        expires_at=int(item["expires_at"]["N"]),
        index={name: data["B"] for name, data in item["index"]["M"].items()},
    )


class BoardSnapshots:
    """The newest snapshot, as one process sees it. The process keeps the parts of it that it has read."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._manifest: BoardManifest | None = None
        self._refresh = Refresh(FRESH_SECONDS)
        self._parts: dict[tuple[str, str], bytes] = {}

    def newest(self, now: datetime) -> BoardManifest | None:
        """Return the newest snapshot's manifest, at most half a minute old; None if there is no snapshot."""
        if self._manifest is None or self._refresh.is_over:
            asked_at = time.monotonic()
            self._read_manifest()
            self._refresh.renew(asked_at)
        manifest = self._manifest
        return manifest if manifest and manifest.expires_at > now.timestamp() else None

    def _read_manifest(self) -> None:
        """Take the stored manifest, unless the replica that answers has an older one than this process."""
        item = get_one(self._dynamodb, self._table, MANIFEST_KEY, is_strong=False)
        manifest = _manifest_from(item) if item else None
        if manifest and (self._manifest is None or manifest.as_of > self._manifest.as_of):
            self._manifest, self._parts = manifest, {}

    def top(self, manifest: BoardManifest, region: str) -> list[Standing] | None:
        """Return a region's best rows by points, [] if no user has points; None if the rows were deleted."""
        if f"points#{region}" not in manifest.index:
            return []
        data = self._part(manifest, f"points#{region}", "top")
        return None if data is None else unpack_rows(data)

    def count_above(self, manifest: BoardManifest, board: str, region: str, score: int) -> int | None:
        """Return how many users had a higher score; None if that part of the snapshot was deleted."""
        number = chunk_of(manifest.index.get(f"{board}#{region}", b""), score)
        if number is None:
            return 0
        data = self._part(manifest, f"{board}#{region}", str(number))
        return None if data is None else count_above_in_chunk(data, score)

    def _part(self, manifest: BoardManifest, board: str, name: str) -> bytes | None:
        """Return a part's data; None if it was deleted, which only an operator can do."""
        part = f"{manifest.generation}#{name}"
        if (board, part) not in self._parts:
            key = {"board": board, "part": part}
            # The manifest may have arrived at a replica before its parts.
            item = get_one(self._dynamodb, self._table, key, is_strong=False)
            item = item or get_one(self._dynamodb, self._table, key)
            if item is None:
                return None
            self._parts[board, part] = item["data"]["B"]
        return self._parts[board, part]


class BoardNames:
    """The names under which users are on the boards. A process keeps those that it has read for a minute."""

    def __init__(self, dynamodb: Any, profiles: str, hashed: KeyedHash) -> None:
        self._dynamodb, self._profiles, self._hashed = dynamodb, profiles, hashed
        self._since, self._aliases = EPOCH, dict[str, str]()
        self._hidden = set[str]()  # of those whose aliases were read, who have left the boards

    def names_of(self, user_ids: Iterable[str], now: datetime) -> dict[str, str]:
        """Return the name of each user: `Swift Heron 42` for one without an alias."""
        users = set(user_ids)
        if now - self._since > NAMES_KEPT:
            self._since, self._aliases, self._hidden = now, {}, set()
        unread = sorted(users - self._aliases.keys())
        keys = [{"user_id": user} for user in unread]
        items = get_all(self._dynamodb, self._profiles, keys, "user_id, alias, board_settings")
        profiles = list(map(decode_item, items))
        aliases = {profile["user_id"]: profile.get("alias", "") for profile in profiles}
        self._hidden |= {profile["user_id"] for profile in profiles if _is_hidden(profile)}
        self._aliases |= {user: aliases.get(user, "") for user in unread}
        return {user: self.name_of(user, self._aliases[user]) for user in users}

    def listed_names_of(self, user_ids: Iterable[str], now: datetime) -> dict[str, str | None]:
        """Return the name of each user, as names_of; None for one who has left the boards."""
        names = self.names_of(user_ids, now)
        return {user: None if user in self._hidden else name for user, name in names.items()}

    def name_of(self, user_id: str, alias: str | None) -> str:
        """Return the alias, or the pseudonym of a user without one.

        A pseudonym follows from the user id and a key: nobody without the key can tell whose it is.
        """
        return alias or pseudonym(self._hashed.of(f"board:{user_id}", HASH_DIGITS))

    def forget(self, user_id: str) -> None:
        """Make the next use of a user's name read the alias."""
        self._aliases.pop(user_id, None)


class LeaderboardIndex:
    """The index StreakLeaderboard. A list of the best reads the first rows of each shard, and no others.

    shards: of a region.
    """

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def top(self, region: str, now: datetime) -> Scores:
        """Return the first 100, (user, streak), best first, ties by user id. Eventually consistent."""
        rows = (row for partition in self._partitions(region) for row in self._best(partition, now))
        return best_first(rows)[:LISTED_MAX]

    def tops(self, now: datetime) -> dict[str, Scores]:
        """Return the first 100 of each region and of all together."""
        tops = {region: self.top(region, now) for region in (*REGIONS, OTHER_REGION)}
        return tops | {GLOBAL: best_first(row for scores in tops.values() for row in scores)[:LISTED_MAX]}

    def count_above(self, region: str, score: int, now: datetime) -> int | None:
        """Return how many users have a longer streak; None if a partition has more than a page of them."""
        above = 0
        for partition in self._partitions(region):
            page = self._dynamodb.query(**self._partition_query(partition, now, score), Select="COUNT")
            if "LastEvaluatedKey" in page:
                return None
            above += page["Count"]
        return above

    def _partitions(self, region: str) -> list[str]:
        regions = (*REGIONS, OTHER_REGION) if region == GLOBAL else (region,)
        return [partition for name in regions for partition in partitions_of(name, self._shards)]

    def _best(self, partition: str, now: datetime) -> Iterator[tuple[str, int]]:
        """Yield a partition's best 100 streaks that have not lapsed, and all that tie with the last one."""
        query = self._partition_query(partition, now)
        items = query_all(self._dynamodb, **query, ScanIndexForward=False, Limit=LISTED_MAX)
        last_streak = 0
        for count, row in enumerate(map(decode_item, islice(items, BEST_READ_MAX))):
            if count >= LISTED_MAX and row["current_streak"] < last_streak:
                return
            last_streak = row["current_streak"]
            yield row["user_id"], last_streak

    def _partition_query(self, partition: str, now: datetime, above: int | None = None) -> dict[str, Any]:
        """Return a query of a partition's streaks that have not lapsed, or only of those above a length.

        A streak that lapses stays in the index until RanksFunction or the night lowers it.
        """
        condition = "leaderboard_partition = :partition"
        values: dict[str, Any] = {":partition": partition, ":now": int(now.timestamp())}
        if above is not None:
            condition += " AND current_streak > :score"
            values[":score"] = above
        return {
            "TableName": self._table,
            "IndexName": "StreakLeaderboard",
            "KeyConditionExpression": condition,
            "FilterExpression": "lapses_at > :now",
            "ExpressionAttributeValues": encode_item(values),
        }
