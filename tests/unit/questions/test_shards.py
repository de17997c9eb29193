"""The partitions that stats are spread over."""

from hypothesis import given
from hypothesis import strategies as st

from adapters.questions.user_stats_store import leaderboard_partition


@given(st.text(min_size=1), st.integers(1, 64), st.integers(0, 63))
def test_a_greater_number_of_shards_finds_what_a_smaller_one_wrote(name: str, shards: int, more: int) -> None:
    """As tests/integration/test_template_sizes.py says it of features."""
    boards = {"_leaderboard", *(f"_leaderboard#{each}" for each in range(1, shards + more))}
    assert leaderboard_partition(name, shards) in boards
