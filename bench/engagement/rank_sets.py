"""What ranks in Redis cost as the crowd grows: how long one command blocks it, memory, a round.

Sizes by hand: `python -m bench.engagement.rank_sets 200000 5000000`. A real Redis holds everybody, at 800
bytes a user: a million need some minutes.
"""

import math
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from adapters.engagement.engagement_cache import EngagementCache
from adapters.platform.redis import Redis
from bench.engagement import redis_server
from bench.figure import HEADER, Figure
from rules.engagement.account_state import Profile
from rules.engagement.boards import GLOBAL
from rules.engagement.streak import Streak

SIZES = (2_000, 20_000, 200_000)
PAGE = 2_000
BLOCKED_MS_MAX = 20.0
GROWTH_MAX = 0.1
SLOW_US = 1_000  # commands from here on are looked at
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 6, 3, tzinfo=UTC)  # of all who were last active on June 1st


def run(sizes: tuple[int, ...] = SIZES) -> Iterator[Figure]:
    """Yield the figures of each size, then the growth of what a user costs."""
    costs: list[tuple[int, float]] = []
    for size in sizes:
        with redis_server.running() as url:
            crowd = RankCrowd(url, size)
            yield from crowd.figures()
            costs.append((size, crowd.seconds / size))
    if len(costs) > 1:
        (few, least), (many, most) = costs[0], costs[-1]
        growth = math.log(most / least) / math.log(many / few)
        yield Figure("growth of a round's seconds a user, exponent", growth, "<=", GROWTH_MAX)


class RankCrowd:
    """So many users, whose streaks all end at one midnight. seconds: of the first round."""

    def __init__(self, url: str, size: int) -> None:
        self.redis, self.cache, self.size = Redis(url), EngagementCache(url), size
        self.redis.call("CONFIG", "SET", "slowlog-max-len", 100_000)
        self.redis.call("CONFIG", "SET", "slowlog-log-slower-than", SLOW_US)
        self.seconds = 0.0

    def pages(self, after: str) -> Iterator[tuple[list[Profile], str]]:
        """Yield everybody after a user id, in pages."""
        for begin in range(int(after or 0), self.size, PAGE):
            end = min(begin + PAGE, self.size)
            yield [_profile(number) for number in range(begin, end)], f"{end:036}" if end < self.size else ""

    def figures(self) -> Iterator[Figure]:
        """Yield a first round, a renewal, and the midnight."""
        for name in ("a first round", "a renewal"):
            begun = time.monotonic()
            assert self.cache.ranks.rebuild(self.pages, NOW)
            self.seconds = time.monotonic() - begun
            yield self._blocked(name, f"{self.seconds:.1f} s, {self._bytes():.0f} bytes a user")
        begun, asked = time.monotonic(), 0
        while self.cache.ranks.top("streaks", GLOBAL, 100, MIDNIGHT) is None:
            asked += 1
        assert self.cache.ranks.top("streaks", GLOBAL, 100, MIDNIGHT) == []
        yield self._blocked("midnight", f"over after {time.monotonic() - begun:.1f} s, {asked:,} questions")

    def _bytes(self) -> float:
        memory = self.redis.call("INFO", "memory")
        return int(memory.partition("used_memory:")[2].partition("\r")[0]) / self.size

    def _blocked(self, name: str, detail: str) -> Figure:
        slow = sorted(entry[2] / 1000 for entry in self.redis.call("SLOWLOG", "GET", 100_000))
        self.redis.call("SLOWLOG", "RESET")
        middle = slow[len(slow) // 2] if slow else SLOW_US / 1000
        claim = f"{self.size:,} users: {name}, ms that a command blocks"
        return Figure(
            claim, middle, "<=", BLOCKED_MS_MAX, f"{detail}; slowest {max(slow, default=0.0):.1f} ms"
        )


def _profile(number: int) -> Profile:
    length = 1 + number % 700
    return Profile(
        f"{number + 1:036}",
        version=3,
        streak=Streak(NOW.date(), length, length, length),
        total_points=5 * (1 + number * 7919 % 100_003),
        timezone="Europe/Berlin" if number % 2 else "Etc/UTC",
        updated_at=(NOW - timedelta(hours=1)).isoformat(),
    )


if __name__ == "__main__":
    print(HEADER)
    for figure in run(tuple(map(int, sys.argv[1:])) or SIZES):
        print(figure.line(), flush=True)
