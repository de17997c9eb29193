"""The UserStats table: what is kept of a person's answers, and the leaderboard by points."""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from heapq import nlargest
from typing import Any

from adapters.platform.batches import get_all
from adapters.platform.items import item, plain
from rules.questions import answer_days
from rules.questions.answer_stats import Category, Stats
from rules.questions.badges import earned_badges


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
            each["fingerprint_hash"]: stats_from(each) for each in found
        }

    def put_action(self, person: str, stats: Stats, before: StoredStats, now: str) -> dict[str, Any]:
        """Return a transaction's action: put stats if nobody has changed them since they were read."""
        whole = stats_attributes(person, stats, self._shards) | {
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
        return [(each["fingerprint_hash"], each["total_points"], each["answers"]) for each in found]


def leaderboard_partition(fingerprint_hash: str, shards: int) -> str:
    """Return the partition of the leaderboard that a person is in: the same in every process."""
    return f"answers#{zlib.crc32(fingerprint_hash.encode()) % shards}"


def stats_attributes(person: str, stats: Stats, shards: int) -> dict[str, Any]:
    """Return stats as table attributes.

    Stats are read again from days, answers_by_category, first_dates, newest_at and zone. The other attributes
    are what shows, as of the last activity date.
    """
    streak = stats.streak
    return {
        "fingerprint_hash": person,
        "leaderboard": leaderboard_partition(person, shards) if stats.total_points else None,
        "total_points": stats.total_points,
        "answers": stats.answers,
        "streak_days": streak.length if streak else 0,
        "longest_streak_days": streak.longest if streak else 0,
        "last_activity_date": streak.last.isoformat() if streak else None,
        "badges": {each.badge.name: each.earned_on.isoformat() for each in earned_badges(stats)},
        "answers_by_category": {name: each.answers for name, each in sorted(stats.categories.items())},
        "first_dates": {name: each.first.isoformat() for name, each in sorted(stats.categories.items())},
        "days": answer_days.encode(stats.days),
        "newest_at": stats.newest[0],
        "zone": stats.newest[1],
    }


def stats_from(stored: Mapping[str, Any]) -> StoredStats:
    """Read stored stats; raises ValueError or KeyError for what stats_attributes() did not write."""
    categories = {
        name: Category(answers, date.fromisoformat(stored["first_dates"][name]))
        for name, answers in stored["answers_by_category"].items()
    }
    stats = Stats(answer_days.decode(stored["days"]), categories, (stored["newest_at"], stored["zone"]))
    return StoredStats(stats, stored["version"], stored["updated_at"])
