"""The best streaks, from the index StreakLeaderboard."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from adapters.platform.items import item, plain
from adapters.platform.tables import query_all
from rules.days import OTHER_REGION, REGIONS
from rules.engagement.boards import GLOBAL, LISTED_MAX, partitions_of

# Rows of a partition that have not lapsed, in a list: the first 100, and all who tie with the last of them.
# Beyond these it is left to chance who of many with the same streak is listed.
READ_MAX = 2000
Scores = list[tuple[str, int]]


class LeaderboardIndex:
    """Lists of streaks. They read the first rows of each shard, however many users there are.

    shards: of a region.
    """

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def top(self, region: str, now: datetime) -> Scores:
        """Return the first 100, (user, streak), best first, ties by user id. Eventually consistent."""
        return _first(row for each in self._partitions(region) for row in self._best(each, now))

    def tops(self, now: datetime) -> dict[str, Scores]:
        """Return the first 100 of each region and of all together."""
        found = {region: self.top(region, now) for region in (*REGIONS, OTHER_REGION)}
        return found | {GLOBAL: _first(row for scores in found.values() for row in scores)}

    def count_above(self, region: str, score: int, now: datetime) -> int | None:
        """Return how many have a longer streak; None if a partition has more of them than fit into a page."""
        above = 0
        for each in self._partitions(region):
            asked = self._asked(each, now, " AND current_streak > :score", {":score": score})
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
        asked = self._asked(partition, now)
        rows = query_all(self._dynamodb, **asked, ScanIndexForward=False, Limit=LISTED_MAX)
        taken, last = 0, 0
        for each in map(plain, islice(rows, READ_MAX)):
            if taken >= LISTED_MAX and each["current_streak"] < last:
                return
            taken, last = taken + 1, each["current_streak"]
            yield each["user_id"], last

    def _asked(
        self, partition: str, now: datetime, also: str = "", values: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return a query of a partition. A streak that has lapsed stands there until the night lowers it."""
        named = {":partition": partition, ":now": int(now.timestamp()), **(values or {})}
        return {
            "TableName": self._table,
            "IndexName": "StreakLeaderboard",
            "KeyConditionExpression": f"leaderboard_partition = :partition{also}",
            "FilterExpression": "lapses_at > :now",
            "ExpressionAttributeValues": item(named),
        }


def _first(rows: Iterable[tuple[str, int]]) -> Scores:
    return sorted(rows, key=lambda row: (-row[1], row[0]))[:LISTED_MAX]
