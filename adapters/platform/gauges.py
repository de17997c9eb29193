"""What an operator watches, in Redis: how fast each consumer works, how far behind it is, and what waits.

| key | holds | lives |
|---|---|---|
| gauge:{gauges}:behind | hash, consumer -> "ms behind, epoch ms of its last batch" | a day after it |
| gauge:{gauges}:{consumer}:{minute} | hash, second -> events applied in it | 3 min |
| gauge:{gauges}:newest | epoch ms of the newest event that a door has stored | a day |
| gauge:{gauges}:stored | sorted set, minute by the epoch ms of the first event stored in it | a day |

`{gauges}` is literal: the hash tag that keeps the keys in one slot of a cluster. The work comes first: if
Redis is away, slow or broken, its gauges are dropped at once.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from adapters.platform.redis import Command, Redis, RedisError
from rules.days import stamp, unstamp

BEHIND = "gauge:{gauges}:behind"
NEWEST, STORED = "gauge:{gauges}:newest", "gauge:{gauges}:stored"
# Both instants that are compared are rounded to a millisecond.
ROUNDED_MS = 2
BEHIND_SECONDS = 24 * 3600
MINUTE_SECONDS = 180
RETRY_AFTER_SECONDS = 5
SHOWN_SECONDS = 60


class GaugesUnavailable(Exception):
    """Redis has no answer; the text says why."""


@dataclass(frozen=True, slots=True)
class ConsumerLag:
    """A consumer's last batch: how long its newest event had waited, and when that was."""

    consumer: str
    behind_seconds: float
    last_batch_at: datetime

    @property
    def newest_ms(self) -> int:
        """When the newest event came that the consumer has had (epoch milliseconds)."""
        return round(self.last_batch_at.timestamp() * 1000 - self.behind_seconds * 1000)


class Gauges:
    """The gauges of one process. url: "" if there is no Redis; then there are no gauges."""

    def __init__(self, url: str) -> None:
        self._redis = Redis(url) if url else None
        self._down_until = 0.0

    def count(self, consumer: str, applied: int, records: Iterable[Mapping[str, Any]], now: datetime) -> None:
        """Note a finished batch of stream records: the number of events applied, and the newest one's age.

        That is one round trip, or none if no record has an arrival time. A failure of Redis is not raised.
        """
        if self._redis is None:
            return
        newest = max(map(_arrival, records), default="")
        if newest:
            age_seconds = max(0.0, (now - unstamp(newest)).total_seconds())
            self._send(_note(consumer, applied, age_seconds, now))

    def store(self, now: datetime) -> None:
        """Note that a door has stored events that came now: their consumer must get them.

        That is one round trip. A failure of Redis is not raised.
        """
        at = int(now.timestamp() * 1000)
        self._send(
            [
                ["SET", NEWEST, at, "EX", BEHIND_SECONDS],
                ["ZADD", STORED, "NX", at, at // 60_000],
                ["ZREMRANGEBYSCORE", STORED, "-inf", at - BEHIND_SECONDS * 1000],
                ["EXPIRE", STORED, BEHIND_SECONDS],
            ]
        )

    def waiting_since(self, lag: ConsumerLag | None) -> datetime | None:
        """Return since when an event waits that was stored after a consumer's newest one; None: none does.

        It is right to a minute, and never too early. lag: the consumer's; None if it has had no batch for a
        day. Raises GaugesUnavailable.
        """
        seen = lag.newest_ms + ROUNDED_MS if lag else 0
        newest, first = self._ask(
            [["GET", NEWEST], ["ZRANGEBYSCORE", STORED, f"({seen}", "+inf", "WITHSCORES", "LIMIT", 0, 1]]
        )
        if newest is None or int(newest) <= seen:
            return None
        return datetime.fromtimestamp(float(first[1] if first else newest) / 1000, UTC)

    def _send(self, commands: list[Command]) -> None:
        if self._redis is None or time.monotonic() < self._down_until:
            return
        try:
            self._redis.pipeline(commands)
        except RedisError:
            self._down_until = time.monotonic() + RETRY_AFTER_SECONDS

    def lags(self) -> list[ConsumerLag]:
        """Return every consumer's lag of the last day, by name; raises GaugesUnavailable."""
        flat = self._ask([["HGETALL", BEHIND]])[0]
        found = dict(zip(flat[::2], flat[1::2], strict=True))
        return [_lag(consumer, text) for consumer, text in sorted(found.items())]

    def per_second(self, consumer: str, now: datetime) -> list[int]:
        """Return the events applied in each of the last 60 whole seconds, oldest first.

        Raises GaugesUnavailable.
        """
        until = int(now.timestamp())
        minutes = sorted({(until - SHOWN_SECONDS) // 60, until // 60})
        counts: dict[int, int] = {}
        for flat in self._ask([["HGETALL", _key(consumer, minute)] for minute in minutes]):
            counts |= {
                int(second): int(applied) for second, applied in zip(flat[::2], flat[1::2], strict=True)
            }
        return [counts.get(second, 0) for second in range(until - SHOWN_SECONDS, until)]

    def _ask(self, commands: list[Command]) -> list[Any]:
        if self._redis is None:
            raise GaugesUnavailable("there is no Redis: gauges are off")
        try:
            return self._redis.pipeline(commands)
        except RedisError:
            raise GaugesUnavailable("Redis does not answer, and nobody else knows this") from None


def _key(consumer: str, minute: int) -> str:
    return f"gauge:{{gauges}}:{consumer}:{minute}"


def _note(consumer: str, applied: int, age_seconds: float, now: datetime) -> list[Command]:
    second = int(now.timestamp())
    counter = _key(consumer, second // 60)
    return [
        ["HSET", BEHIND, consumer, f"{age_seconds * 1000:.0f} {now.timestamp() * 1000:.0f}"],
        ["EXPIRE", BEHIND, BEHIND_SECONDS],
        ["HINCRBY", counter, second, applied],
        ["EXPIRE", counter, MINUTE_SECONDS],
    ]


def _lag(consumer: str, text: str) -> ConsumerLag:
    behind, at = map(int, text.split())
    return ConsumerLag(consumer, behind / 1000, datetime.fromtimestamp(at / 1000, UTC))


def _arrival(record: Mapping[str, Any]) -> str:
    """Return when a record's event was stored; "" for a record that does not say so.

    The stream says it to a second. An event's own time is a whole minute if it is that of an answer.
    """
    try:
        if at := record["dynamodb"].get("ApproximateCreationDateTime"):
            return stamp(datetime.fromtimestamp(float(at), UTC))
        text = record["dynamodb"]["NewImage"]["created_at"]["S"]
        unstamp(text)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ""
    return str(text)
