"""Which version of the book judges an event."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.book.book import Book, Books, EventType, Version, terms_of

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def version(number: int, hours: float, **types: int) -> Version:
    """A version in force from some hours after START, with the points of its types."""
    book = Book({name: EventType(points) for name, points in types.items()})
    return Version(number, START + hours * HOUR, lambda: book)


def judge(books: Books, hours: float, name: str = "A", now: float = 1000) -> int | None:
    found = next(books.judging(name, START + hours * HOUR, START + now * HOUR), None)
    return found.number if found else None


def test_a_version_is_in_force_from_its_instant_on() -> None:
    books = Books([version(1, 0, A=1), version(2, 5, A=2)])
    assert [judge(books, hours) for hours in (-9, 0, 4.9, 5, 9)] == [1, 1, 1, 2, 2]


def test_a_version_for_later_takes_over_from_one_that_was_published_after_it() -> None:
    books = Books([version(1, 0, A=1), version(2, 100, A=2), version(3, 10, A=3)])
    assert [judge(books, hours) for hours in (9, 10, 99, 100)] == [1, 3, 3, 2]
    assert books.newest.number == 3


def test_of_two_with_one_instant_the_later_published_counts() -> None:
    assert judge(Books([version(1, 0, A=1), version(2, 5, A=2), version(3, 5, A=3)]), 6) == 3


def test_an_event_whose_type_comes_later_is_judged_by_the_first_version_that_has_it() -> None:
    books = Books([version(1, 0, A=1), version(2, 5, A=1, B=7), version(3, 8, B=9)])
    assert judge(books, 1, "B") == 2
    assert judge(books, 9, "A") is None
    assert judge(books, 1, "C") is None


def test_a_version_that_is_not_in_force_yet_judges_nothing() -> None:
    books = Books([version(1, 0, A=1), version(2, 5, A=1, B=7)])
    assert judge(books, 1, "B", now=4) is None
    assert judge(books, 5.05, "B", now=5) == 2  # an event from a clock some minutes ahead


def test_terms_are_those_of_the_version() -> None:
    terms = terms_of(version(2, 0, A=4), "A", START)
    assert (terms.version, terms.points, terms.cap, terms.keeps_streak) == (2, 4, None, True)
    with pytest.raises(KeyError):
        Books([version(1, 0)]).numbered(2)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=8), st.integers(-1, 21))
def test_the_version_in_force_is_the_newest_that_has_begun(hours: list[int], asked: int) -> None:
    versions = [version(number, at, A=number) for number, at in enumerate(hours, 1)]
    begun = [
        (each.effective_at, each.number) for each in versions if each.effective_at <= START + asked * HOUR
    ]
    first = min((each.effective_at, each.number) for each in versions)
    assert judge(Books(versions), asked) == max(begun, default=first)[1]


@pytest.mark.parametrize(
    ("judged_by", "day", "judges"),
    [(1, 4, 1), (1, 5, 3), (1, 8, 3), (1, 9, 1), (2, 9, 2), (4, 6, 4), (None, 6, None), (7, 6, None)],
)
def test_a_version_of_the_past_judges_what_occurred_while_it_is_in_force(
    judged_by: int | None, day: int, judges: int | None
) -> None:
    """Version 3 was published on the 12th, for the 5th to the 9th; 4 is newer, and was in time."""

    def known(**types: int) -> Books:
        in_time = [
            replace(version(number, 24 * at, READ=1), published_at=START) for number, at in ((1, 1), (2, 9))
        ]
        past = replace(version(3, 24 * 5, **types), published_at=START + 24 * 12 * HOUR)
        return Books([*in_time, past, version(4, 24 * 20, READ=1)])

    found = known(READ=1).rejudging(judged_by, "READ", START + 24 * day * HOUR)
    assert (found and found.number) == judges
    lacking = known(WALK=1).rejudging(1, "READ", START + 24 * 6 * HOUR)
    assert lacking and lacking.number == 1
