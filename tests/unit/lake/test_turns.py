"""Dates of the lake have their turn, a bounded number a night, and none is left out."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rules.turns import NIGHTS, dates_due

BEGIN = date(2026, 1, 1)
DATES = st.sets(st.dates(BEGIN, BEGIN + timedelta(days=500)), max_size=400)
TODAY = st.dates(BEGIN, BEGIN + timedelta(days=4000))
ONE = timedelta(days=1)


def cycle(count: int) -> int:
    """In how many nights each of so many dates has its turn: 28, or about as many as there are dates."""
    return next(each for each in (28, 56, 112, 224, 448) if count < 2 * each)


@given(DATES, TODAY)
def test_each_date_has_one_turn_in_a_cycle(dates: set[date], today: date) -> None:
    nights = [today + number * ONE for number in range(cycle(len(dates)))]
    found = [each for night in nights for each in dates_due(dates, night - ONE, night)]
    assert sorted(found) == sorted(dates)


@given(st.integers(0, 500), TODAY)
def test_of_dates_in_a_row_two_at_most_are_due(count: int, today: date) -> None:
    dates = {BEGIN + number * ONE for number in range(count)}
    assert len(dates_due(dates, today - ONE, today)) <= 2


@given(DATES, TODAY, st.integers(0, 600))
def test_nights_that_were_left_out_are_made_good(dates: set[date], today: date, left_out: int) -> None:
    last = today - left_out * ONE
    one_by_one = [
        dates_due(dates, last + number * ONE, last + (number + 1) * ONE) for number in range(left_out)
    ]
    assert dates_due(dates, last, today) == set().union(*one_by_one)


@given(DATES, TODAY)
def test_at_first_all_are_due(dates: set[date], today: date) -> None:
    assert dates_due(dates, None, today) == dates
    assert dates_due(dates, today - NIGHTS * 100 * ONE, today) == dates
