"""Serves the batches of streams and queues: each record is finished, delivered again, or poison.

A consumer is a function of a stream's records (`stream_consumer`), or of one message of a queue
(`queue_consumer`). Its handler answers Lambda with the records that must be delivered again. Poison waits in
the consumer's failure queue, with the reason, until an operator runs `streakline queue redrive`. A record
that fails then stays there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Any, Self, TypeVar

from adapters import clock, settings
from adapters.bootstrap import process_client
from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.queues import Consumer, Deadline, FailureQueue, SourceQueue, partial_failures
from adapters.platform.tables import Unprocessed

Record = Mapping[str, Any]
Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
T = TypeVar("T")
# A reader raises one of these for a record that no attempt can read.
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
# After these, a later attempt may succeed.
TRANSIENT = (*Unavailable, Unprocessed)


@dataclass(frozen=True)
class ConsumerSettings:
    """Settings that each consumer has."""

    failure_queue_url: str  # of the queue for its poison

    @classmethod
    def failures(cls) -> FailureQueue:
        """Return the process's failure queue."""
        return FailureQueue(
            lambda: process_client("sqs"), settings.read_settings(ConsumerSettings).failure_queue_url
        )


@dataclass(slots=True)
class BatchResult:
    """The results of the records of a stream's batch."""

    counts: Counter[str] = field(default_factory=Counter)  # numbers of records by result, for the log
    again: list[str] = field(default_factory=list)  # sequence numbers of records to be delivered again
    poison: list[tuple[Record, str]] = field(default_factory=list)  # records that can never succeed, and why

    def read(self, records: Iterable[Record], reader: Callable[[Record], T | None]) -> list[tuple[Record, T]]:
        """Return records, each with the value that a reader makes of it. Records for which the reader returns
        None are skipped. Those for which it raises UNREADABLE are poison.
        """
        pairs: list[tuple[Record, T]] = []
        for record in records:
            try:
                value = reader(record)
            except UNREADABLE as error:
                self.poison.append((record, reason_of(error)))
                continue
            if value is not None:
                pairs.append((record, value))
        return pairs

    def attempt(
        self,
        pairs: Sequence[tuple[Record, T]],
        action: Callable[[Sequence[tuple[Record, T]]], object],
        logger: Logger,
        transient: tuple[type[Exception], ...] = TRANSIENT,
        **about: str,
    ) -> None:
        """Call an action with pairs that belong together, such as all of one user.

        After a transient error all of them are delivered again. After any other error the action is called
        with each pair alone, in order, and only pairs that fail alone are poison. about: for the log.
        """
        try:
            action(pairs)
        except transient:
            logger.exception("to come again", extra=about)
            self.again += [sequence_number_of(record) for record, _ in pairs]
        except Exception as error:  # whatever one record raises, the others are still processed
            if len(pairs) == 1:
                logger.exception("poison", extra=about)
                self.poison.append((pairs[0][0], reason_of(error)))
                return
            logger.exception("each alone", extra=about)
            for pair in pairs:
                self.attempt([pair], action, logger, transient, **about)

    def add(self, other: Self) -> None:
        """Add the results of other records."""
        self.counts += other.counts
        self.again += other.again
        self.poison += other.poison


def stream_consumer(
    name: str, logger: Logger, otherwise: Handler | None = None
) -> Callable[[Callable[[list[Record], datetime], BatchResult]], Handler]:
    """Decorate a function that consumes a stream's records: it becomes a Lambda handler.

    name: the consumer's in failure queues. otherwise: serves events without records.
    """

    def decorate(consume: Callable[[list[Record], datetime], BatchResult]) -> Handler:
        @wraps(consume)
        def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
            if otherwise and "Records" not in event:
                return otherwise(event, context)
            now = clock.now()
            result = consume(event["Records"], now)
            reasons = dict.fromkeys(result.again, "")
            if event.get("streakline_redrive"):
                reasons |= {sequence_number_of(record): reason for record, reason in result.poison}
            elif result.poison:
                ConsumerSettings.failures().keep(name, result.poison, now)
            counts = {**result.counts, "again": len(reasons), "poison": len(result.poison)}
            logger.info("batch", extra=counts)
            return partial_failures(reasons)

        return logger.inject_lambda_context(handler)

    return decorate


def queue_consumer(
    name: str, logger: Logger, source: Callable[[], SourceQueue] | None = None, reserve_seconds: float = 0
) -> Callable[[Callable[[Any, datetime], object]], Handler]:
    """Decorate a function that consumes a message (adapters.platform.queues): it becomes a Lambda handler.

    source: returns the queue in which messages wait while a store is away. reserve_seconds: how long a
    message may take.
    """

    def decorate(consume: Callable[[Any, datetime], object]) -> Handler:
        @wraps(consume)
        def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
            now = clock.now()
            queue = source() if source else None
            is_over = Deadline(context, reserve_seconds).is_over if queue else lambda: False
            consumer = Consumer(name, ConsumerSettings.failures(), logger, queue)
            return consumer.serve(event, lambda message: consume(message, now), now, is_over)

        return logger.inject_lambda_context(handler)

    return decorate


def sequence_number_of(record: Record) -> str:
    """Return a record's sequence number in its stream."""
    return str(
        record["dynamodb"]["SequenceNumber"] if "dynamodb" in record else record["kinesis"]["sequenceNumber"]
    )


def reason_of(error: Exception) -> str:
    """Return the text of an error for a failure queue."""
    return f"{type(error).__name__}: {error}"
