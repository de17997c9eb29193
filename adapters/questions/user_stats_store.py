"""The UserStats table: what is kept of a person's answers, and the leaderboard by points."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from typing import Any

from adapters.platform.batches import get_all
from adapters.platform.items import item, plain
from adapters.questions.user_stats_items import stats_attributes, stats_from, total_answers
from rules.questions.answer_stats import Stats


@dataclass(frozen=True, slots=True)
class StoredStats:
    """A person's stats as they are stored. version: 0 for a person without any."""

    stats: Stats
    version: int = 0
    updated_at: str = ""


class UserStatsStore:
    """Stats of all people. shards: partitions that the leaderboard's index is cut into."""

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def get(self, fingerprint_hashes: Iterable[str]) -> dict[str, StoredStats]:
        """Return people's stats, strongly consistent: one request for a hundred people."""
        people = sorted(set(fingerprint_hashes))
        keys = [{"fingerprint_hash": person} for person in people]
        found = map(plain, get_all(self._dynamodb, self._table, keys))
        return dict.fromkeys(people, StoredStats(Stats())) | {
            each["fingerprint_hash"]: StoredStats(stats_from(each), each["version"], each["updated_at"])
            for each in found
        }

    def put_action(self, person: str, stats: Stats, before: StoredStats, now: str) -> dict[str, Any]:
        """Return a transaction's action: put stats if nobody has changed them since they were read."""
        whole = stats_attributes(person, stats) | {
            "leaderboard": leaderboard_partition(person, self._shards) if stats.total_points else None,
            "version": before.version + 1,
            "updated_at": now,
        }
        put: dict[str, Any] = {"TableName": self._table, "Item": item(whole)}
        if before.version == 0:
            return {"Put": put | {"ConditionExpression": "attribute_not_exists(fingerprint_hash)"}}
        return {
            "Put": put
            | {
                "ConditionExpression": "version = :before",
                "ExpressionAttributeValues": item({":before": before.version}),
            }
        }

    def top(self, limit: int) -> list[tuple[str, int, int]]:
        """Return (fingerprint_hash, points, answers), best first: one request a shard."""
        rows = (row for shard in range(self._shards) for row in self._best(shard, limit))
        return nlargest(limit, rows, key=lambda row: (row[1], row[0]))

    def _best(self, shard: int, limit: int) -> list[tuple[str, int, int]]:
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="ByTotalPoints",
            KeyConditionExpression="leaderboard = :shard",
            ExpressionAttributeValues=item({":shard": f"answers#{shard}"}),
            ScanIndexForward=False,
            Limit=limit,
        )
        found = map(plain, answer["Items"])
        return [(each["fingerprint_hash"], each["total_points"], total_answers(each)) for each in found]


def leaderboard_partition(fingerprint_hash: str, shards: int) -> str:
    """Return the partition of the leaderboard that a person is in: the same in every process."""
    return f"answers#{zlib.crc32(fingerprint_hash.encode()) % shards}"
