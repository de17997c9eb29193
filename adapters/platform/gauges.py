"""Gauges in Redis: how fast each consumer works, how far it is behind, and since when events wait.

A *door* stores events, a *consumer* receives and applies them: the first half of Gauges is what both write,
the second half what the operator's page reads.

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
ROUNDING_MS = 1_000 + 2
BEHIND_SECONDS, MINUTE_SECONDS = 24 * 3600, 180  # how long keys live
RETRY_AFTER_SECONDS = 5  # after a failure nothing is written for so long
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

    def note_applied(
        self, consumer: str, applied: int, records: Iterable[Mapping[str, Any]], now: datetime
    ) -> None:
        """Note a finished batch of stream records: the number of events applied, and the newest one's age.

        It takes one round trip. A failure of Redis is not raised.
        """
        # The stream says to a second when an event was stored. A record that is made by hand need not.
        arrivals = (record["dynamodb"].get("ApproximateCreationDateTime", 0) for record in records)
        newest = float(max(arrivals, default=0))
        if not newest:
            return
        behind_ms, now_ms = max(0.0, now.timestamp() - newest) * 1000, now.timestamp() * 1000
        second = int(now.timestamp())
        counter = _counter_key(consumer, second // 60)
        self._send(
            [
                ["HSET", BEHIND, consumer, f"{behind_ms:.0f} {now_ms:.0f}"],
                ["EXPIRE", BEHIND, BEHIND_SECONDS],
                ["HINCRBY", counter, second, applied],
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

    def _send(self, commands: list[Command]) -> None:
        if self._redis is None or time.monotonic() < self._down_until:
            return
        try:
            self._redis.pipeline(commands)
        except RedisError:
            self._down_until = time.monotonic() + RETRY_AFTER_SECONDS

    def lags(self) -> list[ConsumerLag]:
        """Return the lag of each consumer that had a batch in the last day, by name.

        Raises GaugesUnavailable.
        """
        (answer,) = self._ask([["HGETALL", BEHIND]])
        lags = []
        for consumer, text in sorted(_hash_of(answer).items()):
            behind_ms, batch_ms = map(int, text.split())
            last_batch_at = datetime.fromtimestamp(batch_ms / 1000, UTC)
            lags.append(ConsumerLag(consumer, behind_ms / 1000, last_batch_at))
        return lags

    def waiting_since(self, lag: ConsumerLag | None) -> datetime | None:
        """Return since when an event waits that the events' consumer has not received; None: no event waits.

        The instant is right to a minute, and never too early. lag: the consumer's; None if it had no batch
        for a day. Raises GaugesUnavailable.
        """
        received_ms = lag.newest_ms + ROUNDING_MS if lag else 0
        after = f"({received_ms}"
        first_later: Command = ["ZRANGEBYSCORE", STORED, after, "+inf", "WITHSCORES", "LIMIT", 0, 1]
        newest, minute_and_first_event = self._ask([["GET", NEWEST], first_later])
        if newest is None or int(newest) <= received_ms:
            return None
        # STORED has a minute's first event only. If that was received, the newest event is known to wait.
        at_ms = minute_and_first_event[1] if minute_and_first_event else newest
        return datetime.fromtimestamp(float(at_ms) / 1000, UTC)

    def applied_per_second(self, consumer: str, now: datetime) -> list[int]:
        """Return the events applied in each of the last 60 whole seconds, oldest first.

        Raises GaugesUnavailable.
        """
        until = int(now.timestamp())
        minutes = sorted({(until - SHOWN_SECONDS) // 60, until // 60})
        counts: dict[int, int] = {}
        for answer in self._ask([["HGETALL", _counter_key(consumer, minute)] for minute in minutes]):
            counts |= {int(second): int(applied) for second, applied in _hash_of(answer).items()}
        return [counts.get(second, 0) for second in range(until - SHOWN_SECONDS, until)]

    def _ask(self, commands: list[Command]) -> list[Any]:
        if self._redis is None:
            raise GaugesUnavailable("there is no Redis: gauges are off")
        try:
            return self._redis.pipeline(commands)
        except RedisError:
            raise GaugesUnavailable("Redis does not answer, and nobody else knows this") from None


def _counter_key(consumer: str, minute: int) -> str:
    return f"gauge:{{gauges}}:{consumer}:{minute}"


def _hash_of(answer: list[Any]) -> dict[Any, Any]:
    """Return a hash by its fields: HGETALL answers a list of field, value, field, value."""
    return dict(zip(answer[::2], answer[1::2], strict=True))
