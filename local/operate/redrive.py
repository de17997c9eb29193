"""Sends what waits in the failure queues to its consumer again. What succeeds leaves its queue.

Repair the cause first, the code or the item in its table: the item is sent in its present state.
"""

import base64
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from local.cloud.delivery import sequence_of
from local.cloud.stream_records import kinesis_record, table_record
from local.stack import Stack

RECEIVE_MAX = 10
HIDDEN_SECONDS = 120
# By consumer: the names of its function and of its failure queue.
CONSUMERS = {
    "engagement": ("Engagement", "Engagement"),
    "events-stream": ("EventsStream", "EventsStream"),
    "publisher": ("Publisher", "Publisher"),
    "lead-events": ("LeadEvents", "LeadEvents"),
    "leads": ("Leads", "LeadIngestion"),
    "memory": ("Memory", "Memory"),
    "features": ("Features", "Feature"),
    "answers": ("Answers", "Answers"),
    "notify": ("Notify", "Notify"),
}
GIVEN_UP = "given up after all attempts: the function's log says why"
OF_QUEUES = frozenset({"leads", "memory", "features"})


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message of a failure queue: what it holds, and why it is there."""

    consumer: str
    handle: str
    reason: str
    body: dict[str, Any]


def waiting_messages(stack: Stack, consumer: str) -> Iterator[Waiting]:
    """Yield what waits for a consumer. Each message is hidden from other readers for two minutes."""
    sqs, url = stack.client("sqs"), _queue(stack, consumer)
    while True:
        answer = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=RECEIVE_MAX, VisibilityTimeout=HIDDEN_SECONDS
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


def _queue(stack: Stack, consumer: str) -> str:
    return stack.outputs[f"{CONSUMERS[consumer][1]}FailuresUrl"]


def redrive(stack: Stack, *, only_list: bool = False) -> dict[str, Any]:
    """Send everything again, or only list it. Returns the count, and what is left with its reason."""
    sqs, done, left = stack.client("sqs"), 0, []
    for consumer in CONSUMERS:
        url = _queue(stack, consumer)
        for message in list(waiting_messages(stack, consumer)):
            reason = "listed" if only_list else _send(stack, message)
            if reason is None:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message.handle)
                done += 1
                continue
            sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message.handle, VisibilityTimeout=0)
            left.append(
                {"consumer": consumer, "reason": message.reason, "record": message.body.get("record")}
            )
    return {"redriven": done, "left": left}


def _send(stack: Stack, message: Waiting) -> str | None:
    """Invoke the consumer with a message's records; returns why it failed, or None."""
    records = _records(stack, message)
    if not records:
        return "the records are no longer in the stream"
    payload = {"Records": records, "streakline_redrive": True}
    answer = stack.client("lambda").invoke(
        FunctionName=stack.outputs[f"{CONSUMERS[message.consumer][0]}FunctionName"],
        Payload=json.dumps(payload).encode(),
    )
    text: str = answer["Payload"].read().decode()
    if answer.get("FunctionError"):
        return text[:300]
    return "failed again" if json.loads(text)["batchItemFailures"] else None


def _records(stack: Stack, message: Waiting) -> list[dict[str, Any]]:
    for kind in ("DDBStreamBatchInfo", "KinesisBatchInfo"):
        if kind in message.body:
            return _from_stream(stack, message.body[kind])
    record = message.body["record"]
    if message.consumer in OF_QUEUES:
        return [{"messageId": "redrive", "body": record}]
    if message.consumer != "events-stream":
        keys, table = record["dynamodb"]["Keys"], record["eventSourceARN"].split("/")[1]
        now = stack.client("dynamodb").get_item(TableName=table, Key=keys, ConsistentRead=True)
        return [{**record, "dynamodb": {**record["dynamodb"], **_image(now)}}]
    data = record["data"]
    if "event" in record:
        data = base64.b64encode(json.dumps(record["event"]).encode()).decode()
    return [
        {"kinesis": {"data": data, "sequenceNumber": record["sequence_number"], "partitionKey": "redrive"}}
    ]


def _image(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the item's present state as NewImage. If the item has expired, the record goes out as it was."""
    return {"NewImage": answer["Item"]} if "Item" in answer else {}


def _from_stream(stack: Stack, batch: dict[str, Any]) -> list[dict[str, Any]]:
    """Fetch a discarded batch while the stream still has it. The message holds only the batch's place."""
    source, first, last = batch["streamArn"], batch["startSequenceNumber"], batch["endSequenceNumber"]
    if ":kinesis:" in source:
        client, stream = stack.client("kinesis"), {"StreamARN": source}
        start = {"StartingSequenceNumber": first}
    else:
        client, stream = stack.client("dynamodbstreams"), {"StreamArn": source}
        start = {"SequenceNumber": first}
    iterator = client.get_shard_iterator(
        **stream, ShardId=batch["shardId"], ShardIteratorType="AT_SEQUENCE_NUMBER", **start
    )["ShardIterator"]
    wrap = kinesis_record if ":kinesis:" in source else table_record
    found: list[dict[str, Any]] = []
    while iterator:
        answer = client.get_records(ShardIterator=iterator, Limit=1000)
        records = (wrap(each, source) for each in answer["Records"])
        found += [record for record in records if int(sequence_of(record)) <= int(last)]
        if not answer["Records"] or (found and int(sequence_of(found[-1])) >= int(last)):
            break
        iterator = answer.get("NextShardIterator")
    return found
