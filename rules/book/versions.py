"""Versions of the book: which one judges an event.

A version is in force from its effective instant until the next later one of another version; of two with the
same instant the one with the higher number. It never changes. Publishing adds one, and never in the past.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from rules.book.book import Book, Cap, Declarer
from rules.days import EPOCH


@dataclass(frozen=True)
class Version:
    """A published book. number: 1, 2, 3 ... in the order of publishing. author: who published it.

    read: returns the book; it is called once, and only for a version that something is judged by.
    """

    number: int
    effective_at: datetime
    read: Callable[[], Book]
    published_at: datetime = EPOCH
    author: str = ""
    note: str = ""

    @cached_property
    def book(self) -> Book:
        """What the version says."""
        return self.read()


@dataclass(frozen=True, slots=True)
class Terms:
    """What an event is judged by, and under which version. It is fixed when the event is accepted.

    points: before the cap. keeps_streak, declared_by: see rules.book.book.EventType.
    """

    version: int
    points: int
    cap: Cap | None
    keeps_streak: bool
    declared_by: Declarer


class Books:
    """All versions that one process knows, at least one."""

    def __init__(self, versions: Iterable[Version]) -> None:
        self.versions = tuple(sorted(versions, key=lambda each: each.number))
        self._in_order = sorted(self.versions, key=lambda each: (each.effective_at, each.number))
        self._since = [each.effective_at for each in self._in_order]

    @property
    def newest(self) -> Version:
        """The version that was published last."""
        return self.versions[-1]

    def at(self, instant: datetime) -> Version:
        """Return the version in force at an instant. Before the first one that is the first one."""
        return self._in_order[max(0, bisect_right(self._since, instant) - 1)]

    def after(self, instant: datetime) -> Version | None:
        """Return the next version that takes effect after an instant; None if none is planned."""
        place = bisect_right(self._since, instant)
        return self._in_order[place] if place < len(self._in_order) else None

    def numbered(self, number: int) -> Version:
        """Return a version; raises KeyError if it is not known."""
        for each in self.versions:
            if each.number == number:
                return each
        raise KeyError(f"there is no version {number} of the book")

    def judging(self, event_type: str, occurred: datetime, now: datetime) -> Iterator[Version]:
        """Yield the versions that may judge an event, as known at an instant: the first that takes it does.

        That is the version in force when the event occurred. If it lacks the type or refuses the properties,
        a later one that is in force by now may take it: an event that waited until the book had learned its
        type is then as good as one that came in time.
        """
        first = max(0, bisect_right(self._since, occurred) - 1)
        for place, each in enumerate(self._in_order[first:]):
            if place and each.effective_at > now:
                break
            if event_type in each.book.event_types:
                yield each


def terms_of(version: Version, event_type: str, occurred: datetime) -> Terms:
    """Return what a version says of an event. Raises KeyError for a type that it lacks."""
    rule = version.book.event_types[event_type]
    return Terms(
        version.number,
        version.book.points(event_type, occurred),
        version.book.cap(event_type, occurred),
        rule.keeps_streak,
        rule.declared_by,
    )
