"""The engagement cache's connection: what to do while Redis is away, and what to make good afterwards.

After a failure Redis is left alone for some seconds, so that it slows nothing down. Keys whose new values
were lost meanwhile are remembered. They are deleted first when Redis is back, one command a key: in cluster
mode a command's keys must share a slot. Until a key is deleted, nobody reads it here.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from adapters.platform.redis import Command, Redis, RedisError, RedisUnsupported

RETRY_AFTER_SECONDS = 5
RECOVERED_AT_ONCE = 500
READS = ("GET", "EXISTS", "TTL")


class CacheLink:
    """One process's connection. url: "" if there is no Redis. always_stale: stale after any lost write."""

    def __init__(self, url: str, always_stale: Iterable[str] = ()) -> None:
        self._redis = Redis(url) if url else None
        self._always_stale = tuple(always_stale)
        self._down_until = self._recover_at = 0.0
        self._dropped: set[str] = set()

    @property
    def is_configured(self) -> bool:
        """Whether there should be a Redis, of a kind that we can use."""
        return self._redis is not None

    def run(self, commands: Sequence[Command], stale: Iterable[str] = ()) -> list[Any] | None:
        """Run commands in one round trip, or return None: Redis cannot be used, or a key may be stale.

        stale: keys that hold old values if the commands are lost.
        """
        if self._redis is None or not commands:
            return None
        if time.monotonic() >= self._down_until:
            try:
                self._recover(self._redis)
                return None if self._asks_for_dropped(commands) else self._redis.pipeline(commands)
            except RedisUnsupported:  # it has said so in the log
                self._redis, self._dropped = None, set()
                return None
            except RedisError:
                self._down_until = time.monotonic() + RETRY_AFTER_SECONDS
        lost = set(stale)
        self._dropped |= lost | set(self._always_stale if lost else ())
        return None

    def _recover(self, redis: Redis) -> None:
        """Delete what is stale. A key whose deletion is refused stays remembered, and holds up no other.

        Raises RedisError if Redis is away again; what has been deleted is done with.
        """
        if not self._dropped or time.monotonic() < self._recover_at:
            return
        self._recover_at = time.monotonic() + RETRY_AFTER_SECONDS
        rest = [key for key in self._dropped if key not in self._always_stale]
        keys = [*self._always_stale, *rest]
        for first in range(0, len(keys), RECOVERED_AT_ONCE):
            chunk = keys[first : first + RECOVERED_AT_ONCE]
            answers = redis.answers([["DEL", key] for key in chunk])
            refused = {key for key, each in zip(chunk, answers, strict=True) if isinstance(each, RedisError)}
            self._dropped -= set(chunk) - refused
        if not self._dropped:
            self._recover_at = 0.0

    def _asks_for_dropped(self, commands: Sequence[Command]) -> bool:
        return bool(self._dropped) and any(
            command[0] in READS and command[1] in self._dropped for command in commands
        )
