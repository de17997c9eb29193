"""Limits how many events, or answers, a user sends in a minute.

Redis counts them. Without Redis, each process counts those that it sees.
"""

from datetime import datetime

from adapters.engagement.engagement_cache import EngagementCache
from ingest.web.caller import ApiError

USERS_COUNTED_MAX = 10_000


class RateLimit:
    """A fixed window of one minute."""

    def __init__(self, cache: EngagementCache, events_per_minute_max: int) -> None:
        self._cache, self._max = cache, events_per_minute_max
        self._minute, self._counts = 0, dict[str, int]()

    def check(self, user_id: str, events: int, now: datetime) -> None:
        """Count events; raises 429 with Retry-After (seconds) if the user is over the limit."""
        count = self._cache.count_events(user_id, events, now)
        if count is None:
            count = self._count_here(user_id, events, now)
        if count > self._max:
            wait = 60 - int(now.timestamp()) % 60
            raise ApiError(
                429,
                "rate_limited",
                f"over {self._max} events a minute",
                {"retry_after_seconds": wait},
                {"Retry-After": str(wait)},
            )

    def _count_here(self, user_id: str, events: int, now: datetime) -> int:
        minute = int(now.timestamp()) // 60
        if minute != self._minute or len(self._counts) > USERS_COUNTED_MAX:
            self._minute, self._counts = minute, {}
        self._counts[user_id] = self._counts.get(user_id, 0) + events
        return self._counts[user_id]
