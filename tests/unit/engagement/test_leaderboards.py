"""Ranks of a leaderboard, and which boards and regions there are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.engagement.leaderboards import check_board
from rules.engagement.boards import with_ranks
from tests.support.http_requests import query_refusal


def test_ties_share_a_rank_and_the_next_one_is_counted_on() -> None:
    rows = with_ranks([("a", 9), ("b", 7), ("c", 7), ("d", 1)])
    assert [each["rank"] for each in rows] == [1, 2, 2, 4]
    assert rows[1] == {"rank": 2, "user_id": "b", "score": 7}
    assert with_ranks([]) == []


@given(st.lists(st.integers(1, 6), max_size=20))
def test_a_rank_is_one_more_than_the_number_of_higher_scores(scores: list[int]) -> None:
    best_first = sorted(scores, reverse=True)
    rows = with_ranks([(str(place), score) for place, score in enumerate(best_first)])
    assert [each["rank"] for each in rows] == [
        1 + sum(other > score for other in scores) for score in best_first
    ]


@pytest.mark.parametrize(
    ("board", "region", "status"), [("coins", "global", 404), ("points", "moon", 400), ("streaks", "", 400)]
)
def test_a_board_or_region_that_there_is_not_is_refused(board: str, region: str, status: int) -> None:
    assert query_refusal(lambda: check_board(board, region))[0] == status
    check_board("points", "europe")
    check_board("streaks", "global")
