"""Versions of the book: which one judges an event.

A version is in force from its effective instant until the next later one of another version; of two with the
same instant the one with the higher number. It never changes. Publishing adds one, and never in the past.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from rules.book.book import USUAL_OFFLINE, Book, Declarer, Offline
from rules.book.caps import Cap
from rules.days import EPOCH


@dataclass(frozen=True)
class Version:
    """A published book. number: 1, 2, 3 ... in the order of publishing. author: who published it.

    read: returns the book; it is called once, or twice by two threads at once, and only for a version that
    something is judged by.
    """

    number: int
    effective_at: datetime
    read: Callable[[], Book]
    published_at: datetime = EPOCH
    author: str = ""
    note: str = ""

    @property
    def book(self) -> Book:
        """What the version says."""
        # Until Python 3.12 functools.cached_property has one lock for all versions, held while one is read.
        known: Book | None = self.__dict__.get("_book")
        if known is None:
            known = self.__dict__["_book"] = self.read()
        return known

    @property
    def is_retroactive(self) -> bool:
        """Whether it was in force before it was published: events that were judged are judged anew by it."""
        return self.effective_at < self.published_at


@dataclass(frozen=True, slots=True)
class Terms:
    """What an event is judged by, and under which version. It is fixed when the event is accepted.

    points: before the cap. expiry: by which rule they expire (rules.book.expiry). keeps_streak, declared_by:
    see rules.book.book.EventType. measured: see Book.measured. offline: what time receipts prove.
    """

    version: int
    points: int
    cap: Cap | None
    keeps_streak: bool
    declared_by: Declarer
    expiry: str | None = None
    measured: tuple[str, ...] | None = None
    offline: Offline = USUAL_OFFLINE


class Books:
    """All versions that one process knows, at least one."""

    def __init__(self, versions: Iterable[Version]) -> None:
        self.versions = tuple(sorted(versions, key=lambda each: each.number))
        self._in_order = sorted(self.versions, key=lambda each: (each.effective_at, each.number))
        self._since = [each.effective_at for each in self._in_order]
        self._numbered = {each.number: each for each in self.versions}

    @property
    def newest(self) -> Version:
        """The version that was published last."""
        return self.versions[-1]

    def at(self, instant: datetime) -> Version:
        """Return the version in force at an instant. Before the first one that is the first one."""
        return self._in_order[max(0, bisect_right(self._since, instant) - 1)]

    def at_as_known(self, instant: datetime, known: datetime) -> Version:
        """Return the version in force at an instant, by those alone that were published until `known`.

        No later version changes the answer. Before the first one it is the first one.
        """
        found = (
            each for each in self.versions if each.published_at <= known and each.effective_at <= instant
        )
        return max(found, key=lambda each: (each.effective_at, each.number), default=self.versions[0])

    def after(self, instant: datetime) -> Version | None:
        """Return the next version that takes effect after an instant; None if none is planned."""
        place = bisect_right(self._since, instant)
        return self._in_order[place] if place < len(self._in_order) else None

    def beginning(self, first: datetime, end: datetime) -> Iterator[Version]:
        """Yield the versions that come into force after an instant and before another one, in that order.

        Of those with one instant only the last is ever in force.
        """
        while (following := self.after(first)) is not None and following.effective_at < end:
            first = following.effective_at
            yield self.at(first)

    def numbered(self, number: int) -> Version:
        """Return a version; raises KeyError if it is not known."""
        if number not in self._numbered:
            raise KeyError(f"there is no version {number} of the book")
        return self._numbered[number]

    def in_force(self, version: Version) -> tuple[datetime, datetime | None]:
        """Return from when to when a version is in force; None: for good. Both are the same: it never is."""
        following = self._in_order[self._in_order.index(version) + 1 :]
        return version.effective_at, following[0].effective_at if following else None

    def between(self, first: datetime, last: datetime) -> list[Version]:
        """Return the versions that are in force at some time from one instant to another, both included."""
        begin = max(0, bisect_right(self._since, first) - 1)
        return self._in_order[begin : bisect_right(self._since, last)]

    def rejudging(self, judged_by: int | None, event_type: str, occurred: datetime) -> Version | None:
        """Return the version by which an event that was judged counts now; None if none here can tell.

        That is the one that judged it, until a later one takes effect in the past and is in force when the
        event occurred.
        """
        if judged_by is None:
            return None
        now = self.at(occurred)
        if now.number > judged_by and now.is_retroactive and event_type in now.book.event_types:
            return now
        then = self._numbered.get(judged_by)
        return then if then and event_type in then.book.event_types else None

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
        version.book.expiry,
        version.book.measured(event_type),
        version.book.offline,
    )
