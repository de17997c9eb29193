"""Limits how much a caller sends, or asks for, in a minute or a day, however many processes answer.

Redis counts minutes, where there is one. Without it a process leases a block of the allowance from a counter
in DynamoDB that all processes share, and counts its block itself: one write unit for 20 events, not 20.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from adapters.engagement.engagement_cache import EngagementCache
from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.limits import SharedCounters
from ingest.web.caller import ApiError

logger = Logger(service="rate-limit")
USERS_COUNTED_MAX = 10_000
# A block goes out while some of the allowance is left. So at most a fifth more than the limit passes.
BLOCK_SHARE = 5
MINUTE, DAY = 60, 86_400
NOTED_EACH = 20  # requests a write: a twentieth of a unit for each
NAMES = {MINUTE: "minute", DAY: "day"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What the limits of one function count with."""

    cache: EngagementCache
    counters: SharedCounters | None  # None where each process counts for itself

    def of(self, kind: str, per_minute: int, block: int = 1) -> "RateLimit":
        """Return the limit of one kind of request.

        kind: such as `commands`, which callers read. block: how much a process leases at once. A large one
        saves writes where one process sees many. Where many see a few each, what they hold is lost to others.
        """
        return RateLimit(self, kind, per_minute, min(block, per_minute // BLOCK_SHARE))

    def of_a_day(self, kind: str, per_day: int) -> "RateLimit":
        """Return the limit of what costs so much that a caller may ask for it some times a day (UTC)."""
        return RateLimit(self, kind, per_day, 1, DAY)


class RateLimit:
    """A fixed window of one minute, or of one day, for each caller. window: its seconds."""

    def __init__(self, limits: Limits, kind: str, most: int, block: int, window: int = MINUTE) -> None:
        self._limits, self._kind, self._max, self._block = limits, kind, most, block
        self._window, self._now = window, 0  # _now: the number of the window that is counted
        self._left, self._taken = dict[str, int](), dict[str, int]()

    def check(self, caller: str, count: int, now: datetime) -> None:
        """Count requests or events; raises 429 with Retry-After (seconds) if the caller is over the limit."""
        counted = None
        if self._window == MINUTE:
            counted = self._limits.cache.count_events(f"{self._kind}:{caller}", count, now)
        passes = self._lease(caller, count, now) if counted is None else counted <= self._max
        if not passes:
            raise _refusal(self._max, self._kind, self._window, now)

    def _lease(self, caller: str, count: int, now: datetime) -> bool:
        """Take from this process's block, or lease another; returns whether there was enough.

        left: what the process still has; below 0 once the window's allowance is used up, so that a flood of
        refused requests costs no more writes.
        """
        number = int(now.timestamp()) // self._window
        if number != self._now or len(self._left) > USERS_COUNTED_MAX:
            self._now, self._left, self._taken = number, {}, {}
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
            name = f"{self._kind}#{caller}#{self._now}"
            return self._limits.counters.add(name, block, now, 2 * self._window) - block
        except Unavailable:
            logger.exception("the limit is counted by this process alone")
            return before


class RequestLimit:
    """Counts what is cheap, in a fixed window of one minute: a caller's reads, an address's requests.

    A process notes each twentieth request of somebody in the counter that all processes share. So a request
    costs at most a twentieth of a write unit, who asks for little costs nothing, and who is over the limit
    costs nothing more. Of somebody whom N processes answer, at most 19 N more than the limit pass, because
    each may hold as many that it has not noted.
    """

    def __init__(self, counters: Callable[[], SharedCounters], kind: str, most: int) -> None:
        """kind: what is counted, which callers read, such as `reads`. most: how many may pass in a minute."""
        self._counters, self._kind, self._max = counters, kind, most
        self._minute, self._asked, self._over = 0, dict[str, int](), set[str]()

    def check(self, who: str, now: datetime) -> None:
        """Count a request; raises 429 with Retry-After (seconds) for whoever is over the limit."""
        minute = int(now.timestamp()) // MINUTE
        if minute != self._minute:
            self._minute, self._asked, self._over = minute, {}, set()
        if who not in self._over:
            asked = self._asked.pop(who, 0) + 1
            self._asked[who] = asked  # at the end: whoever has not asked for longest is forgotten first
            if len(self._asked) > USERS_COUNTED_MAX:
                del self._asked[next(iter(self._asked))]
            if asked % NOTED_EACH == 0 and self._note_requests(who, now) > self._max:
                self._over.add(who)
        if who in self._over:
            raise _refusal(self._max, self._kind, MINUTE, now)

    def _note_requests(self, who: str, now: datetime) -> int:
        """Note requests; returns how many are noted, by all processes, or those of this one alone."""
        try:
            return self._counters().add(f"{self._kind}#{who}#{self._minute}", NOTED_EACH, now, 2 * MINUTE)
        except Unavailable:
            logger.exception("the limit is counted by this process alone")
            return self._asked[who]


def _refusal(most: int, kind: str, window: int, now: datetime) -> ApiError:
    wait = window - int(now.timestamp()) % window
    return ApiError(
        429,
        "rate_limited",
        f"over {most} {kind} a {NAMES[window]}",
        {"retry_after_seconds": wait},
        {"Retry-After": str(wait)},
    )
