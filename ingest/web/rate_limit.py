"""Limits how much a caller sends, or asks for, in a minute or a day, however many processes answer.

Redis counts what is limited a minute, in deployments that have it. All else is counted in the table Limits.
"""

from datetime import datetime

from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.limits import SharedCounters
from adapters.platform.redis_cache import RedisCache
from ingest.web.caller import ApiError

logger = Logger(service="rate-limit")
# Cheap requests are added to the shared counter 20 at a time, so each costs a twentieth of a write unit.
CHEAP_STEP = 20
MINUTE, DAY = 60, 86_400
NAMES = {MINUTE: "minute", DAY: "day"}


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
        redis: RedisCache | None = None,
    ) -> None:
        """Declare that a caller may do a thing `most` times in a window.

        kind: what is counted, in the words of the refusal, such as `reads`. window: MINUTE or DAY. step: how
        many a process counts before it adds them to the shared counter; 1 is exact. A small limit has smaller
        steps, because each process may pass it by step - 1. redis: counts minutes, one by one, which is cheap
        there; `counters` count while it is away.
        """
        self._counters, self._kind, self._most, self._window = counters, kind, most, window
        self._redis = redis if redis and redis.is_configured else None
        self._step = 1 if self._redis else max(1, min(step, most // 5))
        self._window_number = 0
        # By caller, in the window at hand: the shared counter as it was last known, and what this process has
        # counted since then.
        self._counts: dict[str, tuple[int, int]] = {}

    def check(self, caller: str, count: int, now: datetime) -> None:
        """Count requests or events; raises 429 with Retry-After (seconds) if the caller is over the limit."""
        window_number, second = divmod(int(now.timestamp()), self._window)
        if window_number != self._window_number:
            self._window_number, self._counts = window_number, {}
        shared, pending = self._counts.get(caller, (0, 0))
        if shared + pending <= self._most:
            pending += count
            if pending >= self._step:
                shared, pending = self._share(caller, shared, pending, now), 0
            self._counts[caller] = shared, pending
        if shared + pending > self._most:
            wait = self._window - second
            raise ApiError(
                429,
                "rate_limited",
                f"over {self._most} {self._kind} a {NAMES[self._window]}",
                {"retry_after_seconds": wait},
                {"Retry-After": str(wait)},
            )

    def _share(self, caller: str, shared: int, pending: int, now: datetime) -> int:
        """Add what is pending to the shared counter, and return it."""
        counted = self._redis.count(f"{self._kind}:{caller}", pending, now) if self._redis else None
        if counted is not None:
            return counted
        counter = f"{self._kind}#{caller}#{self._window_number}"
        try:
            return self._counters.add(counter, pending, now, 2 * self._window)
        except Unavailable:
            logger.exception("the limit is counted by this process alone")
            return shared + pending
