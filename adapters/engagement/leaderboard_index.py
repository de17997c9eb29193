"""Leaderboards from the tables, for when Redis cannot tell: right, but slower the more users there are."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from adapters.engagement.account_items import profile_from
from adapters.platform.batches import query_all
from adapters.platform.items import item, plain
from rules.days import OTHER_REGION, REGIONS, region_of
from rules.engagement.account_state import Profile

GLOBAL = "global"


class LeaderboardIndex:
    """Top lists and exact ranks over UserStreaks and its StreakLeaderboard index."""

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def everybody(self) -> Iterator[Profile]:
        """Yield all profiles: a table scan."""
        request: dict[str, Any] = {"TableName": self._table, "ConsistentRead": True}
        while True:
            page = self._dynamodb.scan(**request)
            yield from (profile_from(plain(each)) for each in page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def top(self, board: str, region: str, limit: int, now: datetime) -> list[tuple[str, int]]:
        """Return (user, score), best first, ties by user id."""
        if board == "points":
            scores = list(self._points(region))
        else:
            scores = [
                row for partition in self._partitions(region) for row in self._best(partition, limit, now)
            ]
        return sorted(scores, key=lambda row: (-row[1], row[0]))[:limit]

    def count_above(self, board: str, region: str, score: int, now: datetime) -> int:
        """Return how many have a higher score."""
        if board == "points":
            return sum(points > score for _, points in self._points(region))
        return sum(self._count_above(partition, score, now) for partition in self._partitions(region))

    def _partitions(self, region: str) -> Iterable[str]:
        regions = (*REGIONS, OTHER_REGION) if region == GLOBAL else (region,)
        return [f"{each}#{shard}" for each in regions for shard in range(self._shards)]

    def _best(self, partition: str, limit: int, now: datetime) -> Iterator[tuple[str, int]]:
        """Yield a partition's best streaks that have not lapsed, with all that tie with the last of them."""
        rows = self._query(partition, 0, now, ScanIndexForward=False, Limit=max(limit, 25))
        taken, last = 0, 0
        for each in map(plain, rows):
            if taken >= limit and each["current_streak"] < last:
                return
            taken, last = taken + 1, each["current_streak"]
            yield each["user_id"], last

    def _count_above(self, partition: str, score: int, now: datetime) -> int:
        return sum(1 for _ in self._query(partition, score, now, ProjectionExpression="user_id"))

    def _query(self, partition: str, score: int, now: datetime, **options: Any) -> Iterator[dict[str, Any]]:
        return query_all(
            self._dynamodb,
            TableName=self._table,
            IndexName="StreakLeaderboard",
            KeyConditionExpression="leaderboard_partition = :partition AND current_streak > :score",
            FilterExpression="lapses_at > :now",
            ExpressionAttributeValues=item(
                {":partition": partition, ":score": score, ":now": int(now.timestamp())}
            ),
            **options,
        )

    def _points(self, region: str) -> Iterator[tuple[str, int]]:
        for profile in self.everybody():
            if profile.total_points and region in (GLOBAL, region_of(profile.zone)):
                yield profile.user_id, profile.total_points
