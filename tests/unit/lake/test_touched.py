"""Which periods a touched date changes, and which dates these periods follow from."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from analytics.warehouse.build import (
    SPANS_MAX,
    join_spans,
    narrowed_sql,
    source_spans,
    spans_condition,
    touched_periods,
    with_load_numbers,
)
from analytics.warehouse.models import models

MODEL = models()["facts.events"]
DAYS = st.dates(date(2019, 12, 20), date(2021, 1, 10))
PERIODS = st.sets(st.sampled_from(["day", "week", "month"]), min_size=1)


def days_of(found: Any) -> Iterator[date]:
    for first, last in found:
        yield from (first + timedelta(days=number) for number in range((last - first).days + 1))


def period_of(day: date, period: str) -> tuple[int, ...]:
    if period == "week":
        return day.isocalendar()[:2]
    return (day.year, day.month) if period == "month" else (day.toordinal(),)


@given(st.sets(DAYS, max_size=4), PERIODS, st.integers(0, 40))
def test_they_follow_from_all_their_dates_and_no_others(
    days: set[date], periods: set[str], window: int
) -> None:
    model = replace(MODEL, periods=tuple(periods), window=window)
    spans = touched_periods(model, days)
    first = list(days_of(spans))
    read = set(days_of(source_spans(model, spans)))
    for period in periods:
        changed = {period_of(day + timedelta(days=k), period) for day in days for k in range(window + 1)}
        assert changed <= {period_of(each, period) for each in first}
        needed = {
            each
            for each in days_of([(date(2019, 10, 1), date(2021, 4, 1))])
            if period_of(each, period) in changed
        }
        assert {each - timedelta(days=k) for each in needed for k in range(window + 1)} <= read
    furthest = 31 + window
    assert all(min(abs((each - day).days) for day in days) <= 2 * furthest for each in read)


@given(st.lists(st.tuples(DAYS, st.integers(0, 40)), max_size=6))
def test_joined_spans_have_the_same_dates_and_gaps_between_them(told: list[tuple[date, int]]) -> None:
    given_spans = [(first, first + timedelta(days=number)) for first, number in told]
    found = join_spans(given_spans)
    assert list(days_of(found)) == sorted(set(days_of(given_spans)))
    assert all(later[0] - earlier[1] > timedelta(days=1) for earlier, later in pairwise(found))


@given(st.sets(st.dates(date(2016, 1, 1), date(2026, 1, 1)), max_size=60), PERIODS, st.integers(0, 3))
def test_many_dates_are_few_spans_and_all_that_their_periods_follow_from(
    days: set[date], periods: set[str], around: int
) -> None:
    """What is made anew besides, because gaps were filled, is made from all its rows too."""
    model = replace(MODEL, periods=tuple(periods), around=around)
    spans = touched_periods(model, days)
    anew, read = set(days_of(spans)), set(days_of(source_spans(model, spans)))
    assert len(spans) <= SPANS_MAX
    assert days <= read
    for period in periods:
        whole = {period_of(each, period) for each in anew if is_first(each, period)}
        assert {period_of(day, period) for day in days} <= whole
        of_them = (
            each
            for each in days_of([(date(2015, 11, 1), date(2026, 3, 1))])
            if period_of(each, period) in whole
        )
        assert {each + timedelta(days=k) for each in of_them for k in (-around, around)} <= read


def is_first(day: date, period: str) -> bool:
    return period == "day" or day == (
        day.replace(day=1) if period == "month" else day - timedelta(days=day.weekday())
    )


def test_the_narrowest_gaps_are_filled() -> None:
    days = [date(2026, 1, 1) + timedelta(days=number**2) for number in range(SPANS_MAX + 2)]
    assert join_spans((day, day) for day in days) == [(days[0], days[2]), *((day, day) for day in days[3:])]


def test_a_timestamp_of_the_last_date_is_within() -> None:
    found = spans_condition("at", [(date(2026, 1, 31), date(2026, 2, 1))])
    assert found == "(at >= DATE '2026-01-31' AND at < DATE '2026-02-02')"


def test_only_the_named_tables_are_narrowed() -> None:
    sql = "SELECT a.x, b.x FROM facts.events AS a JOIN facts.events_of AS b ON a.x = b.x, (SELECT 1 FROM facts.events) AS c"
    model = replace(MODEL, sql=sql, reads_by={"facts.events": "d"})
    rows = "(SELECT * FROM facts.events WHERE ((d >= DATE '2026-01-31' AND d < DATE '2026-02-01')) AND n > 1)"
    assert narrowed_sql(model, [(date(2026, 1, 31), date(2026, 1, 31))], "n > 1") == (
        f"SELECT a.x, b.x FROM {rows} AS a JOIN facts.events_of AS b ON a.x = b.x, (SELECT 1 FROM {rows} AS events) AS c"
    )


def test_each_table_that_a_model_reads_by_is_narrowed() -> None:
    for model in models().values():
        text = narrowed_sql(model, [(date(2026, 1, 31), date(2026, 1, 31))])
        assert text.count("DATE '2026-02-01'") >= len(model.reads_by)


def test_an_entity_that_was_never_loaded_is_load_0() -> None:
    assert with_load_numbers("{events} {ledger}", {"ledger": 7}) == "0 7"
