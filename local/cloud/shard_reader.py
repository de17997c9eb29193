"""Reads a shard for all of its consumers, so that the shard is asked once for what several of them want."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from local.cloud.shards import RecordsAndNext
from local.cloud.streams import Record, sequence_of

PAGES_MAX = 8  # that a ShardReader keeps, each of READ_MAX records at most


@dataclass(frozen=True, slots=True)
class ShardPage:
    """The records behind a position of a shard; [] if there were none."""

    records: list[Record]
    polled_at: float  # when the shard was asked (epoch seconds)


@dataclass(slots=True)
class ShardReader:
    """Reads a shard for all of its consumers: a page that one has read is handed to the others.

    A position is the sequence number of the last record before it; "" is the shard's beginning. A consumer
    that is more than PAGES_MAX pages behind reads for itself.
    """

    begin: Callable[[str], str]  # returns an iterator at a position
    ask: Callable[[str], RecordsAndNext]  # reads behind an iterator
    now: Callable[[], float] = time.time
    _pages: dict[str, ShardPage] = field(default_factory=dict)  # by their positions
    _iterators: dict[str, str] = field(default_factory=dict)  # by their positions
    # The position behind which there was nothing last, and when the shard was asked for it.
    _end: tuple[str, float] = ("", 0.0)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, position: str, seen_at: float) -> ShardPage:
        """Return the page behind a position. seen_at: when the caller's last page was polled.

        If another consumer has asked the shard since then, and found nothing, the shard is not asked again.
        """
        with self._lock:
            if page := self._pages.get(position):
                # A consumer that is behind gets an older page. For it, time does not go back.
                return replace(page, polled_at=max(page.polled_at, seen_at))
            end, end_polled_at = self._end
            if end == position and end_polled_at > seen_at:
                return ShardPage([], end_polled_at)
            return self._poll(position)

    def _poll(self, position: str) -> ShardPage:
        """Ask the shard, and keep what it answers. An iterator serves once: one that fails is not kept."""
        polled_at = self.now()
        iterator = self._iterators.pop(position, None) or self.begin(position)
        records, next_iterator = self.ask(iterator)
        page = ShardPage(records, polled_at)
        if records:
            self._pages[position] = page
        else:
            self._end = position, polled_at
        if next_iterator:
            self._iterators[sequence_of(records[-1]) if records else position] = next_iterator
        _drop_oldest(self._pages)
        _drop_oldest(self._iterators)
        return page


def _drop_oldest(by_position: dict[str, Any]) -> None:
    while len(by_position) > PAGES_MAX:
        del by_position[next(iter(by_position))]
