"""Limits how much a caller sends in a minute, however many processes answer.

Redis counts, where there is one. Without it a process leases a block of the minute's allowance from a counter
in DynamoDB that all processes share, and counts its block itself: one write unit for 20 events, not 20.
"""

from dataclasses import dataclass
from datetime import datetime

from adapters.engagement.engagement_cache import EngagementCache
from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.shared_counters import SharedCounters
from ingest.web.caller import ApiError

logger = Logger(service="rate-limit")
USERS_COUNTED_MAX = 10_000
# A block goes out while some of the allowance is left. So at most a fifth more than the limit passes.
BLOCK_SHARE = 5


@dataclass(frozen=True, slots=True)
class Limits:
    """What the limits of one function count with. counters: None where each process counts for itself."""

    cache: EngagementCache
    counters: SharedCounters | None

    def of(self, kind: str, per_minute: int, block: int = 1) -> "RateLimit":
        """Return the limit of one kind of request.

        kind: such as `commands`, which callers read. block: how much a process leases at once. A large one
        saves writes where one process sees many. Where many see a few each, what they hold is lost to others.
        """
        return RateLimit(self, kind, per_minute, min(block, per_minute // BLOCK_SHARE))


class RateLimit:
    """A fixed window of one minute for each caller."""

    def __init__(self, limits: Limits, kind: str, per_minute: int, block: int) -> None:
        self._limits, self._kind, self._max, self._block = limits, kind, per_minute, block
        self._minute, self._left, self._taken = 0, dict[str, int](), dict[str, int]()

    def check(self, caller: str, count: int, now: datetime) -> None:
        """Count requests or events; raises 429 with Retry-After (seconds) if the caller is over the limit."""
        counted = self._limits.cache.count_events(f"{self._kind}:{caller}", count, now)
        passes = self._lease(caller, count, now) if counted is None else counted <= self._max
        if not passes:
            wait = 60 - int(now.timestamp()) % 60
            raise ApiError(
                429,
                "rate_limited",
                f"over {self._max} {self._kind} a minute",
                {"retry_after_seconds": wait},
                {"Retry-After": str(wait)},
            )

    def _lease(self, caller: str, count: int, now: datetime) -> bool:
        """Take from this process's block, or lease another; returns whether there was enough.

        left: what the process still has; below 0 once the minute's allowance is used up, so that a flood of
        refused requests costs no more writes.
        """
        minute = int(now.timestamp()) // 60
        if minute != self._minute or len(self._left) > USERS_COUNTED_MAX:
            self._minute, self._left, self._taken = minute, {}, {}
        left = self._left.get(caller, 0)
        if left < 0:
            return False
        if left < count:
            needed = count - left
            block = max(needed, self._block)
            if self._taken_before(caller, block, now) + needed > self._max:
                self._left[caller] = -1
                return False
            left += block
        self._left[caller] = left - count
        return True

    def _taken_before(self, caller: str, block: int, now: datetime) -> int:
        """Take a block; returns what was taken before it, by all processes, or by this one alone."""
        before = self._taken.get(caller, 0)
        self._taken[caller] = before + block
        if self._limits.counters is None:
            return before
        try:
            return self._limits.counters.add(f"{self._kind}#{caller}#{self._minute}", block, now) - block
        except Unavailable:
            logger.exception("the limit is counted by this process alone")
            return before
