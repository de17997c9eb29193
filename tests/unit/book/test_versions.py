"""Which version of the book judges an event."""

import threading
from concurrent.futures import ThreadPoolExecutor
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


def test_two_versions_are_read_at_once() -> None:
    """One lock for all versions would let each thread wait for the other."""
    met = threading.Barrier(2, timeout=5)

    def read() -> Book:
        met.wait()
        return book

    book = Book({"READ": EventType(1)})
    versions = [Version(number, START, read) for number in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda each: each.book, versions)) == [book, book]
