"""One Redis with millions of profiles: memory, a midnight, a round that is killed, ids that expire.

`python -m bench.engagement.millions.redis_profiles 5000000 [SECONDS]` fills a real Redis: five million take
four gigabytes. Boards are read and profiles written all the while. SECONDS: of a renewal, which is left
unfinished after these.
"""

import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from unittest.mock import patch

from adapters.engagement import engagement_cache
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.rank_sets import EVERY_SET, LAPSING, READY, READY_SECONDS, ROUND, place_commands
from adapters.platform.redis import Redis
from bench.engagement import redis_server
from bench.engagement.millions.crowd import MIDNIGHT, NOW, be_patient, lapsing, profile, user_of
from bench.engagement.millions.server_log import ServerLog
from bench.engagement.millions.traffic import BoardTraffic, Seen
from bench.figure import HEADER, Figure
from processors.ranks import REBUILD_SECONDS, REFRESH_SECONDS
from rules.engagement.boards import GLOBAL

SIZE = 20_000
BLOCKED_MS_MAX = 20.0
IDS_OF = 50  # each fiftieth user has ids of events
LIVES = timedelta(seconds=90)  # of these ids, in place of a day
FILLERS = 4


def run(size: int = SIZE, renewal_seconds: float = math.inf) -> Iterator[Figure]:
    """Yield the figures of one size. renewal_seconds: after these a renewal is left unfinished."""
    be_patient()
    with redis_server.running() as url:
        yield from Millions(url, size, renewal_seconds).figures()


class Millions:
    """A Redis and what is done to it."""

    def __init__(self, url: str, size: int, renewal_seconds: float) -> None:
        self.url, self.size, self.renewal_seconds = url, size, renewal_seconds
        self.redis, self.ranks = Redis(url), EngagementCache(url).ranks
        self.log = ServerLog(self.redis)

    def figures(self) -> Iterator[Figure]:
        """Yield everything, in order."""
        yield from self._fill()
        yield from self._midnight()
        yield from self._renewal()
        yield from self._ids()

    def _fill(self) -> Iterator[Figure]:
        """Put everybody into the sets in bulk: a round would take longer, and writes the same."""
        self.log.begin(3_000)
        begun = time.monotonic()
        filling = [self._start("fill", number, FILLERS) for number in range(FILLERS)]
        cpu = sum(float(each.communicate()[0]) for each in filling)
        detail = f"{time.monotonic() - begun:.0f} s, {FILLERS} processes with {cpu:.0f} s of CPU"
        self._check(range(min(self.size, 50)))
        self.redis.call("SET", READY, "1", "EX", READY_SECONDS)
        yield Figure(
            "  bytes a profile in the sorted sets",
            self.log.used_bytes() / self.size,
            detail=f"filled in {detail}",
        )

    def _check(self, numbers: range) -> None:
        """Check that some people stand in all sets as the product's own script puts them."""
        other = Redis(self.url.removesuffix("0") + "1")
        other.pipeline(place_commands(map(profile, numbers), NOW))
        for user in map(user_of, numbers):
            asked = [["ZSCORE", name, user] for name in EVERY_SET[1:]]
            assert self.redis.pipeline(asked) == other.pipeline(asked), user
            held, placed = (json.loads(each.call("HGET", EVERY_SET[0], user)) for each in (self.redis, other))
            assert held == placed, user
        other.call("FLUSHDB")

    def _renewal(self) -> Iterator[Figure]:
        self.log.begin(3_000)
        with BoardTraffic(self.url, self.size, NOW).going_on() as seen:
            detail = self._killed_round(at=0.02)
        yield self._blocked("a renewal", detail)
        yield from _seen("  meanwhile", seen)

    def _killed_round(self, at: float) -> str:
        """Kill the process that runs a round when it has a share of it; another one goes on with it."""
        begun, killed = time.monotonic(), self._build()
        while self._reached() < at * self.size:
            time.sleep(0.05)
        killed.kill()
        killed.communicate()
        reached, died = self._reached(), time.monotonic()
        follower = self._build()
        while self._reached() == reached:
            time.sleep(0.05)
        waited = time.monotonic() - died
        told = f"killed at {reached / self.size:.0%}, gone on with from there after {waited:.0f} s; "
        while follower.poll() is None and time.monotonic() - begun < self.renewal_seconds:
            time.sleep(0.1)
        if follower.poll() is None:
            told += f"{self._reached() / self.size:.0%} "
            follower.kill()
            cpu = "?"
        else:
            told += "100% "
            cpu = follower.communicate()[0].strip()
        return f"{told} after {time.monotonic() - begun:.0f} s; CPU of the second process {cpu} s"

    def _reached(self) -> float:
        """Return how many the round has placed; all of them while it sweeps, or when it is over."""
        told = self.redis.call("HGET", ROUND, "reached")
        if told is None:
            return 0
        phase, _, place = told.partition(":")
        return int(place or 0) if phase == "scan" else self.size

    def _midnight(self) -> Iterator[Figure]:
        self.log.begin(0)
        crowd, begun, runs = lapsing(self.size), time.monotonic(), 1
        with BoardTraffic(self.url, self.size, MIDNIGHT).going_on() as seen:
            while not self.ranks.lapse(MIDNIGHT, time.monotonic() + REFRESH_SECONDS):
                runs += 1
            seconds = time.monotonic() - begun
            time.sleep(1)
        assert self.ranks.top("streaks", GLOBAL, 1, MIDNIGHT)
        slices = self.log.scripts_with(LAPSING)
        detail = f"{crowd:,} in {seconds:.0f} s, {runs} runs of {REFRESH_SECONDS} s each; "
        detail += f"{self.log.cpu_ms() / 1000:.0f} s of CPU; {len(slices):,} scripts, "
        detail += f"p50 {slices[len(slices) // 2]:.1f}, max {slices[-1]:.1f} ms"
        claim = f"{self.size:,} users: midnight, p99 of its scripts, ms"
        yield Figure(claim, slices[len(slices) * 99 // 100], "<=", BLOCKED_MS_MAX, detail)
        yield from _seen("  meanwhile", seen)

    def _ids(self) -> Iterator[Figure]:
        """Ids of processed events are noted, and expire."""
        self.log.begin(3_000)
        apart = self.url.removesuffix("0") + "1"  # a database of their own, so that they can be counted
        cache, before = EngagementCache(apart), self.log.used_bytes()
        users = [user_of(number) for number in range(0, self.size, IDS_OF)]
        noted = [
            f"2026-06-02T11:5{minute}:00.000000Z#{number:032x}" for minute in (1, 2) for number in (1, 2)
        ]
        with patch.object(engagement_cache, "PROCESSED_KEPT", LIVES):
            begun = time.monotonic()
            for at in range(0, len(users), 500):
                cache.write_through([], [], dict.fromkeys(users[at : at + 500], noted))
            written = time.monotonic() - begun
        used = (self.log.used_bytes() - before) / len(users)
        with BoardTraffic(self.url, self.size, MIDNIGHT, writes=False).going_on() as seen:
            while Redis(apart).call("DBSIZE"):
                time.sleep(0.2)
        detail = f"{len(users) * len(noted):,} written in {written:.0f} s, the last one gone after "
        detail += (
            f"{time.monotonic() - begun - written:.0f} s more (they live {LIVES.seconds} s here, 24 h else)"
        )
        yield self._blocked("ids expire", detail)
        yield Figure("  bytes an id, four in ten minutes", used / len(noted))
        yield from _seen("  meanwhile", seen)

    def _build(self) -> "subprocess.Popen[str]":
        """Start a process that runs a round to its end."""
        return self._start("round", REBUILD_SECONDS)

    def _start(self, task: str, *numbers: int) -> "subprocess.Popen[str]":
        module = "bench.engagement.millions.crowd"
        command = [sys.executable, "-m", module, task, self.url, *map(str, (self.size, *numbers))]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def _blocked(self, name: str, detail: str) -> Figure:
        p99, scripts = self.log.p99_ms()
        claim = f"{self.size:,} users: {name}, p99 of its scripts, ms"
        return Figure(claim, p99, "<=", BLOCKED_MS_MAX, f"{detail}; {scripts}")


def _seen(prefix: str, seen: Mapping[str, Seen]) -> Iterator[Figure]:
    for name, each in seen.items():
        yield Figure(f"{prefix}: {name}, unanswered", each.unanswered, detail=each.line())


if __name__ == "__main__":
    print(HEADER)
    for figure in run(*map(int, sys.argv[1:])):
        print(figure.line(), flush=True)
