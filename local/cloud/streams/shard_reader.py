"""Reads a shard for all of its consumers: what one has read is handed to the others from here."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from local.cloud.streams.delivery import Record, sequence_of

PAGES_MAX = 8  # of a thousand records at most; who is further behind reads for itself
Found = tuple[list[Record], str | None]


@dataclass(frozen=True, slots=True)
class ShardPage:
    """What was found behind a place. polled_at: when that was asked (epoch seconds)."""

    records: list[Record]
    polled_at: float


@dataclass(slots=True)
class ShardReader:
    """One shard. A place in it is the number of the last record before it; "" is the shard's beginning.

    begin: place -> iterator. ask: iterator -> records and the next iterator, if there is one.
    """

    begin: Callable[[str], str]
    ask: Callable[[str], Found]
    now: Callable[[], float] = time.time
    _pages: dict[str, ShardPage] = field(default_factory=dict)
    _iterators: dict[str, str] = field(default_factory=dict)
    _nothing: tuple[str, float] = ("", 0.0)  # the place where nothing was found last, and when
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, place: str, seen_at: float) -> ShardPage:
        """Return what is behind a place. seen_at: when the caller's last page was polled.

        If another consumer has looked since, and found nothing, the shard is not asked.
        """
        with self._lock:
            if page := self._pages.get(place):
                # Who is behind gets what was read before the caller's last page: time does not go back.
                return replace(page, polled_at=max(page.polled_at, seen_at))
            empty_at, polled_at = self._nothing[1], self.now()
            if self._nothing[0] == place and empty_at > seen_at:
                return ShardPage([], empty_at)
            iterator = self._iterators.pop(place, None) or self.begin(place)
            records, following = self.ask(iterator)
            if following:
                self._iterators[sequence_of(records[-1]) if records else place] = following
            page = ShardPage(records, polled_at)
            if records:
                self._pages[place] = page
            else:
                self._nothing = place, polled_at
            for kept in (self._pages, self._iterators):
                while len(kept) > PAGES_MAX:
                    kept.pop(next(iter(kept)))
            return page
