"""Versions that take effect in the past: which ones judge anew, and what they may change."""

from datetime import UTC, datetime

import pytest

from rules.book.book import Book, Books, EventType, Version
from rules.book.document import BookRefused
from rules.book.succession import check_past


def march(day: int) -> datetime:
    return datetime(2026, 3, day, tzinfo=UTC)


def version(number: int, effective: int, published: int, **types: EventType) -> Version:
    return Version(number, march(effective), lambda: Book(types or {"READ": EventType(1)}), march(published))


IN_TIME = version(1, 1, 1), version(2, 9, 5)


@pytest.mark.parametrize(
    ("judged_by", "day", "judges"),
    [(1, 4, 1), (1, 5, 3), (1, 8, 3), (1, 9, 1), (2, 9, 2), (4, 6, 4), (None, 6, None), (7, 6, None)],
)
def test_a_version_of_the_past_judges_what_occurred_while_it_is_in_force(
    judged_by: int | None, day: int, judges: int | None
) -> None:
    """Version 3 was published on the 12th, for the 5th to the 9th; 4 is newer, and was in time."""
    known = Books([*IN_TIME, version(3, 5, 12), version(4, 20, 13)])
    found = known.rejudging(judged_by, "READ", march(day))
    assert (found and found.number) == judges


def test_it_judges_no_type_that_it_lacks() -> None:
    known = Books([*IN_TIME, version(3, 5, 12, WALK=EventType(1))])
    found = known.rejudging(1, "READ", march(6))
    assert found and found.number == 1


@pytest.mark.parametrize(
    ("book", "faults"),
    [
        ({"READ": EventType(9), "WALK": EventType(9)}, 0),
        ({"READ": EventType(9)}, 1),
        ({"READ": EventType(9, keeps_streak=False), "WALK": EventType(9)}, 1),
        ({}, 2),
    ],
)
def test_only_points_may_change(book: dict[str, EventType], faults: int) -> None:
    """WALK came with version 2, which was in force for a part of the time."""
    both = {"READ": EventType(1), "WALK": EventType(1)}
    known = Books([version(1, 1, 1), version(2, 9, 9, **both), version(3, 30, 9, LATER=EventType(1))])
    try:
        check_past(Book(book), known, march(5), march(20))
    except BookRefused as refused:
        assert len(refused.faults) == faults
    else:
        assert faults == 0
