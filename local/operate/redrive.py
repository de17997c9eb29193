"""Sends what waits in the failure queues to its consumer again. What succeeds leaves its queue.

Repair the cause first, the code or the item in its table: the item is sent in its present state. What fails
again, for whatever reason, stays in its queue and stops nothing. What can never succeed an operator gives up,
message by message: it leaves its queue for the payload bucket, with the operator's reason.
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

from local.cloud.shards import iterator_at, read_records
from local.cloud.streams import Record, sequence_of
from local.command import command, option, show
from local.operate.functions import invoke, meant
from local.stack import AwsError, Stack, sentence

RECEIVE_MAX = 10
HIDDEN_SECONDS = 120
# SQS asks all of its servers only if a reader waits. The emulator has one.
AWS_WAIT_SECONDS = 2
# By consumer: the names of its function and of its failure queue.
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
GIVEN_UP = "given up after all attempts: the function's log says why"
GONE = "the records are no longer in the stream: docs/runbook.md says what to do"
# The bucket's lifecycle keeps them as long as all under failures/: 30 days.
DISCARDED = "failures/discarded/"
SHIPMENTS = "ShipmentFailures"  # messages of a partner, whom no function of ours serves
OF_QUEUES = frozenset({"leads", "memory", "features", "fan-out", "deliveries", "receiver"})
# A part of a shard may be empty although more follows; after so many empty ones in a row nothing does.
EMPTY_MAX = 10
GONE_CODES = frozenset({"TrimmedDataAccessException", "ResourceNotFoundException"})


queue_option = option(
    "--queue", metavar="NAME", help="only this one, such as EngagementFailures", show_default="all"
)
id_argument = click.argument("message_id", metavar="ID")


def _only(queue: str | None) -> str:
    return "" if queue is None else consumer_of(queue)


@command("queue list", "queue list --queue EngagementFailures")
@queue_option
def list_command(stack: Stack, queue: str | None) -> Any:
    """Print what waits in the failure queues, with ids and reasons."""
    return redrive(stack, only_list=True, only=_only(queue))["left"]


@command("queue redrive", "queue redrive --queue EngagementFailures")
@queue_option
def redrive_command(stack: Stack, queue: str | None, as_json: bool) -> None:
    """Send what waits to its consumer again. What fails again stays, and the command fails."""
    found = redrive(stack, only=_only(queue))
    show(found, as_json=as_json)
    if found["left"]:
        raise RuntimeError(
            f"{len(found['left'])} left, each with why under `again`: mend that and redrive, "
            "or give one up: `streakline queue discard ID --reason TEXT`"
        )


@command("queue discard 1d2c --reason 'a test of the vendor'")
@id_argument
@option("--reason", required=True, metavar="TEXT", help="why")
@queue_option
def discard_command(stack: Stack, message_id: str, reason: str, queue: str | None) -> Any:
    """Give one message up; it is kept for 30 days."""
    return discard(stack, message_id, reason, only=_only(queue))


@command("queue discarded")
@queue_option
def discarded_command(stack: Stack, queue: str | None) -> Any:
    """Print what was given up in the last 30 days, by whom and why."""
    return discarded(stack, only=_only(queue))


@command("queue take-back 1d2c")
@id_argument
@queue_option
def take_back_command(stack: Stack, message_id: str, queue: str | None) -> Any:
    """Put what was given up into its queue again."""
    return take_back(stack, message_id, only=_only(queue))


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message of a failure queue: what it holds, and why it is there.

    message_id: as SQS names it, as long as it waits. text: the message as it is in its queue.
    """

    consumer: str
    handle: str
    reason: str
    body: dict[str, Any]
    message_id: str = ""
    text: str = ""


def waiting_messages(stack: Stack, consumer: str) -> Iterator[Waiting]:
    """Yield what waits for a consumer. Each message is hidden from other readers for two minutes."""
    sqs, url = stack.client("sqs"), stack.outputs[_queue(consumer)]
    while True:
        answer = sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=RECEIVE_MAX,
            VisibilityTimeout=HIDDEN_SECONDS,
            WaitTimeSeconds=0 if stack.is_laptop else AWS_WAIT_SECONDS,
        )
        if not answer.get("Messages"):
            return
        for message in answer["Messages"]:
            yield waiting_message(consumer, message["ReceiptHandle"], message["Body"], message["MessageId"])


def waiting_message(consumer: str, handle: str, text: str, message_id: str = "") -> Waiting:
    """Read a message of a failure queue.

    If SQS itself gave the message up, it is there as it was sent, without a reason; the reason then is
    GIVEN_UP.
    """
    with contextlib.suppress(ValueError):
        body = json.loads(text)
        if isinstance(body, dict) and {"reason", "record"} <= body.keys():
            return Waiting(consumer, handle, body["reason"], body, message_id, text)
        if isinstance(body, dict) and "requestContext" in body:
            reason = body["requestContext"].get("condition", "unknown")
            return Waiting(consumer, handle, reason, body, message_id, text)
    return Waiting(consumer, handle, GIVEN_UP, {"record": text}, message_id, text)


def _queue(consumer: str) -> str:
    return f"{CONSUMERS[consumer][1]}FailuresUrl"


def consumer_of(name: str) -> str:
    """Return the consumer that a queue's name, or the consumer's own, means.

    Raises RuntimeError, with the names there are, for any other name.
    """
    queues = {f"{queue}Failures": consumer for consumer, (_, queue) in CONSUMERS.items()}
    spellings = {each: each for each in (*queues, SHIPMENTS)}
    for queue, consumer in queues.items():
        spellings |= {consumer: queue, queue.removesuffix("Failures"): queue}
    queue = meant(name, spellings, "failure queue")
    if queue == SHIPMENTS:
        raise RuntimeError(f"{SHIPMENTS} holds a partner's messages: docs/runbook.md says what to do")
    return queues[queue]


def redrive(stack: Stack, *, only_list: bool = False, only: str = "") -> dict[str, Any]:
    """Send everything again, or only list it. only: one consumer's.

    Returns how many messages were redriven, and what is left: `reason` says why it was kept first, `again`
    why this attempt failed. Consumers that the stack was deployed without are left out.
    """
    sqs, done, left = stack.client("sqs"), 0, []
    for message in (
        each for consumer in _deployed(stack, only) for each in list(waiting_messages(stack, consumer))
    ):
        again = "" if only_list else _send(stack, message)
        if again is None:
            url = stack.outputs[_queue(message.consumer)]
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message.handle)
            done += 1
            continue
        _show_again(stack, [message])
        left.append(_message_view(message, again))
    return {"redriven": done, "left": left}


def _deployed(stack: Stack, only: str) -> list[str]:
    """Return the consumers whose failure queues the stack has. only: of these, one."""
    found = [each for each in CONSUMERS if _queue(each) in stack.outputs and only in ("", each)]
    if only and not found:
        raise RuntimeError(f"the stack {stack.name} was deployed without {_queue(only).removesuffix('Url')}")
    return found


def _show_again(stack: Stack, messages: Sequence[Waiting]) -> None:
    """Let others see messages that were read and stay."""
    for each in messages:
        stack.client("sqs").change_message_visibility(
            QueueUrl=stack.outputs[_queue(each.consumer)], ReceiptHandle=each.handle, VisibilityTimeout=0
        )


def discard(stack: Stack, message_id: str, reason: str, *, only: str = "") -> dict[str, Any]:
    """Give a message up: it leaves its queue for the payload bucket, with the operator's reason.

    Returns what is kept there for 30 days, with who gave it up and when. only: one consumer's queue. Raises
    RuntimeError without a reason, or if no such message is seen.
    """
    if not reason.strip():
        raise RuntimeError("--reason: why is it given up?")
    found = _found(stack, message_id, only)
    kept = _message_view(found, "") | {
        "discarded_at": datetime.now(UTC).isoformat(),
        "discarded_by": _operator(stack),
        "discard_reason": reason.strip(),
        "message": found.text,
    }
    try:
        stack.client("s3").put_object(
            Bucket=stack.outputs["PayloadBucketName"],
            Key=_discarded_key(message_id),
            Body=json.dumps(kept).encode(),
            ContentType="application/json",
        )
    except AwsError:
        _show_again(stack, [found])
        raise
    url = stack.outputs[_queue(found.consumer)]
    stack.client("sqs").delete_message(QueueUrl=url, ReceiptHandle=found.handle)
    return kept


def _found(stack: Stack, message_id: str, only: str) -> Waiting:
    for consumer in _deployed(stack, only):
        waiting = list(waiting_messages(stack, consumer))
        found = next((each for each in waiting if each.message_id == message_id), None)
        _show_again(stack, [each for each in waiting if each is not found])
        if found:
            return found
    raise RuntimeError(
        f"no message {message_id} is seen in {'this queue' if only else 'a failure queue'}: "
        "`streakline queue list` shows the ids; what somebody has just read is hidden for two minutes"
    )


def discarded(stack: Stack, *, only: str = "") -> list[dict[str, Any]]:
    """Return what was given up in the last 30 days, the oldest first. only: one consumer's."""
    s3, bucket = stack.client("s3"), stack.outputs["PayloadBucketName"]
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=DISCARDED)
    keys = [each["Key"] for page in pages for each in page.get("Contents", ())]
    found = [json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read()) for key in keys]
    return sorted(
        (each for each in found if not only or each["consumer"] == only),
        key=lambda each: str(each["discarded_at"]),
    )


def take_back(stack: Stack, message_id: str, *, only: str = "") -> dict[str, Any]:
    """Put a message that was given up into its queue again, where it gets another id; returns what was kept.

    only: one consumer's. Raises RuntimeError if none with this id was given up in the last 30 days.
    """
    found = next((each for each in discarded(stack, only=only) if each["id"] == message_id), None)
    if found is None:
        raise RuntimeError(
            f"no message {message_id} {'of this queue ' if only else ''}was given up in the last 30 days: "
            "`streakline queue discarded`"
        )
    url = stack.outputs[_queue(found["consumer"])]
    stack.client("sqs").send_message(QueueUrl=url, MessageBody=found["message"])
    bucket = stack.outputs["PayloadBucketName"]
    stack.client("s3").delete_object(Bucket=bucket, Key=_discarded_key(message_id))
    return found


def _discarded_key(message_id: str) -> str:
    return f"{DISCARDED}{message_id}.json"


def _operator(stack: Stack) -> str:
    """Return who runs this, as AWS knows them; "" if AWS does not say."""
    try:
        return str(stack.client("sts").get_caller_identity()["Arn"])
    except AwsError:
        return ""


def _message_view(message: Waiting, again: str) -> dict[str, Any]:
    view = {
        "id": message.message_id,
        "consumer": message.consumer,
        "queue": _queue(message.consumer).removesuffix("Url"),
        "reason": message.reason,
        "record": message.body.get("record"),
    }
    return view | ({"again": again} if again else {})


def _send(stack: Stack, message: Waiting) -> str | None:
    """Invoke the consumer with a message's records; returns why it failed, or None. Raises nothing of AWS."""
    try:
        records = _records(stack, message)
        if not records:
            return GONE
        function = stack.outputs[f"{CONSUMERS[message.consumer][0]}FunctionName"]
        reply = invoke(stack, function, {"Records": records, "streakline_redrive": True})
        return reply.failure()
    except AwsError as error:
        return sentence(error)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return f"the message cannot be read: {error!r}"


def _records(stack: Stack, message: Waiting) -> list[dict[str, Any]]:
    for kind in ("DDBStreamBatchInfo", "KinesisBatchInfo"):
        if kind in message.body:
            return records_of(stack, message.body[kind])
    record = message.body["record"]
    if isinstance(record, dict) and "stored" in record:
        record = _stored(stack, record["stored"])
    if message.consumer in OF_QUEUES:
        return [{"messageId": "redrive", "body": record if isinstance(record, str) else json.dumps(record)}]
    if message.consumer == "sender":
        return [record]
    if message.consumer != "events-stream":
        keys, table = record["dynamodb"]["Keys"], record["eventSourceARN"].split("/")[1]
        now = stack.client("dynamodb").get_item(TableName=table, Key=keys, ConsistentRead=True)
        return [{**record, "dynamodb": {**record["dynamodb"], **_image(now)}}]
    data = record.get("data")
    if "event" in record:
        data = base64.b64encode(json.dumps(record["event"]).encode()).decode()
    return [
        {"kinesis": {"data": data, "sequenceNumber": record["sequence_number"], "partitionKey": "redrive"}}
    ]


def records_of(stack: Stack, batch: dict[str, Any]) -> list[Record]:
    """Return a discarded batch's records as the function gets them: none if the stream no longer has them.

    batch: its place in the stream, which is all that a failure queue holds: streamArn, shardId,
    startSequenceNumber, endSequenceNumber. Raises ClientError for anything but records that are gone.
    """
    try:
        return _read(stack, batch)
    except ClientError as error:
        if error.response["Error"]["Code"] in GONE_CODES:
            return []
        raise


def _read(stack: Stack, batch: dict[str, Any]) -> list[Record]:
    source, last = batch["streamArn"], int(batch["endSequenceNumber"])
    iterator: str | None = iterator_at(stack, source, batch["shardId"], batch["startSequenceNumber"])
    found, empty = list[Record](), 0
    while iterator and empty < EMPTY_MAX:
        read, iterator = read_records(stack, source, iterator)
        found += [each for each in read if int(sequence_of(each)) <= last]
        if read and int(sequence_of(read[-1])) >= last:
            break
        empty = 0 if read else empty + 1
    return found


def _stored(stack: Stack, url: str) -> Any:
    """Return a record that was too large for its message."""
    bucket, _, key = url.removeprefix("s3://").partition("/")
    return json.loads(stack.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())


def _image(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the item's present state as NewImage. If the item has expired, the record goes out as it was."""
    return {"NewImage": answer["Item"]} if "Item" in answer else {}
