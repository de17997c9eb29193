"""Limits how much a caller sends, or asks for, in a minute or a day, however many processes answer.

Redis counts what is limited a minute, in deployments that have it. All else is counted in the table Limits.
"""

from dataclasses import dataclass
from datetime import datetime

from adapters.engagement.engagement_cache import EngagementCache
from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.limits import SharedCounters
from ingest.web.caller import ApiError

logger = Logger(service="rate-limit")
CALLERS_MAX = 10_000  # a process remembers the counts of so many callers
# Cheap requests are added to the shared counter 20 at a time, so each costs a twentieth of a write unit.
CHEAP_STEP = 20
MINUTE, DAY = 60, 86_400
NAMES = {MINUTE: "minute", DAY: "day"}


@dataclass(slots=True)
class _Count:
    """What a process knows of one caller in the window at hand."""

    shared: int = 0  # the shared counter, when this process last added to it
    pending: int = 0  # what this process has counted since then


class RateLimit:
    """A fixed window of a minute or a day for each caller, on a counter that all processes share.

    A process adds to the shared counter in steps. So a caller whom N processes answer may pass the limit by
    N * (step - 1) at most, and nobody is refused below the limit. A caller who is over it costs no more
    writes until the window ends. While the table is away, a process counts alone.
    """

    def __init__(  # noqa: PLR0913 (the settings of one limit)
        self,
        counters: SharedCounters,
        kind: str,
        most: int,
        *,
        step: int = 1,
        window: int = MINUTE,
        redis: EngagementCache | None = None,
    ) -> None:
        """Declare that a caller may do a thing `most` times in a window.

        kind: what is counted, in the words of the refusal, such as `reads`. window: MINUTE or DAY. step: how
        many a process counts before it adds them to the shared counter; 1 is exact. A small limit has smaller
        steps, because each process may pass it by step - 1. redis: counts one by one, which is cheap there;
        `counters` count while it is away. Raises ValueError for Redis with another window than a minute.
        """
        if redis and window != MINUTE:
            raise ValueError("Redis counts minutes only")  # EngagementCache.count_events
        self._counters, self._kind, self._most, self._window = counters, kind, most, window
        self._redis = redis if redis and redis.is_configured else None
        self._step = 1 if self._redis else max(1, min(step, most // 5))
        self._window_number = 0
        self._counts = dict[str, _Count]()

    def check(self, caller: str, count: int, now: datetime) -> None:
        """Count requests or events; raises 429 with Retry-After (seconds) if the caller is over the limit."""
        known = self._count_of(caller, int(now.timestamp()) // self._window)
        if known.shared + known.pending <= self._most:
            known.pending += count
            if known.pending >= self._step:
                self._share(caller, known, now)
        if known.shared + known.pending > self._most:
            raise self._refusal(now)

    def _count_of(self, caller: str, window_number: int) -> _Count:
        """Return what is known of a caller. Whoever has not come for longest is forgotten first."""
        if window_number != self._window_number:
            self._window_number, self._counts = window_number, {}
        known = self._counts.pop(caller, None) or _Count()
        self._counts[caller] = known  # a dict keeps the order of insertion: the caller is now its last
        if len(self._counts) > CALLERS_MAX:
            del self._counts[next(iter(self._counts))]
        return known

    def _share(self, caller: str, known: _Count, now: datetime) -> None:
        """Add what is pending to the shared counter."""
        pending, known.pending = known.pending, 0
        name = f"{self._kind}:{caller}"
        counted = self._redis.count_events(name, pending, now) if self._redis else None
        if counted is not None:
            known.shared = counted
            return
        try:
            counter = f"{self._kind}#{caller}#{self._window_number}"
            known.shared = self._counters.add(counter, pending, now, 2 * self._window)
        except Unavailable:
            logger.exception("the limit is counted by this process alone")
            known.shared += pending

    def _refusal(self, now: datetime) -> ApiError:
        wait = self._window - int(now.timestamp()) % self._window
        return ApiError(
            429,
            "rate_limited",
            f"over {self._most} {self._kind} a {NAMES[self._window]}",
            {"retry_after_seconds": wait},
            {"Retry-After": str(wait)},
        )
