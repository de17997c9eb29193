"""Serves an SQS batch: each message is done, comes again, waits, or is kept in a failure queue."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from adapters.logs import Logger, error_summary
from adapters.platform.aws import Unavailable
from adapters.platform.failures import FailureQueue, partial_failures
from rules.json_values import NoJson, read_json

Record = Mapping[str, Any]
WAIT_SECONDS_MIN, WAIT_SECONDS_MAX = 10, 900  # SQS delays a message that is sent by no more than 900
RECEIVES_MAX = 8  # then a waiting message is sent anew: its queue gives it up after ten
RECEIVES_IN_ALL = 1_400  # two weeks of waiting
RECEIVED = "received"  # the attribute of a message that was sent anew: how often it had come before


class PoisonMessage(ValueError):
    """No attempt will ever get past this message; the text says why."""


class TimeIsUp(Exception):
    """The function ends soon. What was done of the message stays done; it comes again at once."""


class Deadline:
    """When a function is to begin nothing more."""

    def __init__(self, context: Any, reserve_seconds: float) -> None:
        """context: Lambda's. reserve_seconds: what the longest single step may take."""
        self._at: float = time.monotonic() + context.get_remaining_time_in_millis() / 1000 - reserve_seconds

    def is_over(self) -> bool:
        """Whether it has passed."""
        return time.monotonic() >= self._at


@dataclass(frozen=True, slots=True)
class SourceQueue:
    """The queue that messages come from, in which they can wait.

    SQS counts how often a message came, and gives it up after ten times, whatever the reason was. So a
    message that only waits is sent anew before that, and brings along how often it had come; its two weeks
    in the queue begin anew, too. If the process dies in between, it is there twice: consumers are idempotent.
    See ARCHITECTURE.md.
    """

    sqs: Callable[[], Any]
    url: str
    # Whether an exception says that a store is away, which is no fault of the message
    is_away: Callable[[Exception], bool]

    def put_back(self, record: Record, seconds: int) -> bool:
        """Make a message wait; returns whether SQS is to deliver it again. Raises what SQS raises."""
        if _count(record) < RECEIVES_MAX:
            self.sqs().change_message_visibility(
                QueueUrl=self.url, ReceiptHandle=record["receiptHandle"], VisibilityTimeout=seconds
            )
            return True
        attributes = {RECEIVED: {"DataType": "Number", "StringValue": str(receive_count(record))}}
        self.sqs().send_message(
            QueueUrl=self.url, MessageBody=record["body"], DelaySeconds=seconds, MessageAttributes=attributes
        )
        return False


@dataclass(slots=True)
class _Batch:
    """What became of a batch's messages."""

    now: datetime
    is_redrive: bool
    source: SourceQueue | None  # where they may wait
    again: dict[str, str] = field(default_factory=dict)  # why messages come again, by id
    waiting: dict[str, tuple[Record, int]] = field(default_factory=dict)  # with seconds to wait, by id


@dataclass(frozen=True, slots=True)
class Consumer:
    """Serves batches of one queue, or of several."""

    name: str  # what failure queues call it
    failures: FailureQueue
    logger: Logger
    source: SourceQueue | None = None  # where messages wait; None if they never do

    def serve(
        self,
        event: Mapping[str, Any],
        handle: Callable[[Any], object],
        now: datetime,
        is_over: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any]:
        """Hand each message's JSON body to `handle`; returns the batch's partial failures.

        Poison is kept in the failure queue with its reason, and is done. If a store is away, the message
        waits: ten seconds, then twice as long each time, up to a quarter of an hour. When the time is over,
        the other messages come again at once. After any other exception, also one from keeping poison, the
        message comes again, and after too many attempts (template.yaml) SQS itself moves it to the failure
        queue. On a redrive what fails is reported with the reason, and stays there.
        """
        is_redrive = bool(event.get("streakline_redrive"))
        batch = _Batch(now, is_redrive, None if is_redrive else self.source)
        for index, record in enumerate(event["Records"]):
            if batch.source and index and is_over():
                batch.waiting[record["messageId"]] = record, 0
                continue
            try:
                self._attempt(record, handle, batch)
            except Exception as error:  # noqa: BLE001 (the log tells of it)
                self._note_failure(record, error, batch)
        if batch.source:
            self._put_back(batch.source, batch)
        counts = {"messages": len(event["Records"]), "again": len(batch.again)}
        self.logger.info("batch", extra=counts)
        return partial_failures(batch.again if is_redrive else dict.fromkeys(batch.again, ""))

    def _attempt(self, record: Record, handle: Callable[[Any], object], batch: _Batch) -> None:
        reason = _handle(record["body"], handle)
        if reason is not None and batch.is_redrive:
            batch.again[record["messageId"]] = reason
        elif reason is not None:
            self.failures.keep(self.name, [(record["body"], reason)], batch.now)

    def _note_failure(self, record: Record, error: Exception, batch: _Batch) -> None:
        source = batch.source
        name, reason = record["messageId"], f"{type(error).__name__}: {error}"
        if source and isinstance(error, TimeIsUp):
            batch.waiting[name] = record, 0
        elif source and source.is_away(error) and receive_count(record) < RECEIVES_IN_ALL:
            self.logger.warning(
                "waits for a store", extra={"message_id": name, "reason": error_summary(error)}
            )
            batch.waiting[name] = record, wait_seconds(receive_count(record))
        elif source and source.is_away(error) and self._give_up(record, reason, batch.now):
            self.logger.error("waited for two weeks", extra={"message_id": name})
        else:
            self.logger.error("to come again", extra={"message_id": name}, exc_info=error)
            batch.again[name] = reason

    def _give_up(self, record: Record, reason: str, now: datetime) -> bool:
        """Keep a message that has waited for too long; whether that could be done."""
        try:
            self.failures.keep(self.name, [(record["body"], f"waited for two weeks: {reason}")], now)
        except Unavailable:
            return False
        return True

    def _put_back(self, source: SourceQueue, batch: _Batch) -> None:
        for name, (record, seconds) in batch.waiting.items():
            try:
                again = source.put_back(record, seconds)
            except Unavailable:
                self.logger.exception("waits as long as its queue says", extra={"message_id": name})
                again = True
            if again:
                batch.again[name] = ""


def wait_seconds(times: int) -> int:
    """Return how long a message waits that has come so many times: 10 seconds, 20, 40 ... 900."""
    return int(min(WAIT_SECONDS_MAX, WAIT_SECONDS_MIN * 2 ** min(times - 1, 16)))


def receive_count(record: Record) -> int:
    """Return how often a message has come, this time included, and also before it was sent anew."""
    text = record.get("messageAttributes", {}).get(RECEIVED, {}).get("stringValue", "0")
    before = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    return before + _count(record)


def _count(record: Record) -> int:
    return int(record.get("attributes", {}).get("ApproximateReceiveCount", 1))


def _handle(body: str, handle: Callable[[Any], object]) -> str | None:
    """Handle a message; returns why it is poison, if it is."""
    try:
        message = read_json(body)
    except NoJson as error:
        return f"the message is not JSON: {error}"
    try:
        handle(message)
    except PoisonMessage as reason:
        return str(reason)
    return None
