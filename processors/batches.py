"""Serves the batches of streams and queues: each record is done, comes again, or is poison.

A consumer is a function: of a stream's records (`stream_consumer`), or of one message of a queue
(`queue_consumer`). Lambda is answered with what must come again. Poison waits in the consumer's failure
queue, with the reason, until an operator runs `streakline queue redrive`; what fails again then stays there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Any, Self, TypeVar

from adapters import clock, settings
from adapters.logs import Logger
from adapters.platform.aws import Unavailable, client
from adapters.platform.failures import FailureQueue, partial_failures
from adapters.platform.queues import Consumer, Deadline, SourceQueue
from adapters.platform.tables import Unprocessed

Record = Mapping[str, Any]
Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
T = TypeVar("T")
# What a reader raises that cannot read a record: no attempt will.
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
# After these, a later attempt may succeed.
TRANSIENT = (*Unavailable, Unprocessed)


@dataclass(frozen=True)
class ConsumerSettings:
    """What each consumer reads from its environment."""

    failure_queue_url: str  # where its poison is kept

    @classmethod
    def failures(cls) -> FailureQueue:
        """Return the process's failure queue."""
        return FailureQueue(lambda: client("sqs"), settings.read_settings(ConsumerSettings).failure_queue_url)


@dataclass(slots=True)
class BatchResult:
    """What became of the records of a stream's batch."""

    counts: Counter[str] = field(default_factory=Counter)  # how many records came to what; the log has them
    again: list[str] = field(default_factory=list)  # the sequence numbers of those that come again
    # Those that no attempt will get past, each with the reason
    poison: list[tuple[Record, str]] = field(default_factory=list)

    def read(self, records: Iterable[Record], reader: Callable[[Record], T | None]) -> list[tuple[Record, T]]:
        """Return records, each with what a reader makes of it. None: passed over. UNREADABLE: poison."""
        pairs: list[tuple[Record, T]] = []
        for record in records:
            try:
                found = reader(record)
            except UNREADABLE as error:
                self.poison.append((record, reason_of(error)))
                continue
            if found is not None:
                pairs.append((record, found))
        return pairs

    def attempt(
        self,
        pairs: Sequence[tuple[Record, T]],
        action: Callable[[Sequence[tuple[Record, T]]], object],
        logger: Logger,
        transient: tuple[type[Exception], ...] = TRANSIENT,
        **about: str,
    ) -> None:
        """Do what concerns some records, such as all of one user.

        After a transient error all of them come again. After any other one each is tried by itself, in their
        order, and only those that fail alone are poison. about: whose they are, for the log.
        """
        try:
            action(pairs)
        except transient:
            logger.exception("to come again", extra=about)
            self.again += [sequence_number_of(record) for record, _ in pairs]
        except Exception as error:  # whatever a record raises, its neighbours go on
            logger.exception("poison", extra=about)
            if len(pairs) == 1:
                self.poison.append((pairs[0][0], reason_of(error)))
                return
            for pair in pairs:
                self.attempt([pair], action, logger, transient, **about)

    def add(self, other: Self) -> None:
        """Add what became of other records."""
        self.counts += other.counts
        self.again += other.again
        self.poison += other.poison


def stream_consumer(
    name: str, logger: Logger, otherwise: Handler | None = None
) -> Callable[[Callable[[list[Record], datetime], BatchResult]], Handler]:
    """Decorate what consumes a stream's records: it becomes a Lambda handler.

    name: what failure queues call the consumer. otherwise: serves events without records.
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
            else:
                ConsumerSettings.failures().keep(name, result.poison, now)
            counts = {**result.counts, "again": len(reasons), "poison": len(result.poison)}
            logger.info("batch", extra=counts)
            return partial_failures(reasons)

        return logger.inject_lambda_context(handler)

    return decorate


def queue_consumer(
    name: str, logger: Logger, line: Callable[[], SourceQueue] | None = None, reserve_seconds: float = 0
) -> Callable[[Callable[[Any, datetime], object]], Handler]:
    """Decorate what consumes a message (adapters.platform.queues): it becomes a Lambda handler.

    line: where messages wait while a store is away. reserve_seconds: what a message may take.
    """

    def decorate(consume: Callable[[Any, datetime], object]) -> Handler:
        @wraps(consume)
        def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
            now = clock.now()
            waits = line() if line else None
            is_over = Deadline(context, reserve_seconds).is_over if waits else lambda: False
            consumer = Consumer(name, ConsumerSettings.failures(), logger, waits)
            return consumer.serve(event, lambda message: consume(message, now), now, is_over)

        return logger.inject_lambda_context(handler)

    return decorate


def sequence_number_of(record: Record) -> str:
    """Return a record's place in its stream."""
    return str(
        record["dynamodb"]["SequenceNumber"] if "dynamodb" in record else record["kinesis"]["sequenceNumber"]
    )


def reason_of(error: Exception) -> str:
    """Return why a record is poison, as its failure queue says it."""
    return f"{type(error).__name__}: {error}"
