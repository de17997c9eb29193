"""Queues of SQS: how a batch is served, what a failure queue keeps, and how many messages wait.

Each message of a batch is finished, delivered again, made to wait, or sent to a failure queue, where it waits
until an operator redrives it.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from adapters.logs import Logger, error_summary
from adapters.platform.aws import Unavailable
from rules.days import stamp
from rules.json_values import NoJson, read_json

Record = Mapping[str, Any]
WAIT_SECONDS_MIN, WAIT_SECONDS_MAX = 10, 900  # SQS delays a message by no more than 900
# After so many deliveries a waiting message is sent anew, because its queue gives it up after ten.
RECEIVES_MAX = 8
ALL_RECEIVES_MAX = 1_400  # after so many deliveries, in two weeks, a waiting message is given up
RECEIVED = "received"  # an attribute of a message that was sent anew: how often it was delivered before
# SQS takes 256 KiB in every region. Some bytes are for attributes, which it counts, too.
MESSAGE_BYTES_MAX = 250_000
REASON_MAX = 2_000  # characters
WAITING, IN_FLIGHT = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
DELAYED = "ApproximateNumberOfMessagesDelayed"
FAILURES = "failures"  # the end of the name of a queue whose messages wait for an operator
AT_ONCE_MAX = 8  # queues that are asked at the same time


def partial_failures(reasons: Mapping[str, str]) -> dict[str, Any]:
    """Return a handler's answer. reasons: by identifier, why a record must be delivered again, or "".

    Only a redrive gives reasons. It shows them to the operator who started it.
    """
    failures = []
    for identifier, reason in reasons.items():
        failures.append({"itemIdentifier": identifier} | ({"reason": reason} if reason else {}))
    return {"batchItemFailures": failures}


class LargeRecords:
    """A bucket for records that are too large for a message. The message names their URL instead."""

    def __init__(self, s3: Callable[[], Any], bucket: str) -> None:
        """s3: returns the client. Most processes never need it."""
        self._s3, self._bucket = s3, bucket

    def store(self, consumer: str, record: Any) -> dict[str, str]:
        """Store a record; returns {"stored": URL}. A repeated attempt writes the same key."""
        data = json.dumps(record).encode()
        key = f"failures/{consumer}/{hashlib.sha256(data).hexdigest()}.json"
        self._s3().put_object(Bucket=self._bucket, Key=key, Body=data, ContentType="application/json")
        return {"stored": f"s3://{self._bucket}/{key}"}


class FailureQueue:
    """One consumer's failure queue."""

    def __init__(self, sqs: Callable[[], Any], url: str, large: LargeRecords | None = None) -> None:
        """sqs: returns the client. large: where large records are stored; None: they are sent as they are."""
        self._sqs, self._url, self._large = sqs, url, large

    def keep(self, consumer: str, failures: Sequence[tuple[Any, str]], now: datetime) -> None:
        """Send (record, reason) pairs to the queue. Raises the errors of SQS and S3; repeat the batch then.

        It makes one call for each message, because a batch call can fail for some of its messages, and poison
        is rare. If a record is too large for a message, a smaller one that leads to its content is sent.
        """
        for record, reason in failures:
            fields = {"consumer": consumer, "reason": reason[:REASON_MAX], "failed_at": stamp(now)}
            text = json.dumps({**fields, "record": record})
            if len(text) > MESSAGE_BYTES_MAX:
                text = json.dumps({**fields, "record": self._smaller(consumer, record)})
            self._sqs().send_message(QueueUrl=self._url, MessageBody=text)

    def _smaller(self, consumer: str, record: Any) -> Any:
        """Return a smaller record that leads to the content of this one. A record of a table's stream goes
        without its images: a redrive reads the item in the table. Any other record is stored in the bucket.
        """
        if isinstance(record, Mapping) and "dynamodb" in record:
            change = record["dynamodb"].items()
            without_images = {name: value for name, value in change if not name.endswith("Image")}
            return {**record, "dynamodb": without_images}
        return self._large.store(consumer, record) if self._large else record


class PoisonMessage(ValueError):
    """A message that no attempt can ever process. The text says why."""


class TimeIsUp(Exception):
    """The function ends soon. The message is delivered again at once; its handler continues where it was."""


class Deadline:
    """The time after which a function begins nothing more."""

    def __init__(self, context: Any, reserve_seconds: float) -> None:
        """context: Lambda's. reserve_seconds: how long the longest single step may take."""
        self._ends_at: float = (
            time.monotonic() + context.get_remaining_time_in_millis() / 1000 - reserve_seconds
        )

    def is_over(self) -> bool:
        """Return whether the time has passed."""
        return time.monotonic() >= self._ends_at


@dataclass(frozen=True, slots=True)
class SourceQueue:
    """The queue that messages come from, in which they can wait.

    SQS counts how often it has delivered a message, and gives it up after ten times, whatever the reason was.
    So a message that only waits is sent anew before that, with its number of deliveries. It may then stay in
    the queue for two more weeks. If the process dies before it deletes the old message, there are two. That
    does no harm, because consumers are idempotent. See ARCHITECTURE.md.
    """

    sqs: Callable[[], Any]  # returns the client
    url: str
    # Returns whether an exception means that a store is away, so that the message is not at fault
    is_away: Callable[[Exception], bool]

    def put_back(self, record: Record, seconds: int) -> bool:
        """Make a message wait. Returns whether SQS must deliver it again; False if it was sent anew.

        Raises the errors of SQS.
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
    """The results of a batch's messages. A message that is in none of the dicts is finished."""

    now: datetime
    source: SourceQueue | None  # the queue in which messages may wait
    again: dict[str, str] = field(default_factory=dict)  # by id, why SQS must deliver a message again
    waiting: dict[str, tuple[Record, int]] = field(default_factory=dict)  # by id, the record and the seconds


@dataclass(frozen=True, slots=True)
class Consumer:
    """Serves batches of one queue, or of several."""

    name: str  # its name in failure queues
    failures: FailureQueue
    logger: Logger
    source: SourceQueue | None = None  # the queue in which messages wait; None if they never do

    def serve(
        self,
        event: Mapping[str, Any],
        handle: Callable[[Any], object],
        now: datetime,
        is_over: Callable[[], bool] = lambda: False,
    ) -> dict[str, Any]:
        """Call `handle` with each message's JSON body; returns the batch's partial failures.

        - Poison is sent to the failure queue with its reason, and is finished.
        - If a store is away, the message waits: ten seconds, then twice as long each time, up to a quarter of
          an hour.
        - If is_over says that the function ends soon, SQS delivers the other messages again at once.
        - After any other exception, also one of the failure queue, SQS delivers the message again. After too
          many attempts (template.yaml) SQS itself moves it to the failure queue.
        - On a redrive each message that fails is returned with its reason, and stays in the failure queue.
        """
        is_redrive = bool(event.get("streakline_redrive"))
        batch = _Batch(now, None if is_redrive else self.source)
        for index, record in enumerate(event["Records"]):
            if batch.source and index and is_over():
                batch.waiting[record["messageId"]] = record, 0
                continue
            try:
                reason = _poison_reason(record["body"], handle)
                if reason is not None and is_redrive:
                    batch.again[record["messageId"]] = reason
                elif reason is not None:
                    self.failures.keep(self.name, [(record["body"], reason)], now)
            except Exception as error:  # noqa: BLE001 (_note_failure logs it)
                self._note_failure(record, error, batch)
        if batch.source:
            self._put_back(batch.source, batch)
        counts = {"messages": len(event["Records"]), "again": len(batch.again)}
        self.logger.info("batch", extra=counts)
        return partial_failures(batch.again if is_redrive else dict.fromkeys(batch.again, ""))

    def _note_failure(self, record: Record, error: Exception, batch: _Batch) -> None:
        """Decide whether a message that failed waits, is delivered again, or is given up."""
        source = batch.source
        message_id, reason = record["messageId"], f"{type(error).__name__}: {error}"
        if source and isinstance(error, TimeIsUp):
            batch.waiting[message_id] = record, 0
        elif source and source.is_away(error) and receive_count(record) < ALL_RECEIVES_MAX:
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
                is_delivered_again = source.put_back(record, seconds)
            except Unavailable:
                self.logger.exception("waits as long as its queue says", extra={"message_id": message_id})
                is_delivered_again = True
            if is_delivered_again:
                batch.again[message_id] = ""


def wait_seconds(times: int) -> int:
    """Return how long a message waits after so many deliveries: 10 seconds, 20, 40 ... 900."""
    return int(min(WAIT_SECONDS_MAX, WAIT_SECONDS_MIN * 2 ** min(times - 1, 16)))


def receive_count(record: Record) -> int:
    """Return how often a message was delivered, with this time, and with those before it was sent anew."""
    text = record.get("messageAttributes", {}).get(RECEIVED, {}).get("stringValue", "0")
    before = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    return before + _sqs_count(record)


def _sqs_count(record: Record) -> int:
    return int(record.get("attributes", {}).get("ApproximateReceiveCount", 1))


def _poison_reason(body: str, handle: Callable[[Any], object]) -> str | None:
    """Handle a message; returns why it is poison, None if it is not. Raises what else `handle` raises."""
    try:
        message = read_json(body)
    except NoJson as error:
        return f"the message is not JSON: {error}"
    try:
        handle(message)
    except PoisonMessage as reason:
        return str(reason)
    return None


class QueueDepths:
    """Counts the messages of queues."""

    def __init__(self, sqs: Callable[[], Any], urls: Mapping[str, str]) -> None:
        """sqs: returns the client, when it is first needed. urls: the queues' URLs by their names."""
        self._sqs, self._urls = sqs, dict(urls)

    def read(self) -> list[dict[str, Any]]:
        """Return for each queue, ordered by name: name, kind (work or failure), waiting and in_flight.

        For a queue that does not answer, both counts are null, and reason says why.
        """
        if not self._urls:
            return []
        sqs = self._sqs()
        with ThreadPoolExecutor(min(AT_ONCE_MAX, len(self._urls))) as pool:
            return list(pool.map(lambda name: self._depth(sqs, name), sorted(self._urls)))

    def _depth(self, sqs: Any, name: str) -> dict[str, Any]:
        kind = "failure" if name.lower().endswith(FAILURES) else "work"
        try:
            answer = sqs.get_queue_attributes(
                QueueUrl=self._urls[name], AttributeNames=[WAITING, IN_FLIGHT, DELAYED]
            )
            counts = {key: int(value) for key, value in answer["Attributes"].items()}
            waiting = counts[WAITING] + counts.get(DELAYED, 0)
            return {"name": name, "kind": kind, "waiting": waiting, "in_flight": counts[IN_FLIGHT]}
        except Exception as error:  # noqa: BLE001 (one queue's trouble hides nothing of the others)
            unknown = {"waiting": None, "in_flight": None, "reason": str(error)[:200]}
            return {"name": name, "kind": kind, **unknown}
