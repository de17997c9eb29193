"""What users do while Redis is busy: they read boards and ranks, and the processor writes profiles."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from statistics import quantiles
from typing import Any

from adapters.engagement.engagement_cache import EngagementCache
from bench.engagement.millions.crowd import profile
from rules.engagement.boards import GLOBAL

PAUSE = 0.01


@dataclass
class Seen:
    """Milliseconds of the operations of one kind, and how many of them Redis could not answer."""

    ms: list[float] = field(default_factory=list)
    unanswered: int = 0

    def line(self) -> str:
        """Return `n, p50, p99, max`."""
        if len(self.ms) < 2:
            return f"{len(self.ms)} asked"
        cuts = quantiles(self.ms, n=100)
        told = f"{len(self.ms):,} asked, p50 {cuts[49]:.1f}, p99 {cuts[98]:.1f}, max {max(self.ms):.1f} ms"
        return f"{told}, {self.unanswered:,} left to the snapshot" if self.unanswered else told


class BoardTraffic:
    """One connection that takes its turns at reading and writing until it is stopped."""

    def __init__(self, url: str, size: int, now: datetime, writes: bool = True) -> None:
        self.writes = writes
        self.cache, self.size, self.now = EngagementCache(url), size, now
        self.seen: dict[str, Seen] = {}
        self.versions = 4
        self._stop = threading.Event()

    @contextmanager
    def going_on(self) -> Iterator[dict[str, Seen]]:
        """Go on during a `with` block."""
        self._stop.clear()
        self.seen = {}
        thread = threading.Thread(target=self._go, daemon=True)
        thread.start()
        try:
            yield self.seen
        finally:
            self._stop.set()
            thread.join()

    def _go(self) -> None:
        ranks, chance = self.cache.ranks, random.Random(7)
        turns: tuple[tuple[str, Callable[[], Any]], ...] = (
            ("top 100 of points", lambda: ranks.top("points", GLOBAL, 100, self.now)),
            (
                "a rank by points",
                lambda: ranks.count_above("points", GLOBAL, chance.randrange(10**6), self.now),
            ),
            ("top 100 of streaks", lambda: ranks.top("streaks", GLOBAL, 100, self.now)),
            (
                "a rank by streak",
                lambda: ranks.count_above("streaks", GLOBAL, chance.randrange(700), self.now),
            ),
            ("a batch of 20 profiles", lambda: self._write(chance)),
        )
        while not self._stop.is_set():
            for name, turn in turns if self.writes else turns[:-1]:
                begun = time.perf_counter()
                answer = turn()
                kept = self.seen.setdefault(name, Seen())
                kept.ms.append((time.perf_counter() - begun) * 1000)
                kept.unanswered += answer is None
                time.sleep(PAUSE)

    def _rank(self, board: str, score: int) -> int | None:
        return self.cache.ranks.count_above(board, GLOBAL, score, self.now)

    def _write(self, chance: random.Random) -> bool:
        self.versions += 1
        numbers = {chance.randrange(self.size) for _ in range(20)}
        self.cache.write_through([profile(each, self.versions) for each in numbers])
        return True
