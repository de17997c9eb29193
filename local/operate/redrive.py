"""Sends what waits in the failure queues to its consumer again. What succeeds leaves its queue.

Repair the cause first, the code or the item in its table: the item is sent in its present state. What fails
again, for whatever reason, stays in its queue and stops nothing.
"""

import base64
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from local.aws.sentences import AwsError, sentence
from local.operate.discarded_batches import records_of
from local.operate.invocations import invoke
from local.stack import Stack

RECEIVE_MAX = 10
HIDDEN_SECONDS = 120
# SQS asks all of its servers only if a reader waits. The emulator has one.
AWS_WAIT_SECONDS = 2
# By consumer: the names of its function and of its failure queue.
CONSUMERS = {
    "engagement": ("Engagement", "Engagement"),
    "fulfilment": ("Fulfilment", "Fulfilment"),
    "outgoing": ("Telling", "Telling"),
    "deliveries": ("Deliver", "Delivery"),
    "events-stream": ("EventsStream", "EventsStream"),
    "publisher": ("Publisher", "Publisher"),
    "lead-events": ("LeadEvents", "LeadEvents"),
    "leads": ("Leads", "LeadIngestion"),
    "memory": ("Memory", "Memory"),
    "features": ("Features", "Feature"),
    "answers": ("Answers", "Answers"),
    "notify": ("Notify", "Notify"),
    "fan-out": ("FanOut", "Announcement"),
    "sending": ("Sending", "Sending"),
    "taking-over": ("TakingOver", "TakingOver"),
}
GIVEN_UP = "given up after all attempts: the function's log says why"
GONE = "the records are no longer in the stream: docs/runbook.md says what to do"
OF_QUEUES = frozenset({"leads", "memory", "features", "fan-out", "deliveries", "taking-over"})


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message of a failure queue: what it holds, and why it is there."""

    consumer: str
    handle: str
    reason: str
    body: dict[str, Any]


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
            yield waiting_message(consumer, message["ReceiptHandle"], message["Body"])


def waiting_message(consumer: str, handle: str, text: str) -> Waiting:
    """Read a message of a failure queue.

    If SQS itself gave the message up, it is there as it was sent, without a reason; the reason then is
    GIVEN_UP.
    """
    with contextlib.suppress(ValueError):
        body = json.loads(text)
        if isinstance(body, dict) and {"reason", "record"} <= body.keys():
            return Waiting(consumer, handle, body["reason"], body)
        if isinstance(body, dict) and "requestContext" in body:
            return Waiting(consumer, handle, body["requestContext"].get("condition", "unknown"), body)
    return Waiting(consumer, handle, GIVEN_UP, {"record": text})


def _queue(consumer: str) -> str:
    return f"{CONSUMERS[consumer][1]}FailuresUrl"


def redrive(stack: Stack, *, only_list: bool = False, only: str = "") -> dict[str, Any]:
    """Send everything again, or only list it. only: one consumer's.

    Returns how many messages were redriven, and what is left: `reason` says why it was kept first, `again`
    why this attempt failed. Consumers that the stack was deployed without are left out.
    """
    sqs, done, left = stack.client("sqs"), 0, []
    for consumer in [only] if only else CONSUMERS:
        url = stack.outputs.get(_queue(consumer))
        for message in list(waiting_messages(stack, consumer)) if url else ():
            again = "" if only_list else _send(stack, message)
            if again is None:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message.handle)
                done += 1
                continue
            sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message.handle, VisibilityTimeout=0)
            left.append(_told(message, again))
    return {"redriven": done, "left": left}


def _told(message: Waiting, again: str) -> dict[str, Any]:
    told = {"consumer": message.consumer, "reason": message.reason, "record": message.body.get("record")}
    return told | ({"again": again} if again else {})


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
        return [{"messageId": "redrive", "body": record}]
    if message.consumer == "sending":
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


def _stored(stack: Stack, url: str) -> Any:
    """Return a record that was too large for its message."""
    bucket, _, key = url.removeprefix("s3://").partition("/")
    return json.loads(stack.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())


def _image(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the item's present state as NewImage. If the item has expired, the record goes out as it was."""
    return {"NewImage": answer["Item"]} if "Item" in answer else {}
