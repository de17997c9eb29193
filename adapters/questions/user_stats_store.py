"""The UserStats table. It has each person's stats, and by an index the leaderboard by points.

A person's stats stand under one hash of the person, their *home*. When keys rotate, the person gets a new
hash, and the next write puts the stats under it. Then the items of the older hashes have `moved_to`, a hash
that is nearer to the home. stats_items.py turns stats into attributes, and back.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import nlargest
from itertools import chain
from typing import Any, NamedTuple

from adapters.engagement.projections import unchanged_condition
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import get_all, get_one, if_unchanged, scan_all, transact, write_if
from adapters.questions.stats_items import stats_attributes, stats_from
from rules.days import stamp
from rules.questions.answer_stats import Stats

# The name of the attribute by which the index ByTotalPoints is partitioned; and its value in the first
# partition.
LEADERBOARD = "_leaderboard"
# Every change of an item changes one of these attributes. A repair has the condition that all of them are as
# they were read.
STATS_MARKS = ("version", "updated_at", "total_points", "total_answers", "days", "settled")
# A transaction takes 100 actions. One is for the stats, and one is for the mark of each answer. Two are for
# older hashes from which the stats move: there are at most rules.key_ring.KEYS_MAX keys.
RESPONSES_MAX = 97


@dataclass(frozen=True, slots=True)
class StoredStats:
    """A person's stats as they are stored."""

    person: str  # the hash under which the next write puts the stats
    stats: Stats
    version: int = 0  # 0: the person has none
    updated_at: str = ""
    older_hashes: tuple[str, ...] = ()  # all other hashes that the person has had
    # (hash, version) of the older hashes whose items get `moved_to` at the next write
    hashes_to_redirect: tuple[tuple[str, int], ...] = ()
    is_split_over_hashes: bool = False  # several hashes have stats, so they must be made from all responses

    @property
    def stored_under(self) -> str:
        """The hash under which table and boards have the stats now."""
        if self.version:
            return self.person
        hashes_with_stats = (older_hash for older_hash, version in self.hashes_to_redirect if version)
        return next(hashes_with_stats, self.person)

    @property
    def hashes(self) -> tuple[str, ...]:
        """All hashes under which the person has answered."""
        return self.person, *self.older_hashes


class BoardRow(NamedTuple):
    """A person on the leaderboard."""

    fingerprint_hash: str
    points: int
    answers: int


class UserStatsStore:
    """Stats of all people. The last four methods are for those who repair stored stats."""

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        """shards: how many partitions the leaderboard's index has."""
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def of(self, person: str, known_hashes: Iterable[str] = ()) -> StoredStats:
        """Return a person's stats, strongly consistent. known_hashes: other hashes of the same person."""
        home = self._home(person)
        not_redirected = sorted(set(known_hashes) - set(home.hashes))
        if not not_redirected:
            return home
        stats_by_home = {stats.person: stats for stats in map(self._home, not_redirected)}
        # If another process has redirected some of them meanwhile, they lead to a newer version of home.
        home = stats_by_home.pop(home.person, home)
        return _merged(home, list(stats_by_home.values()), not_redirected)

    def _home(self, person: str) -> StoredStats:
        """Follow `moved_to` from a hash to the stats; empty ones if none are there.

        Raises ValueError for a circle.
        """
        visited = set[str]()
        while items := get_all(self._dynamodb, self._table, [{"fingerprint_hash": person}]):
            if person in visited:
                raise ValueError(f"stats have moved in a circle: {person}")
            visited.add(person)
            attributes = decode_item(items[0])
            if "moved_to" not in attributes:
                return StoredStats(
                    person,
                    stats_from(attributes),
                    attributes["version"],
                    attributes["updated_at"],
                    tuple(attributes.get("older_hashes", ())),
                )
            person = attributes["moved_to"]
        return StoredStats(person, Stats())

    def put_with_marks(
        self, before: StoredStats, stats: Stats, marks: Sequence[dict[str, Any]], now: datetime
    ) -> bool:
        """Put stats with up to RESPONSES_MAX more answers, and the marks of these answers.

        One transaction writes all of it, so that a process that dies leaves all or nothing. False: nothing is
        written, because the stats have changed since they were read, or an answer is counted already or gone.
        """
        return not transact(self._dynamodb, [*self._put_actions(before, stats, stamp(now)), *marks])

    def _put_actions(self, before: StoredStats, stats: Stats, now: str) -> list[dict[str, Any]]:
        """Return the actions that put stats in place of those that were read, and redirect other hashes."""
        attributes = self.attributes(before.person, stats, before.older_hashes)
        actions = [self._put_action(attributes, before.version, now)]
        for older_hash, version in before.hashes_to_redirect:
            redirection = {"fingerprint_hash": older_hash, "moved_to": before.person}
            actions.append(self._put_action(redirection, version, now))
        return actions

    def _put_action(self, attributes: Mapping[str, Any], version: int, now: str) -> dict[str, Any]:
        item = encode_item({**attributes, "version": version + 1, "updated_at": now})
        condition = if_unchanged("fingerprint_hash", "version", version or None)
        return {"Put": {"TableName": self._table, "Item": item, **condition}}

    def top(self, limit: int) -> list[BoardRow]:
        """Return at most `limit` people, best first."""
        rows = chain.from_iterable(self._best(shard, limit) for shard in range(self._shards))
        return nlargest(limit, rows, key=lambda row: (row.points, row.fingerprint_hash))

    def _best(self, shard: int, limit: int) -> list[BoardRow]:
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="ByTotalPoints",
            KeyConditionExpression="#board = :partition",
            ExpressionAttributeNames={"#board": LEADERBOARD},
            ExpressionAttributeValues=encode_item({":partition": _partition(shard)}),
            ScanIndexForward=False,
            Limit=limit,
        )
        items = map(decode_item, answer["Items"])
        return [
            BoardRow(item["fingerprint_hash"], item["total_points"], item["total_answers"]) for item in items
        ]

    def attributes(self, person: str, stats: Stats, older_hashes: tuple[str, ...]) -> dict[str, Any]:
        """Return stats as they are stored, without version and updated_at."""
        return stats_attributes(person, stats) | {
            LEADERBOARD: leaderboard_partition(person, self._shards) if stats.total_points else None,
            "older_hashes": older_hashes or None,
        }

    def scan(self, segment: int, segments: int) -> Iterator[Item]:
        """Yield a segment of all items as they are stored; eventually consistent."""
        return scan_all(self._dynamodb, TableName=self._table, Segment=segment, TotalSegments=segments)

    def stored(self, person: str) -> Item | None:
        """Return an item as it is stored, strongly consistent."""
        return get_one(self._dynamodb, self._table, {"fingerprint_hash": person})

    def put_in_place(self, new: Item, before: Item | None) -> bool:
        """Put an item in place of the one that was read. False: it has changed since, so nothing is put."""
        condition = unchanged_condition(before, STATS_MARKS, "fingerprint_hash")
        return write_if(self._dynamodb.put_item, TableName=self._table, Item=new, **condition)


def _merged(home: StoredStats, others: Sequence[StoredStats], hashes: Iterable[str]) -> StoredStats:
    """Return a person's stats from those found under several hashes. The next write redirects the others.

    If only home has stats, or none has any, home's stay. If one of the others alone has stats, the next write
    moves them to home's hash. If several have stats, each lacks answers, so they must be made anew.
    hashes: those that led to the others, or to home.
    """
    with_stats = [stats for stats in (home, *others) if stats.version]
    all_hashes = {*hashes, *home.older_hashes}.union(*(stats.hashes for stats in others))
    return replace(
        home,
        stats=with_stats[0].stats if with_stats else home.stats,
        updated_at=max(stats.updated_at for stats in (home, *others)),
        older_hashes=tuple(sorted(all_hashes - {home.person})),
        hashes_to_redirect=tuple((stats.person, stats.version) for stats in others),
        is_split_over_hashes=len(with_stats) > 1,
    )


def leaderboard_partition(fingerprint_hash: str, shards: int) -> str:
    """Return the partition of the leaderboard that a person is in: the same in every process."""
    return _partition(zlib.crc32(fingerprint_hash.encode()) % shards)


def _partition(shard: int) -> str:
    return f"{LEADERBOARD}#{shard}" if shard else LEADERBOARD
