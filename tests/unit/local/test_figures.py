"""A budget is missed only if the middle half of the rounds lies beyond it as a whole."""

from hypothesis import given
from hypothesis import strategies as st

from bench.figure import Figure, median_text, middle_half, ratio

ROUNDS = st.lists(st.floats(0.1, 10), min_size=5, max_size=11)


def test_one_lucky_round_does_not_save_a_budget_and_an_unlucky_one_does_not_lose_it() -> None:
    assert ratio("slow", [2, 2.1, 2.2, 2.3, 0.5], [1] * 5, "<=", 1).is_missed
    assert not ratio("fast", [0.5, 0.6, 0.7, 0.8, 9], [1] * 5, "<=", 1).is_missed
    close = ratio("close", [0.9, 0.95, 1.05, 1.1, 1.2], [1] * 5, "<=", 1)
    assert (close.is_missed, "close" in close.line()) == (False, True)
    assert Figure("without rounds", 1.05, "<=", 1).is_missed
    assert not Figure("without a budget", 1.05).is_missed


def test_a_ratio_is_that_of_each_round() -> None:
    found = ratio("x", [2, 20, 6], [1, 10, 2], ">=", 2.5)
    assert (found.value, found.spread) == (2, (2, 2.5))
    assert not found.is_missed
    assert median_text([1, 2, 3, 4, 5]) == "3.00 (2.00..4.00)"


@given(ROUNDS, st.floats(0.1, 10))
def test_a_budget_holds_one_way_or_the_other(rounds: list[float], budget: float) -> None:
    low, high = middle_half(rounds)
    assert ratio("x", rounds, [1] * len(rounds), "<=", budget).is_missed is (low > budget)
    assert ratio("x", rounds, [1] * len(rounds), ">=", budget).is_missed is (high < budget)
