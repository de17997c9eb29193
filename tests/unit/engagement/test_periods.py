"""The periods of boards, and which boards count in them."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.book_store import shipped_document
from ingest.book_document import book_of_document
from rules.book.board_rules import BoardPeriod, BoardRule, board_rules
from rules.book.book import Books, Version
from rules.book.daily import DailyRules, DailyTerms
from rules.book.document import BookRefused
from rules.book.succession import check_succession
from rules.days import AT_MIDNIGHT, DAY, EPOCH, local_date
from rules.engagement.goals import beginnings
from rules.engagement.periods import (
    Period,
    begins_at,
    boards_in,
    counted_until,
    counting_periods,
    ends_at,
    final_at,
    first_period_from,
    period_before,
    period_named,
    period_of,
    periods_between,
    unfinished_periods,
)

WEEKLY, MONTHLY = BoardRule("weekly", BoardPeriod.WEEK), BoardRule("monthly", BoardPeriod.MONTH)
SUMMER = BoardRule("summer", None, date(2027, 6, 1), date(2027, 8, 31))
SECTIONS: dict[str, dict[str, Any]] = {
    "weekly": {"per": "week"},
    "summer": {"from": "2027-06-01", "until": "2027-08-31"},
    "classes": {"per": "month", "group": "class"},
}
DATES = st.dates(date(1971, 1, 1), date(2999, 1, 1))
PERIODS = st.builds(period_of, st.sampled_from([WEEKLY, MONTHLY]), DATES)
SEASONS = st.builds(lambda first, days: Period(first, first + days * DAY), DATES, st.integers(0, 366))


def terms(*rules: BoardRule, start: time = time()) -> DailyTerms:
    return ((date.min, DailyRules(day_starts_at=start, boards=rules)),)


def a_book(boards: Any) -> Any:
    return book_of_document(shipped_document() | {"boards": boards})


def published(number: int, at: datetime, boards: Any, effective: datetime | None = None) -> Version:
    return Version(number, effective or at, lambda: a_book(boards), at)


def test_the_book_declares_boards() -> None:
    assert a_book(SECTIONS).daily.boards == board_rules(SECTIONS)
    assert board_rules(SECTIONS) == (BoardRule("classes", BoardPeriod.MONTH, group="class"), SUMMER, WEEKLY)
    assert book_of_document(shipped_document()).daily.boards == ()


@pytest.mark.parametrize(
    ("rule", "day", "name", "first", "last"),
    [
        (WEEKLY, "2026-11-29", "2026-W48", "2026-11-23", "2026-11-29"),
        (WEEKLY, "2027-01-03", "2026-W53", "2026-12-28", "2027-01-03"),  # a year of 53 weeks
        (WEEKLY, "2025-12-31", "2026-W01", "2025-12-29", "2026-01-04"),
        (MONTHLY, "2028-02-29", "2028-02", "2028-02-01", "2028-02-29"),
        (MONTHLY, "2027-02-28", "2027-02", "2027-02-01", "2027-02-28"),
        (SUMMER, "2027-06-01", "2027-06-01--2027-08-31", "2027-06-01", "2027-08-31"),
    ],
)
def test_periods_have_dates_and_names(rule: BoardRule, day: str, name: str, first: str, last: str) -> None:
    period = period_of(rule, date.fromisoformat(day))
    assert period == Period(date.fromisoformat(first), date.fromisoformat(last))
    assert (period.name, period_named(name)) == (name, period)


def test_dates_outside_a_season_are_in_no_period() -> None:
    assert period_of(SUMMER, date(2027, 5, 31)) is period_of(SUMMER, date(2027, 9, 1)) is None
    assert period_before(SUMMER, Period(date(2027, 6, 1), date(2027, 8, 31))) is None
    assert period_before(WEEKLY, period_named("2027-W01")) == period_named("2026-W53")


@pytest.mark.parametrize(
    "name",
    [
        *("2027-W53", "2026-W00", "2026-W54", "2026-13", "2026-00", "2026-11-01", "9999-12", "9999-W52", ""),
        *("summer", "2026-w48", "2027-06-01--2027-05-31", "2027-06-01--2027-06-31", "2027-06-01--2027-06-30"),
        *("٢٠٢٦-11", "2026-W48 ", "0000-W01", "2026-11--2026-12"),
    ],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^(must be a period's name: |is no period that exists: )"):
        period_named(name)


@given(st.one_of(PERIODS, SEASONS))
def test_a_name_tells_the_dates(period: Period) -> None:
    assert period_named(period.name) == period


@given(st.sampled_from([WEEKLY, MONTHLY]), DATES)
def test_each_date_is_in_one_period(rule: BoardRule, day: date) -> None:
    period = period_of(rule, day)
    assert period and period.has(day)
    assert period_of(rule, period.first) == period_of(rule, period.last) == period
    before = period_before(rule, period)
    assert before and before.last + DAY == period.first


def test_a_week_is_final_on_thursday_noon() -> None:
    week = period_named("2026-W48")
    assert begins_at(week) == datetime(2026, 11, 22, 10, tzinfo=UTC)
    assert ends_at(week, ()) == datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert final_at(week, ()) == datetime(2026, 12, 3, 12, tzinfo=UTC)
    assert final_at(week, terms(WEEKLY, start=time(3))) == datetime(2026, 12, 3, 15, tzinfo=UTC)
    assert counted_until(week, ()) == datetime(2026, 12, 18, 12, tzinfo=UTC)


@given(
    st.one_of(PERIODS, SEASONS),
    st.sampled_from(["-12:00", "+14:00", "Pacific/Kiritimati", "America/Anchorage", "Asia/Kolkata"]),
    st.integers(0, 360),
)
def test_a_period_lasts_from_its_first_date_anywhere_to_its_last(
    period: Period, zone: str, minutes: int
) -> None:
    start = time(minutes // 60, minutes % 60)
    known = terms(WEEKLY, start=start)
    starts = ((date.min, start),) if minutes else AT_MIDNIGHT
    just_before = timedelta(microseconds=1)
    assert local_date(ends_at(period, known), zone, starts) > period.last
    assert local_date(ends_at(period, known) - just_before, "-12:00", starts) == period.last
    assert local_date(begins_at(period) - just_before, zone, starts) < period.first


BEGINS = datetime(2026, 11, 22, tzinfo=UTC)  # the date before the week in UTC


@pytest.mark.parametrize(("delay", "first"), [(timedelta(), "2026-W48"), (timedelta(seconds=1), "2026-W49")])
def test_a_board_that_is_declared_in_mid_period_begins_with_the_next(delay: timedelta, first: str) -> None:
    books = Books([published(1, EPOCH, {}), published(2, BEGINS + delay, {"weekly": {"per": "week"}})])
    names = [each.name for each in periods_between(date(2026, 10, 1), date(2026, 12, 6), books.daily_terms)]
    assert names == [name for name in ("2026-W48", "2026-W49") if name >= first]
    assert f"board weekly: first period {first}" in "\n".join(beginnings(books, books.newest))


def test_a_version_changes_no_period_that_has_begun() -> None:
    week = period_named("2026-W48")
    first = [published(1, EPOCH, {}), published(2, BEGINS - DAY, {"weekly": {"per": "week"}})]
    gone = published(3, BEGINS + 3 * DAY, {}, effective=BEGINS - DAY)  # it claims the past
    books = Books([*first, gone])
    assert boards_in(week, books.daily_terms) == boards_in(week, Books(first).daily_terms) == (WEEKLY,)
    assert boards_in(period_named("2026-W49"), books.daily_terms) == ()
    assert "board weekly: ends before its period 2026-W49" in "\n".join(beginnings(books, gone))


def test_a_season_whose_day_has_come_never_counts() -> None:
    books = Books([published(1, EPOCH, {}), published(2, datetime(2027, 6, 1, tzinfo=UTC), SECTIONS)])
    assert boards_in(period_of(SUMMER, date(2027, 7, 1)) or period_named("2027-W01"), books.daily_terms) == ()
    assert "board summer: begins too early" in "\n".join(beginnings(books, books.newest))
    assert first_period_from(SUMMER, date(2027, 5, 1)) == period_of(SUMMER, date(2027, 7, 1))


def test_boards_share_a_period_of_the_same_dates() -> None:
    june = BoardRule("june", None, date(2027, 6, 1), date(2027, 6, 30))
    known = terms(june, MONTHLY, SUMMER, WEEKLY)
    day = date(2027, 6, 9)
    assert [each.name for each in counting_periods(day, known)] == [
        "2027-06", "2027-06-01--2027-08-31", "2027-W23",
    ]  # fmt: skip
    assert {each.name for each in boards_in(period_named("2027-06"), known)} == {"june", "monthly"}
    assert counting_periods(day, ()) == ()


def test_a_period_is_open_then_provisional_then_final() -> None:
    known, week = terms(WEEKLY), period_named("2026-W48")
    moments = [begins_at(week), ends_at(week, known), final_at(week, known)]
    open_at = [week in unfinished_periods(at, known) for at in (moments[0] - timedelta(seconds=1), *moments)]
    assert open_at == [False, True, True, False]


@given(st.datetimes(datetime(1971, 1, 1), datetime(2999, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 (no zone here)
def test_at_most_two_weeks_and_months_are_unfinished(now: datetime) -> None:
    known = terms(WEEKLY, MONTHLY)
    unfinished = unfinished_periods(now, known)
    assert set(counting_periods(now.date(), known)) <= set(unfinished)
    assert len([each for each in unfinished if "W" in each.name]) <= 3
    assert len(unfinished) <= 5


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ({}, "boards.b must have per, or from and until, and not both"),
        ({"from": "2027-06-01"}, "boards.b must have per, or from and until, and not both"),
        (
            {"per": "week", "from": "2027-06-01", "until": "2027-06-02"},
            "boards.b must have per, or from and until",
        ),
        ({"from": "2027-06-02", "until": "2027-06-01"}, "boards.b.until is before from"),
        ({"from": "2027-06-31", "until": "2027-07-01"}, "boards.b.from is no date that exists"),
        ({"from": "2027-01-01", "until": "2028-01-02"}, "boards.b.until makes more than 366 dates"),
        ({"per": "day"}, "boards.b.per must be one of"),
        ({"per": "week", "group": "Class 4"}, "boards.b.group must match pattern"),
        ({"per": "week", "size": 3}, "boards.b.size is unknown"),
    ],
)
def test_a_board_is_refused_by_field_and_reason(section: Any, fault: str) -> None:
    with pytest.raises(BookRefused) as refused:
        a_book({"b": section})
    assert str(refused.value).startswith(fault)


def test_a_book_has_at_most_five_boards() -> None:
    with pytest.raises(BookRefused, match=r"^boards must"):
        a_book({f"b{number}": {"per": "week"} for number in range(6)})


def test_a_board_never_changes_its_kind() -> None:
    books = Books([published(1, EPOCH, SECTIONS)])
    now = datetime(2026, 11, 1, tzinfo=UTC)
    for changed, fault in [
        ({"weekly": {"per": "month"}}, "boards.weekly.per was week before: take a new name"),
        ({"classes": {"per": "month", "group": "school"}}, "boards.classes.group was class before"),
        ({"summer": {"per": "week"}}, "boards.summer.per was left out before"),
    ]:
        with pytest.raises(BookRefused, match=f"^{fault}"):
            check_succession(a_book(changed), books, now, now)
    check_succession(a_book({"summer": {"from": "2028-06-01", "until": "2028-08-31"}}), books, now, now)
