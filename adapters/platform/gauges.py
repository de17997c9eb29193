"""Gauges in Redis: how fast each consumer works, how far it is behind, and since when events wait.

| key | content | lives |
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

BEHIND = "gauge:{gauges}:behind"
NEWEST, STORED = "gauge:{gauges}:newest", "gauge:{gauges}:stored"
# An arrival in a stream is a whole second, rounded down (as the API reference of DynamoDB Streams says of
# ApproximateCreationDateTime), and both instants that are compared are rounded to a millisecond.
ROUNDED_MS = 1_000 + 2
BEHIND_SECONDS = 24 * 3600
MINUTE_SECONDS = 180
RETRY_AFTER_SECONDS = 5
SHOWN_SECONDS = 60


class GaugesUnavailable(Exception):
    """Redis has no answer; the text says why."""


@dataclass(frozen=True, slots=True)
class ConsumerLag:
    """A consumer's last batch."""

    consumer: str
    behind_seconds: float  # how long the newest event of the batch had waited
    last_batch_at: datetime

    @property
    def newest_ms(self) -> int:
        """When the newest event of the last batch was stored (epoch milliseconds)."""
        return round(self.last_batch_at.timestamp() * 1000 - self.behind_seconds * 1000)


class Gauges:
    """The gauges of one process. url: "" if there is no Redis; then there are no gauges."""

    def __init__(self, url: str) -> None:
        self._redis = Redis(url) if url else None
        self._down_until = 0.0

    def count(self, consumer: str, applied: int, records: Iterable[Mapping[str, Any]], now: datetime) -> None:
        """Note a finished batch of stream records: the number of events applied, and the newest one's age.

        It takes one round trip. A failure of Redis is not raised.
        """
        # The stream says to a second when an event was stored. A record that is made by hand need not.
        arrivals = (record["dynamodb"].get("ApproximateCreationDateTime", 0) for record in records)
        if newest := float(max(arrivals, default=0)):
            behind_ms, now_ms = max(0.0, now.timestamp() - newest) * 1000, now.timestamp() * 1000
            counter = _key(consumer, int(now.timestamp()) // 60)
            self._send(
                [
                    ["HSET", BEHIND, consumer, f"{behind_ms:.0f} {now_ms:.0f}"],
                    ["EXPIRE", BEHIND, BEHIND_SECONDS],
                    ["HINCRBY", counter, int(now.timestamp()), applied],
                    ["EXPIRE", counter, MINUTE_SECONDS],
                ]
            )

    def note_stored(self, now: datetime) -> None:
        """Note that a door has stored events now, which their consumer must receive.

        It takes one round trip. A failure of Redis is not raised.
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
        """Return since when an event waits that the consumer has not received; None: no event waits.

        The instant is right to a minute, and never too early. lag: the consumer's; None if it had no batch
        for a day. Raises GaugesUnavailable.
        """
        received_ms = lag.newest_ms + ROUNDED_MS if lag else 0
        after = f"({received_ms}"
        first_later: Command = ["ZRANGEBYSCORE", STORED, after, "+inf", "WITHSCORES", "LIMIT", 0, 1]
        newest, minute_and_instant = self._ask([["GET", NEWEST], first_later])
        if newest is None or int(newest) <= received_ms:
            return None
        # A minute has only its first event. If that was received, the newest event is the one that waits.
        at_ms = minute_and_instant[1] if minute_and_instant else newest
        return datetime.fromtimestamp(float(at_ms) / 1000, UTC)

    def _send(self, commands: list[Command]) -> None:
        if self._redis is None or time.monotonic() < self._down_until:
            return
        try:
            self._redis.pipeline(commands)
        except RedisError:
            self._down_until = time.monotonic() + RETRY_AFTER_SECONDS

    def lags(self) -> list[ConsumerLag]:
        """Return every consumer's lag of the last day, by name; raises GaugesUnavailable."""
        (flat,) = self._ask([["HGETALL", BEHIND]])
        lags = dict(zip(flat[::2], flat[1::2], strict=True))
        return [
            ConsumerLag(consumer, behind / 1000, datetime.fromtimestamp(at / 1000, UTC))
            for consumer, text in sorted(lags.items())
            for behind, at in [map(int, text.split())]
        ]

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
