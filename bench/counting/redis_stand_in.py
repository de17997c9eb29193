"""Stands for Redis at the desk: keeps values until they expire, says that the rank sets are whole, counts.

redis.commands    commands; a script is one
redis.scripts     those that are scripts
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from unittest.mock import patch

from adapters.engagement.engagement_cache import KEEP
from adapters.engagement.rank_sets import LAPSE
from adapters.platform.redis import Command, Redis

Count = Callable[[str, float], None]


class RedisStandIn:
    """now: tells the time. count: is told names and numbers."""

    def __init__(self, now: Callable[[], datetime], count: Count) -> None:
        self._now, self._count = now, count
        self._held: dict[str, tuple[Any, float]] = {}

    def pipeline(self, commands: Sequence[Command]) -> list[Any]:
        """Answer commands, in one round trip."""
        self._count("calls.redis", 1)
        self._count("redis.commands", len(commands))
        self._count("redis.scripts", sum(each[0] == "EVAL" for each in commands))
        return [self._answer(*map(str, each)) for each in commands]

    def _answer(self, name: str, *arguments: str) -> Any:
        if name == "GET":
            value, until = self._held.get(arguments[0], (None, 0.0))
            return value if until > self._now().timestamp() else None
        if name == "SET":
            self._hold(arguments[0], arguments[1], arguments[-1])
            return "OK"
        if name == "EVAL" and arguments[0] == KEEP:
            self._hold(arguments[2], arguments[4], arguments[5])
        if name == "SMISMEMBER":
            return [0] * (len(arguments) - 1)
        if name == "EVAL" and arguments[0] == LAPSE:
            return 0  # none are left
        return [] if name == "ZRANGE" else 1

    def _hold(self, key: str, value: str, seconds: str) -> None:
        self._held[key] = value, self._now().timestamp() + float(seconds)


@contextmanager
def redis_stand_in(now: Callable[[], datetime], count: Count) -> Iterator[None]:
    """Let every Redis of the process be one stand-in."""
    held = RedisStandIn(now, count)
    with patch.object(Redis, "pipeline", lambda _, commands: held.pipeline(commands)):
        yield
