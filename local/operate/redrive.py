"""`streakline queue`: sends messages of the failure queues to their consumers again, or gives them up.

Repair the cause first, the code or the item in its table: the item is sent in its present state. A message
that succeeds leaves its queue. One that fails again stays, and stops no other. An operator gives up a message
that can never succeed: it leaves its queue for the payload bucket, with the operator's reason.
"""

import base64
import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click
from botocore.exceptions import ClientError

from local.aws_errors import AWS_ERRORS, explain_error
from local.cloud.streams import Record, iterator_at, read_records, sequence_of
from local.command import Reader, command, option, show
from local.operate.functions import invoke, meant
from local.stack import Stack

RECEIVE_MAX = 10  # messages at once
HIDDEN_SECONDS = 120  # from other readers
# On AWS a read without a wait asks only some of SQS's servers, and may find nothing. The emulator has one.
AWS_WAIT_SECONDS = 2
# By consumer: the names of its function and of its failure queue, as the template's outputs begin.
CONSUMERS = {
    "engagement": ("Engagement", "Engagement"),
    "fulfilment": ("Fulfilment", "Fulfilment"),
    "outgoing": ("Notification", "Notification"),
    "deliveries": ("WebhookDelivery", "Delivery"),
    "events-stream": ("EventsStream", "EventsStream"),
    "publisher": ("Publisher", "Publisher"),
    "lead-events": ("LeadEvents", "LeadEvents"),
    "leads": ("Leads", "LeadIngestion"),
    "memory": ("Memory", "Memory"),
    "features": ("Features", "Feature"),
    "answers": ("Answers", "Answers"),
    "notify": ("Notify", "Notify"),
    "fan-out": ("FanOut", "Announcement"),
    "sender": ("Sender", "Sender"),
    "receiver": ("Receiver", "Receiver"),
}
# Why a message is in a failure queue, if SQS has moved it there, and why a message cannot be sent again.
GIVEN_UP = "given up after all attempts: the function's log says why"
GONE = "the records are no longer in the stream: docs/runbook.md says what to do"
# Where messages are kept that an operator gives up. The bucket's lifecycle deletes them after 30 days.
DISCARDED = "failures/discarded/"
SHIPMENTS = "ShipmentFailures"  # messages of a partner, whom no function of ours serves
# These get their records from a queue, all others from a stream.
QUEUE_CONSUMERS = frozenset({"leads", "memory", "features", "fan-out", "deliveries", "receiver"})
# A page of a shard may be empty although records follow. After so many empty pages in a row none does.
EMPTY_PAGES_MAX = 10
GONE_CODES = frozenset({"TrimmedDataAccessException", "ResourceNotFoundException"})


def consumer_of(name: str) -> str:
    """Return the consumer that the name of its failure queue, or its own name, means.

    Raises RuntimeError for any other name, and lists the names that there are.
    """
    queues = {f"{queue}Failures": consumer for consumer, (_, queue) in CONSUMERS.items()}
    spellings = {queue: queue for queue in (*queues, SHIPMENTS)}
    for queue, consumer in queues.items():
        spellings |= {consumer: queue, queue.removesuffix("Failures"): queue}
    queue = meant(name, spellings, "failure queue")
    if queue == SHIPMENTS:
        raise RuntimeError(f"{SHIPMENTS} holds a partner's messages: docs/runbook.md says what to do")
    return queues[queue]


queue_option = option(
    "--queue",
    "only",
    type=Reader("queue", consumer_of),
    metavar="NAME",
    help="only this one, such as EngagementFailures",
    show_default="all",
)
id_argument = click.argument("message_id", metavar="ID")


@command("queue list", "queue list --queue EngagementFailures")
@queue_option
def list_command(stack: Stack, only: str | None) -> Any:
    """Print what waits in the failure queues, with ids and reasons."""
    return redrive(stack, only_list=True, only=only)["left"]


@command("queue redrive", "queue redrive --queue EngagementFailures")
@queue_option
def redrive_command(stack: Stack, only: str | None, as_json: bool) -> None:
    """Send what waits to its consumer again. What fails again stays, and the command fails."""
    outcome = redrive(stack, only=only)
    show(outcome, as_json=as_json)
    if outcome["left"]:
        raise RuntimeError(
            f"{len(outcome['left'])} left, each with why under `again`: mend that and redrive, "
            "or give one up: `streakline queue discard ID --reason TEXT`"
        )


@command("queue discard 1d2c --reason 'a test of the vendor'")
@id_argument
@option("--reason", required=True, metavar="TEXT", help="why")
@queue_option
def discard_command(stack: Stack, message_id: str, reason: str, only: str | None) -> Any:
    """Give one message up; it is kept for 30 days."""
    if not reason.strip():
        raise RuntimeError("--reason: why is it given up?")
    message, operator = _message_of_id(stack, message_id, only), ""
    with contextlib.suppress(*AWS_ERRORS):  # AWS may not say who runs this
        operator = str(stack.client("sts").get_caller_identity()["Arn"])
    discarded_message = _message_view(message, "") | {
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
        _unhide(stack, [message])
        raise
    url = stack.outputs[_queue(message.consumer)]
    stack.client("sqs").delete_message(QueueUrl=url, ReceiptHandle=message.handle)
    return discarded_message


@command("queue discarded")
@queue_option
def discarded_command(stack: Stack, only: str | None) -> Any:
    """Print what was given up in the last 30 days, by whom and why."""
    return _discarded(stack, only)


@command("queue take-back 1d2c")
@id_argument
@queue_option
def take_back_command(stack: Stack, message_id: str, only: str | None) -> Any:
    """Put what was given up into its queue again, where it gets another id."""
    messages = _discarded(stack, only)
    wanted = next((message for message in messages if message["id"] == message_id), None)
    if wanted is None:
        raise RuntimeError(
            f"no message {message_id} {'of this queue ' if only else ''}was given up in the last 30 days: "
            "`streakline queue discarded`"
        )
    url = stack.outputs[_queue(wanted["consumer"])]
    stack.client("sqs").send_message(QueueUrl=url, MessageBody=wanted["message"])
    bucket = stack.outputs["PayloadBucketName"]
    stack.client("s3").delete_object(Bucket=bucket, Key=f"{DISCARDED}{message_id}.json")
    return wanted


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """A message of a failure queue."""

    consumer: str
    handle: str  # SQS's receipt
    reason: str  # why it is there
    body: dict[str, Any]  # with the record, or the batch's position in its stream
    message_id: str = ""  # as SQS names it while it waits
    text: str = ""  # the message as it is in its queue


def waiting_messages(stack: Stack, consumer: str) -> Iterator[WaitingMessage]:
    """Yield what waits for a consumer, each message once. It is hidden from other readers for two minutes.

    If a queue is so long that messages show again meanwhile, the rest waits for the next call.
    """
    sqs, url = stack.client("sqs"), stack.outputs[_queue(consumer)]
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


def _queue(consumer: str) -> str:
    _, queue = CONSUMERS[consumer]
    return f"{queue}FailuresUrl"


def _function(consumer: str) -> str:
    function, _ = CONSUMERS[consumer]
    return f"{function}FunctionName"


def redrive(stack: Stack, *, only_list: bool = False, only: str | None = None) -> dict[str, Any]:
    """Send all messages again, or only list them. only: those of one consumer.

    Returns how many messages were redriven, and those that are left: `reason` says why they came into the
    queue, `again` why this attempt failed. Consumers that the stack was deployed without are left out.
    """
    sqs, redriven, left = stack.client("sqs"), 0, []
    for consumer in _deployed(stack, only):
        # All are received before any is shown again: such a message would be received a second time.
        for message in list(waiting_messages(stack, consumer)):
            failure = "" if only_list else _send(stack, message)
            if failure is None:
                sqs.delete_message(QueueUrl=stack.outputs[_queue(consumer)], ReceiptHandle=message.handle)
                redriven += 1
            else:
                _unhide(stack, [message])
                left.append(_message_view(message, failure))
    return {"redriven": redriven, "left": left}


def _deployed(stack: Stack, only: str | None) -> list[str]:
    """Return the consumers whose failure queues the stack has. only: this one, or RuntimeError; None: all."""
    if only and _queue(only) not in stack.outputs:
        raise RuntimeError(f"the stack {stack.name} was deployed without {_queue(only).removesuffix('Url')}")
    return [consumer for consumer in ([only] if only else CONSUMERS) if _queue(consumer) in stack.outputs]


def _unhide(stack: Stack, messages: Sequence[WaitingMessage]) -> None:
    sqs = stack.client("sqs")
    for message in messages:
        with contextlib.suppress(sqs.exceptions.MessageNotInflight):  # it shows again already
            sqs.change_message_visibility(
                QueueUrl=stack.outputs[_queue(message.consumer)],
                ReceiptHandle=message.handle,
                VisibilityTimeout=0,
            )


def _message_of_id(stack: Stack, message_id: str, only: str | None) -> WaitingMessage:
    """Return a waiting message, which stays hidden; all others are shown again."""
    for consumer in _deployed(stack, only):
        messages = list(waiting_messages(stack, consumer))
        wanted = next((message for message in messages if message.message_id == message_id), None)
        _unhide(stack, [message for message in messages if message is not wanted])
        if wanted:
            return wanted
    raise RuntimeError(
        f"no message {message_id} is seen in {'this queue' if only else 'a failure queue'}: "
        "`streakline queue list` shows the ids; what somebody has just read is hidden for two minutes"
    )


def _discarded(stack: Stack, only: str | None) -> list[dict[str, Any]]:
    """Return what was given up in the last 30 days, the oldest first. only: one consumer's."""
    s3, bucket = stack.client("s3"), stack.outputs["PayloadBucketName"]
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=DISCARDED)
    keys = [stored["Key"] for page in pages for stored in page.get("Contents", ())]
    messages = [json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read()) for key in keys]
    return sorted(
        (message for message in messages if not only or message["consumer"] == only),
        key=lambda message: str(message["discarded_at"]),
    )


def _message_view(message: WaitingMessage, failure: str) -> dict[str, Any]:
    view = {
        "id": message.message_id,
        "consumer": message.consumer,
        "queue": _queue(message.consumer).removesuffix("Url"),
        "reason": message.reason,
        "record": message.body.get("record"),
    }
    return view | ({"again": failure} if failure else {})


def _send(stack: Stack, message: WaitingMessage) -> str | None:
    """Invoke the consumer with a message's records; returns why that failed, also errors of AWS, or None."""
    try:
        records = _records(stack, message)
        if not records:
            return GONE
        function = stack.outputs[_function(message.consumer)]
        reply = invoke(stack, function, {"Records": records, "streakline_redrive": True})
        return reply.failure()
    except AWS_ERRORS as error:
        return explain_error(error)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return f"the message cannot be read: {error!r}"


def _records(stack: Stack, message: WaitingMessage) -> list[dict[str, Any]]:
    """Return the records that a message stands for, in the form that its consumer's event source has.

    A change of a table carries the item as it is now. Raises KeyError, TypeError, ValueError or IndexError
    for a message that cannot be read.
    """
    for kind in ("DDBStreamBatchInfo", "KinesisBatchInfo"):
        if kind in message.body:
            return records_of(stack, message.body[kind])
    record = message.body["record"]
    if isinstance(record, dict) and "stored" in record:
        bucket, _, key = record["stored"].removeprefix("s3://").partition("/")
        record = json.loads(stack.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())
    if message.consumer in QUEUE_CONSUMERS:
        return [{"messageId": "redrive", "body": record if isinstance(record, str) else json.dumps(record)}]
    if message.consumer == "sender":
        return [record]
    if message.consumer != "events-stream":
        keys, table = record["dynamodb"]["Keys"], record["eventSourceARN"].split("/")[1]
        answer = stack.client("dynamodb").get_item(TableName=table, Key=keys, ConsistentRead=True)
        # An item that has expired has no present state, so its record stays as it was.
        image = {"NewImage": answer["Item"]} if "Item" in answer else {}
        return [{**record, "dynamodb": {**record["dynamodb"], **image}}]
    data = record.get("data")
    if "event" in record:
        data = base64.b64encode(json.dumps(record["event"]).encode()).decode()
    return [
        {"kinesis": {"data": data, "sequenceNumber": record["sequence_number"], "partitionKey": "redrive"}}
    ]


def records_of(stack: Stack, batch: dict[str, Any]) -> list[Record]:
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
