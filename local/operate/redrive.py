"""`streakline queue`: sends messages of the failure queues to their consumers again, or gives them up.

Repair the cause first, the code or the item in its table: the item is sent in its present state. A message
that succeeds leaves its queue. One that fails again stays, and stops no other. An operator gives up a message
that can never succeed: it leaves its queue for the payload bucket, with the operator's reason.

The file first says which consumers there are, then how their waiting messages are read, sent again, and given
up. Each command stands below what it needs.
"""

import base64
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

import click
from botocore.exceptions import ClientError

from adapters.platform.objects import S3Objects
from local.aws_errors import AWS_ERRORS, explain_error
from local.cloud.streams import Record, iterator_at, read_records, sequence_of
from local.command import Reader, command, option, show
from local.operate.functions import invoke, name_of_spelling
from local.stack import Stack

RECEIVE_MAX = 10  # messages at once
HIDDEN_SECONDS = 120  # from other readers
# On AWS a read without a wait asks only some of SQS's servers, and may find nothing. The emulator has one.
AWS_WAIT_SECONDS = 2
# Why a message is in a failure queue, if SQS has moved it there, and why a message cannot be sent again.
GIVEN_UP = "given up after all attempts: the function's log says why"
GONE = "the records are no longer in the stream: docs/runbook.md says what to do"
# Where messages are kept that an operator gives up. The bucket's lifecycle deletes them after 30 days.
DISCARDED = "failures/discarded/"
SHIPMENTS = "ShipmentFailures"  # messages of a partner, whom no function of ours serves
# A page of a shard may be empty although records follow. After so many empty pages in a row none does.
EMPTY_PAGES_MAX = 10
GONE_CODES = frozenset({"TrimmedDataAccessException", "ResourceNotFoundException"})


class Source(Enum):
    """Where a consumer gets its records from, which decides how a message is turned into a record again."""

    TABLE = auto()  # a table's stream: the record gets the item as it is now
    CHANGES = auto()  # a table's stream, whose changes go to the other region: the record as it was
    KINESIS = auto()
    QUEUE = auto()


@dataclass(frozen=True, slots=True)
class Consumer:
    """A function whose failed records wait in a failure queue."""

    function: str  # how the output begins that names the function
    queue: str  # how the output begins that names the failure queue
    source: Source

    @property
    def queue_name(self) -> str:
        """The failure queue as people and the runbook name it."""
        return f"{self.queue}Failures"

    @property
    def queue_output(self) -> str:
        """The stack's output with the failure queue's URL."""
        return f"{self.queue}FailuresUrl"


CONSUMERS = {
    "engagement": Consumer("Engagement", "Engagement", Source.TABLE),
    "fulfilment": Consumer("Fulfilment", "Fulfilment", Source.TABLE),
    "outgoing": Consumer("Notification", "Notification", Source.TABLE),
    "deliveries": Consumer("WebhookDelivery", "Delivery", Source.QUEUE),
    "events-stream": Consumer("EventsStream", "EventsStream", Source.KINESIS),
    "publisher": Consumer("Publisher", "Publisher", Source.TABLE),
    "lead-events": Consumer("LeadEvents", "LeadEvents", Source.TABLE),
    "leads": Consumer("Leads", "LeadIngestion", Source.QUEUE),
    "memory": Consumer("Memory", "Memory", Source.QUEUE),
    "features": Consumer("Features", "Feature", Source.QUEUE),
    "answers": Consumer("Answers", "Answers", Source.TABLE),
    "notify": Consumer("Notify", "Notify", Source.TABLE),
    "fan-out": Consumer("FanOut", "Announcement", Source.QUEUE),
    "sender": Consumer("Sender", "Sender", Source.CHANGES),
    "receiver": Consumer("Receiver", "Receiver", Source.QUEUE),
}


def consumer_of(name: str) -> str:
    """Return the consumer that the name of its failure queue, or its own name, means.

    Raises RuntimeError for any other name, and lists the names that there are.
    """
    spellings = {SHIPMENTS: SHIPMENTS}
    for consumer_name, consumer in CONSUMERS.items():
        spellings |= dict.fromkeys((consumer.queue_name, consumer_name, consumer.queue), consumer.queue_name)
    queue_name = name_of_spelling(name, spellings, "failure queue")
    if queue_name == SHIPMENTS:
        raise RuntimeError(f"{SHIPMENTS} holds a partner's messages: docs/runbook.md says what to do")
    return next(known for known, consumer in CONSUMERS.items() if consumer.queue_name == queue_name)


def deployed_consumers(stack: Stack, consumer: str | None) -> list[str]:
    """Return the names of the consumers whose failure queues the stack has.

    consumer: this one alone; None: all. Raises RuntimeError if the stack was deployed without that one.
    """
    if consumer is None:
        return [name for name, each in CONSUMERS.items() if each.queue_output in stack.outputs]
    if CONSUMERS[consumer].queue_output not in stack.outputs:
        raise RuntimeError(f"the stack {stack.name} was deployed without {CONSUMERS[consumer].queue_name}")
    return [consumer]


def queue_url(stack: Stack, consumer: str) -> str:
    """Return the URL of a consumer's failure queue."""
    return stack.outputs[CONSUMERS[consumer].queue_output]


queue_option = option(
    "--queue",
    "consumer",
    type=Reader("queue", consumer_of),
    metavar="NAME",
    help="only this one, such as EngagementFailures",
    show_default="all",
)
id_argument = click.argument("message_id", metavar="ID")


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """A message of a failure queue."""

    consumer: str
    handle: str  # SQS's receipt
    reason: str  # why it is there
    body: dict[str, Any]  # with the record, or the batch's position in its stream
    message_id: str = ""  # as SQS names it while it waits
    text: str = ""  # the message as it is in its queue

    def view(self) -> dict[str, Any]:
        """Return what the commands print of it."""
        return {
            "id": self.message_id,
            "consumer": self.consumer,
            "queue": CONSUMERS[self.consumer].queue_name,
            "reason": self.reason,
            "record": self.body.get("record"),
        }


def waiting_messages(stack: Stack, consumer: str) -> Iterator[WaitingMessage]:
    """Yield what waits for a consumer, each message once. It is hidden from other readers for two minutes.

    If a queue is so long that messages show again meanwhile, the rest waits for the next call.
    """
    sqs, url = stack.client("sqs"), queue_url(stack, consumer)
    seen = set[str]()
    while True:
        answer = sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=RECEIVE_MAX,
            VisibilityTimeout=HIDDEN_SECONDS,
            WaitTimeSeconds=0 if stack.is_laptop else AWS_WAIT_SECONDS,
        )
        messages = [each for each in answer.get("Messages", ()) if each["MessageId"] not in seen]
        if not messages:
            return
        for message in messages:
            seen.add(message["MessageId"])
            yield waiting_message(consumer, message["ReceiptHandle"], message["Body"], message["MessageId"])


def waiting_message(consumer: str, handle: str, text: str, message_id: str = "") -> WaitingMessage:
    """Read a message of a failure queue, in one of three forms.

    Our functions write the reason and the record; Lambda writes the condition and the batch's position in its
    stream. A message that SQS has moved there is as it was sent, so its reason is GIVEN_UP.
    """
    with contextlib.suppress(ValueError):
        body = json.loads(text)
        if isinstance(body, dict) and {"reason", "record"} <= body.keys():
            return WaitingMessage(consumer, handle, body["reason"], body, message_id, text)
        if isinstance(body, dict) and "requestContext" in body:
            reason = body["requestContext"].get("condition", "unknown")
            return WaitingMessage(consumer, handle, reason, body, message_id, text)
    return WaitingMessage(consumer, handle, GIVEN_UP, {"record": text}, message_id, text)


def _show_again(stack: Stack, message: WaitingMessage) -> None:
    """End the time for which a message is hidden from other readers."""
    sqs = stack.client("sqs")
    with contextlib.suppress(sqs.exceptions.MessageNotInflight):  # it shows again already
        sqs.change_message_visibility(
            QueueUrl=queue_url(stack, message.consumer), ReceiptHandle=message.handle, VisibilityTimeout=0
        )


def _delete(stack: Stack, message: WaitingMessage) -> None:
    url = queue_url(stack, message.consumer)
    stack.client("sqs").delete_message(QueueUrl=url, ReceiptHandle=message.handle)


@command("queue list", "queue list --queue EngagementFailures")
@queue_option
def list_command(stack: Stack, consumer: str | None) -> Any:
    """Print what waits in the failure queues, with ids and reasons."""
    return list_failures(stack, consumer)


def list_failures(stack: Stack, consumer: str | None = None) -> list[dict[str, Any]]:
    """Return what waits in the failure queues. consumer: in the queue of this one; None: in all."""
    views = []
    for name in deployed_consumers(stack, consumer):
        # All are received before any is shown again: such a message would be received a second time.
        for message in list(waiting_messages(stack, name)):
            _show_again(stack, message)
            views.append(message.view())
    return views


@command("queue redrive", "queue redrive --queue EngagementFailures")
@queue_option
def redrive_command(stack: Stack, consumer: str | None, as_json: bool) -> None:
    """Send what waits to its consumer again. What fails again stays, and the command fails."""
    outcome = redrive(stack, consumer)
    show(outcome, as_json=as_json)
    if outcome["left"]:
        raise RuntimeError(
            f"{len(outcome['left'])} left, each with why under `again`: mend that and redrive, "
            "or give one up: `streakline queue discard ID --reason TEXT`"
        )


def redrive(stack: Stack, consumer: str | None = None) -> dict[str, Any]:
    """Send all messages again. consumer: those of this one; None: of all that are deployed.

    Returns how many messages were `redriven`, and those that are `left`: `reason` says why they came into the
    queue, `again` why this attempt failed.
    """
    redriven, left = 0, []
    for name in deployed_consumers(stack, consumer):
        for message in list(waiting_messages(stack, name)):  # all first, as in list_failures
            if failure := _send(stack, message):
                _show_again(stack, message)
                left.append(message.view() | {"again": failure})
            else:
                _delete(stack, message)
                redriven += 1
    return {"redriven": redriven, "left": left}


def _send(stack: Stack, message: WaitingMessage) -> str:
    """Invoke the consumer with a message's records; returns why that failed, also errors of AWS, or ""."""
    try:
        records = records_of_message(stack, message)
        if not records:
            return GONE
        function = stack.outputs[f"{CONSUMERS[message.consumer].function}FunctionName"]
        return invoke(stack, function, {"Records": records, "streakline_redrive": True}).failure()
    except AWS_ERRORS as error:
        return explain_error(error)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return f"the message cannot be read: {error!r}"


def records_of_message(stack: Stack, message: WaitingMessage) -> list[dict[str, Any]]:
    """Return the records that a message stands for, in the form that its consumer's source has.

    Raises KeyError, TypeError, ValueError or IndexError for a message that cannot be read.
    """
    for kind in ("DDBStreamBatchInfo", "KinesisBatchInfo"):
        if kind in message.body:
            return records_of_batch(stack, message.body[kind])
    record = message.body["record"]
    if isinstance(record, dict) and "stored" in record:  # it was too large for the queue
        bucket, _, key = record["stored"].removeprefix("s3://").partition("/")
        record = json.loads(stack.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())
    match CONSUMERS[message.consumer].source:
        case Source.TABLE:
            return [_with_present_item(stack, record)]
        case Source.CHANGES:
            return [record]
        case Source.KINESIS:
            return [_kinesis_record(record)]
        case Source.QUEUE:
            body = record if isinstance(record, str) else json.dumps(record)
            return [{"messageId": "redrive", "body": body}]


def _with_present_item(stack: Stack, record: dict[str, Any]) -> dict[str, Any]:
    """Return a table's change with the item as it is now. One that has expired stays as it was."""
    change = record["dynamodb"]
    keys, table = change["Keys"], record["eventSourceARN"].split("/")[1]
    answer = stack.client("dynamodb").get_item(TableName=table, Key=keys, ConsistentRead=True)
    return {**record, "dynamodb": {**change, "NewImage": answer["Item"]}} if "Item" in answer else record


def _kinesis_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of Kinesis from what the function kept of it: its data, or one event of it."""
    data = record.get("data")
    if "event" in record:
        data = base64.b64encode(json.dumps(record["event"]).encode()).decode()
    return {"kinesis": {"data": data, "sequenceNumber": record["sequence_number"], "partitionKey": "redrive"}}


def records_of_batch(stack: Stack, batch: dict[str, Any]) -> list[Record]:
    """Return a discarded batch's records as the function gets them: none if the stream no longer has them.

    batch: its position in the stream, which is all that a failure queue holds. Raises ClientError for any
    other error than records that are gone.
    """
    source, last = batch["streamArn"], int(batch["endSequenceNumber"])
    batch_records, empty_pages = list[Record](), 0
    try:
        iterator: str | None = iterator_at(stack, source, batch["shardId"], batch["startSequenceNumber"])
        while iterator and empty_pages < EMPTY_PAGES_MAX:
            records, iterator = read_records(stack, source, iterator)
            batch_records += [record for record in records if int(sequence_of(record)) <= last]
            if records and int(sequence_of(records[-1])) >= last:
                break
            empty_pages = 0 if records else empty_pages + 1
    except ClientError as error:
        if error.response["Error"]["Code"] in GONE_CODES:
            return []
        raise
    return batch_records


@command("queue discard 1d2c --reason 'a test of the vendor'")
@id_argument
@option("--reason", required=True, metavar="TEXT", help="why")
@queue_option
def discard_command(stack: Stack, message_id: str, reason: str, consumer: str | None) -> Any:
    """Give one message up; it is kept for 30 days."""
    if not reason.strip():
        raise RuntimeError("--reason: why is it given up?")
    message, operator = _message_of_id(stack, message_id, consumer), ""
    with contextlib.suppress(*AWS_ERRORS):  # AWS may not say who runs this
        operator = str(stack.client("sts").get_caller_identity()["Arn"])
    discarded_message = message.view() | {
        "discarded_at": datetime.now(UTC).isoformat(),
        "discarded_by": operator,
        "discard_reason": reason.strip(),
        "message": message.text,
    }
    try:
        stack.client("s3").put_object(
            Bucket=stack.outputs["PayloadBucketName"],
            Key=f"{DISCARDED}{message_id}.json",
            Body=json.dumps(discarded_message).encode(),
            ContentType="application/json",
        )
    except AWS_ERRORS:
        _show_again(stack, message)
        raise
    _delete(stack, message)
    return discarded_message


def _message_of_id(stack: Stack, message_id: str, consumer: str | None) -> WaitingMessage:
    """Return a waiting message, which stays hidden; all others are shown again."""
    for name in deployed_consumers(stack, consumer):
        wanted = None
        for message in list(waiting_messages(stack, name)):
            if message.message_id == message_id:
                wanted = message
            else:
                _show_again(stack, message)
        if wanted:
            return wanted
    raise RuntimeError(
        f"no message {message_id} is seen in {'this queue' if consumer else 'a failure queue'}: "
        "`streakline queue list` shows the ids; what somebody has just read is hidden for two minutes"
    )


@command("queue discarded")
@queue_option
def discarded_command(stack: Stack, consumer: str | None) -> Any:
    """Print what was given up in the last 30 days, by whom and why."""
    return _discarded_messages(stack, consumer)


@command("queue take-back 1d2c")
@id_argument
@queue_option
def take_back_command(stack: Stack, message_id: str, consumer: str | None) -> Any:
    """Put what was given up into its queue again, where it gets another id."""
    messages = _discarded_messages(stack, consumer)
    wanted = next((message for message in messages if message["id"] == message_id), None)
    if wanted is None:
        of_queue = "of this queue " if consumer else ""
        raise RuntimeError(
            f"no message {message_id} {of_queue}was given up in the last 30 days: "
            "`streakline queue discarded`"
        )
    url = queue_url(stack, wanted["consumer"])
    stack.client("sqs").send_message(QueueUrl=url, MessageBody=wanted["message"])
    bucket = stack.outputs["PayloadBucketName"]
    stack.client("s3").delete_object(Bucket=bucket, Key=f"{DISCARDED}{message_id}.json")
    return wanted


def _discarded_messages(stack: Stack, consumer: str | None) -> list[dict[str, Any]]:
    """Return what was given up in the last 30 days, the oldest first. consumer: of this one; None: of all."""
    s3, bucket = stack.client("s3"), stack.outputs["PayloadBucketName"]
    messages = [
        json.loads(s3.get_object(Bucket=bucket, Key=stored.key)["Body"].read())
        for stored in S3Objects(s3, bucket).list(DISCARDED)
    ]
    return sorted(
        (message for message in messages if consumer in (None, message["consumer"])),
        key=lambda message: str(message["discarded_at"]),
    )
