"""Parts of the table UserStreaks that are read without a whole profile: its three indexes, and zones."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from itertools import islice
from typing import Any

from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import get_all, query_all
from rules.days import OTHER_REGION, REGIONS
from rules.engagement.boards import GLOBAL, LISTED_MAX, partitions_of

# The partition of the index UnderReview. Only accounts that an admin has yet to look at are in it.
UNDER_REVIEW = "open"
EXPIRY_SHARDS = 8  # partitions of the index ByExpiry
# At most so many rows are read of a partition of StreakLeaderboard: the first 100, and those that tie with
# the 100th. Of more ties than that, an arbitrary part is listed.
BEST_READ_MAX = 2000

Scores = list[tuple[str, int]]  # users with their scores, best first


class ReviewIndex:
    """The accounts under review, from the index UnderReview of UserStreaks. Nobody else is in it."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def waiting(self, after: str, limit: int) -> list[dict[str, Any]]:
        """Return up to `limit` accounts after a user id ("": from the first), as attributes of the index.

        They may be some seconds old.
        """
        page: dict[str, Any] = {}
        if after:
            page["ExclusiveStartKey"] = encode_item({"user_id": after, "review_state": UNDER_REVIEW})
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="UnderReview",
            KeyConditionExpression="review_state = :open",
            ExpressionAttributeValues={":open": {"S": UNDER_REVIEW}},
            Limit=limit,
            **page,
        )
        return [decode_item(each) for each in answer["Items"]]


class ExpiryIndex:
    """The accounts with points to expire, from the index ByExpiry of UserStreaks. Nobody else is in it."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def due(self, until: date, first_shard: int = 0) -> Iterator[str]:
        """Yield the users whose next points expire by a date: shard by shard, in each the oldest first.

        They may be some seconds old. first_shard: where to begin, so that runs take turns.
        """
        for number in range(EXPIRY_SHARDS):
            items = query_all(
                self._dynamodb,
                TableName=self._table,
                IndexName="ByExpiry",
                KeyConditionExpression="expiry_shard = :shard AND expires_next <= :until",
                ExpressionAttributeValues=encode_item(
                    {":shard": str((first_shard + number) % EXPIRY_SHARDS), ":until": until.isoformat()}
                ),
            )
            yield from (item["user_id"]["S"] for item in items)


class LeaderboardIndex:
    """The index StreakLeaderboard. A list of the best reads the first rows of each shard, and no others.

    shards: of a region.
    """

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def top(self, region: str, now: datetime) -> Scores:
        """Return the first 100, (user, streak), best first, ties by user id. Eventually consistent."""
        return _best_rows(row for partition in self._partitions(region) for row in self._best(partition, now))

    def tops(self, now: datetime) -> dict[str, Scores]:
        """Return the first 100 of each region and of all together."""
        tops = {region: self.top(region, now) for region in (*REGIONS, OTHER_REGION)}
        return tops | {GLOBAL: _best_rows(row for scores in tops.values() for row in scores)}

    def count_above(self, region: str, score: int, now: datetime) -> int | None:
        """Return how many users have a longer streak; None if a partition has more than a page of them."""
        above = 0
        for partition in self._partitions(region):
            query = self._partition_query(partition, now, " AND current_streak > :score", {":score": score})
            page = self._dynamodb.query(**query, Select="COUNT")
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

    def _partition_query(
        self, partition: str, now: datetime, condition: str = "", values: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return a query of a partition's streaks that have not lapsed.

        A streak that has lapsed stays in the index until the night lowers it. condition, values: a further
        condition on the key.
        """
        all_values = {":partition": partition, ":now": int(now.timestamp()), **(values or {})}
        return {
            "TableName": self._table,
            "IndexName": "StreakLeaderboard",
            "KeyConditionExpression": f"leaderboard_partition = :partition{condition}",
            "FilterExpression": "lapses_at > :now",
            "ExpressionAttributeValues": encode_item(all_values),
        }


class ZoneStore:
    """The zones in the table of profiles (UserStreaks)."""

    def __init__(self, dynamodb: Any, profiles: str) -> None:
        self._dynamodb, self._profiles = dynamodb, profiles

    def chosen(self, user_ids: Iterable[str]) -> dict[str, str | None]:
        """Return each user's zone; None: the user has set none, or is not known. Raises Unprocessed."""
        users = sorted(set(user_ids))
        keys = [{"user_id": user} for user in users]
        stored = map(decode_item, get_all(self._dynamodb, self._profiles, keys, "user_id, timezone_chosen"))
        found = {each["user_id"]: each.get("timezone_chosen") for each in stored}
        return {user: found.get(user) for user in users}


def _best_rows(rows: Iterable[tuple[str, int]]) -> Scores:
    def rank(row: tuple[str, int]) -> tuple[int, str]:
        user_id, streak = row
        return -streak, user_id

    return sorted(rows, key=rank)[:LISTED_MAX]
