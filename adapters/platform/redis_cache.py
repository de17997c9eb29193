"""Redis as a cache and as a counter, for all domains.

Every operation survives a Redis that is absent, slow or empty: reads return that they know nothing, and
writes are dropped.

| key | holds | lives |
|---|---|---|
| rate:{kind}:{caller}:{minute} | counter | 2 min |
"""

import json
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from adapters.platform.redis import Command, Redis, RedisError
from adapters.platform.tables import chunks

RETRY_AFTER_SECONDS = 5
DELETED_AT_ONCE = 500


class RedisCache:
    """The cache of one process. url: "" if there is no Redis.

    After a failure, Redis is not called for some seconds, so that it slows nothing down. Keys whose new
    values were lost meanwhile are remembered, and deleted before anything is read of Redis again.
    """

    def __init__(self, url: str) -> None:
        self._redis = Redis(url) if url else None
        self._down_until, self._dropped = 0.0, set[str]()

    @property
    def is_configured(self) -> bool:
        """Whether there should be a Redis, of a kind that we can use."""
        return self._redis is not None

    def count(self, name: str, number: int, now: datetime) -> int | None:
        """Add to a counter of this minute; returns its value afterwards, None without Redis."""
        key = f"rate:{name}:{int(now.timestamp()) // 60}"
        answers = self.run([["INCRBY", key, number], ["EXPIRE", key, 120]])
        return int(answers[0]) if answers else None

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the JSON object at a key; None if there is none, or without Redis."""
        answers = self.run([["GET", key]])
        value: dict[str, Any] | None = json.loads(answers[0]) if answers and answers[0] else None
        return value

    def run(self, commands: Sequence[Command], stale: Iterable[str] = ()) -> list[Any] | None:
        """Run commands in one round trip, or return None if Redis cannot be used.

        stale: keys that hold old values if the commands are lost.
        """
        if self._redis is None or not commands:
            return None
        if time.monotonic() >= self._down_until:
            try:
                for keys in chunks(sorted(self._dropped), DELETED_AT_ONCE):
                    self._redis.pipeline([["DEL", key] for key in keys])
                    self._dropped -= set(keys)
                return self._redis.pipeline(commands)
            except RedisError:
                self._down_until = time.monotonic() + RETRY_AFTER_SECONDS
                if self._redis.is_unsupported:  # it has said so in the log
                    self._redis, self._dropped = None, set()
                    return None
        self._dropped |= set(stale)
        return None
