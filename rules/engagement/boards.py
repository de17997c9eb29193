"""Which leaderboards there are: of streaks and of points, in each region of the world and in all."""

import zlib

from rules.days import OTHER_REGION, REGIONS

GLOBAL = "global"
BOARDS = ("streaks", "points")
ALL_REGIONS = (*REGIONS, OTHER_REGION, GLOBAL)


def partitions_of(region: str, shards: int) -> list[str]:
    """Return a region's partitions in the index StreakLeaderboard: `europe`, then `europe#1`, `europe#2`."""
    return [f"{region}#{shard}" if shard else region for shard in range(shards)]


def partition_of(user_id: str, region: str, shards: int) -> str:
    """Return which of a region's partitions a user is in; it follows from the user's id."""
    return partitions_of(region, shards)[zlib.crc32(user_id.encode()) % shards]
