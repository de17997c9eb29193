"""The best streaks from the StreakLeaderboard index, for the minutes before there is any snapshot."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from adapters.platform.batches import query_all
from adapters.platform.items import item, plain
from rules.days import OTHER_REGION, REGIONS
from rules.engagement.boards import GLOBAL


class LeaderboardIndex:
    """Top lists of streaks. They read some rows of each shard, however many users there are.

    shards: 0 if profiles stay out of the index (the setting IndexStreaks).
    """

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    @property
    def is_kept(self) -> bool:
        """Whether profiles are in the index."""
        return self._shards > 0

    def top(self, region: str, limit: int, now: datetime) -> list[tuple[str, int]]:
        """Return (user, score), best first, ties by user id."""
        rows = [row for each in self._partitions(region) for row in self._best(each, limit, now)]
        return sorted(rows, key=lambda row: (-row[1], row[0]))[:limit]

    def _partitions(self, region: str) -> Iterable[str]:
        regions = (*REGIONS, OTHER_REGION) if region == GLOBAL else (region,)
        return [f"{each}#{shard}" for each in regions for shard in range(self._shards)]

    def _best(self, partition: str, limit: int, now: datetime) -> Iterator[tuple[str, int]]:
        """Yield a partition's best streaks that have not lapsed, with all that tie with the last of them."""
        rows = query_all(
            self._dynamodb,
            TableName=self._table,
            IndexName="StreakLeaderboard",
            KeyConditionExpression="leaderboard_partition = :partition",
            FilterExpression="lapses_at > :now",
            ExpressionAttributeValues=item({":partition": partition, ":now": int(now.timestamp())}),
            ScanIndexForward=False,
            Limit=max(limit, 25),
        )
        taken, last = 0, 0
        for each in map(plain, rows):
            if taken >= limit and each["current_streak"] < last:
                return
            taken, last = taken + 1, each["current_streak"]
            yield each["user_id"], last
