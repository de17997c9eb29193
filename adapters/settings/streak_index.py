"""What every writer of profiles reads of the index StreakLeaderboard."""

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
