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
RECEIVES_IN_ALL = 1_400  # two weeks of waiting: then a message is given up
RECEIVED = "received"  # the attribute of a message that was sent anew: how often it had come before


class PoisonMessage(ValueError):
    """A message that no attempt can ever process. The text says why."""


class TimeIsUp(Exception):
    """The function ends soon. What was done of the message stays, and the message comes again at once."""


class Deadline:
    """The time after which a function begins nothing more."""

    def __init__(self, context: Any, reserve_seconds: float) -> None:
        """context: Lambda's. reserve_seconds: what the longest single step may take."""
        self._ends_at: float = (
            time.monotonic() + context.get_remaining_time_in_millis() / 1000 - reserve_seconds
        )

    def is_over(self) -> bool:
        """Return whether the time has passed."""
        return time.monotonic() >= self._ends_at


@dataclass(frozen=True, slots=True)
class SourceQueue:
    """The queue that messages come from, in which they can wait.

    SQS counts how often a message came, and gives it up after ten times, whatever the reason was. So a
    message that only waits is sent anew before that, with the number of times that it had come. Its two weeks
    in the queue begin anew, too. If the process dies before it deletes the old message, there are two, which
    does no harm because consumers are idempotent. See ARCHITECTURE.md.
    """

    sqs: Callable[[], Any]
    url: str
    # Returns whether an exception says that a store is away, so that the message is not at fault
    is_away: Callable[[Exception], bool]

    def put_back(self, record: Record, seconds: int) -> bool:
        """Make a message wait; returns False if it was sent anew, so that this one is done.

        Raises what SQS raises.
        """
        if _sqs_count(record) < RECEIVES_MAX:
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
    again: dict[str, str] = field(default_factory=dict)  # id of a message that comes again -> why
    # Id of a message that waits -> its record, and how many seconds
    waiting: dict[str, tuple[Record, int]] = field(default_factory=dict)


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
        """Call `handle` with each message's JSON body; returns the batch's partial failures.

        - Poison is sent to the failure queue with its reason, and is done.
        - If a store is away, the message waits: ten seconds, then twice as long each time, up to a quarter of
          an hour.
        - When is_over says that the function ends soon, the messages that are left come again at once.
        - After any other exception, also one of the failure queue, the message comes again. After too many
          attempts (template.yaml) SQS itself moves it to the failure queue.
        - On a redrive whatever fails is returned with its reason, and stays in the failure queue.
        """
        is_redrive = bool(event.get("streakline_redrive"))
        batch = _Batch(now, is_redrive, None if is_redrive else self.source)
        for index, record in enumerate(event["Records"]):
            if batch.source and index and is_over():
                batch.waiting[record["messageId"]] = record, 0
                continue
            try:
                self._attempt(record, handle, batch)
            except Exception as error:  # noqa: BLE001 (_note_failure logs it)
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
        """Decide whether a message that failed waits, comes again, or is given up."""
        source = batch.source
        message_id, reason = record["messageId"], f"{type(error).__name__}: {error}"
        if source and isinstance(error, TimeIsUp):
            batch.waiting[message_id] = record, 0
        elif source and source.is_away(error) and receive_count(record) < RECEIVES_IN_ALL:
            fields = {"message_id": message_id, "reason": error_summary(error)}
            self.logger.warning("waits for a store", extra=fields)
            batch.waiting[message_id] = record, wait_seconds(receive_count(record))
        elif source and source.is_away(error) and self._give_up(record, reason, batch.now):
            self.logger.error("waited for two weeks", extra={"message_id": message_id})
        else:
            self.logger.error("to come again", extra={"message_id": message_id}, exc_info=error)
            batch.again[message_id] = reason

    def _give_up(self, record: Record, reason: str, now: datetime) -> bool:
        """Send a message that has waited for too long to the failure queue; returns False if SQS is away."""
        try:
            self.failures.keep(self.name, [(record["body"], f"waited for two weeks: {reason}")], now)
        except Unavailable:
            return False
        return True

    def _put_back(self, source: SourceQueue, batch: _Batch) -> None:
        for message_id, (record, seconds) in batch.waiting.items():
            try:
                comes_again = source.put_back(record, seconds)
            except Unavailable:
                self.logger.exception("waits as long as its queue says", extra={"message_id": message_id})
                comes_again = True
            if comes_again:
                batch.again[message_id] = ""


def wait_seconds(times: int) -> int:
    """Return how long a message waits that has come so many times: 10 seconds, 20, 40 ... 900."""
    return int(min(WAIT_SECONDS_MAX, WAIT_SECONDS_MIN * 2 ** min(times - 1, 16)))


def receive_count(record: Record) -> int:
    """Return how often a message has come, this time and those before it was sent anew included."""
    text = record.get("messageAttributes", {}).get(RECEIVED, {}).get("stringValue", "0")
    before = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    return before + _sqs_count(record)


def _sqs_count(record: Record) -> int:
    return int(record.get("attributes", {}).get("ApproximateReceiveCount", 1))


def _handle(body: str, handle: Callable[[Any], object]) -> str | None:
    """Handle a message; returns the reason if it is poison, else None. Raises what else `handle` raises."""
    try:
        message = read_json(body)
    except NoJson as error:
        return f"the message is not JSON: {error}"
    try:
        handle(message)
    except PoisonMessage as reason:
        return str(reason)
    return None
