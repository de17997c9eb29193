"""The versions of the book as a what-if has them, with a candidate in the place of some."""

from datetime import UTC, datetime

import pytest

from analytics.what_if.timeline import CANDIDATE, PredictedBooks, Timeline
from rules.book.book import Book, Books, EventType, Version


def march(day: int) -> datetime:
    return datetime(2026, 3, day, tzinfo=UTC)


def version(number: int, day: int, *types: str) -> Version:
    return Version(number, march(day), lambda: Book(dict.fromkeys(types, EventType(number))))


FIRST, REPLACED, LAST = version(1, 1, "READ"), version(2, 3, "READ", "RUN"), version(3, 8, "READ")
TIMELINE = Timeline(
    Books([FIRST, REPLACED, LAST]), Book({"READ": EventType(7)}), since=march(2), until=march(9)
)


def test_a_replaced_version_still_judges_what_it_has_judged() -> None:
    books = PredictedBooks(TIMELINE, march(20))
    assert [each.number for each in books.versions] == [CANDIDATE, 1, 3]
    assert books.at(march(5)).number == CANDIDATE
    assert books.at(march(10)).number == LAST.number
    assert books.numbered(REPLACED.number) is REPLACED
    assert books.rejudging(REPLACED.number, "RUN", march(10)) is REPLACED


def test_a_version_that_was_not_published_yet_is_not_known() -> None:
    later = Version(4, march(12), lambda: Book({}), march(11))
    books = PredictedBooks(Timeline(Books([FIRST, later]), Book({})), march(10))
    with pytest.raises(KeyError):
        books.numbered(later.number)
