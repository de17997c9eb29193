"""What processors.engagement reads, and how everybody who reads or writes accounts finds their index."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreakIndex:
    """index_streaks: whether profiles are in the index. leaderboard_shards: a region's parts in it."""

    index_streaks: bool
    leaderboard_shards: int

    @property
    def index_shards(self) -> int:
        """The index's shards; 0: profiles stay out of it."""
        return self.leaderboard_shards if self.index_streaks else 0


@dataclass(frozen=True, slots=True)
class EngagementSettings(StreakIndex):
    """processors.engagement: what it cannot apply goes to failure_queue_url.

    writers: how many users it writes at the same time.
    """

    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rule_books_table: str
    redis_url: str
    failure_queue_url: str
    writers: int
    erasures_table: str
    erasure_secret_arn: str
