"""What processors.engagement reads, and how everybody who reads or writes accounts finds their index."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngagementSettings:
    """processors.engagement: what it cannot apply goes to failure_queue_url.

    leaderboard_shards: a region's parts in the index StreakLeaderboard.
    """

    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rule_books_table: str
    redis_url: str
    failure_queue_url: str
    leaderboard_shards: int
    erasures_table: str
    erasure_secret_arn: str
