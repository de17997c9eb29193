"""Kinesis records, plain and aggregated, as Lambda hands them to a function."""

import base64
import hashlib
import json
from typing import Any

from aws_kinesis_agg import MAGIC
from aws_kinesis_agg.aggregator import RecordAggregator

from local.operate.redrive import records_of_message, waiting_message

EVENT = {"idempotency_key": "k", "event_type": "CHECK_IN", "user_id": "u"}


def record(data: bytes, number: str = "1") -> dict[str, Any]:
    return {
        "kinesis": {
            "data": base64.b64encode(data).decode(),
            "sequenceNumber": number,
            "partitionKey": "p",
            "kinesisSchemaVersion": "1.0",
            "approximateArrivalTimestamp": 1.0,
        },
        "eventID": f"shard:{number}",
    }


def as_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def redriven(kept: dict[str, Any]) -> dict[str, Any]:
    """Return the record that a redrive sends of what a failure queue keeps."""
    waiting = waiting_message("events-stream", "h", json.dumps({"reason": "r", "record": kept}))
    stack: Any = None  # nobody asks it: the message holds the record
    (found,) = records_of_message(stack, waiting)
    return found


def wrapped(message: bytes) -> bytes:
    """An aggregated record of this message, with the right digest."""
    return bytes(MAGIC) + message + hashlib.md5(message).digest()


def aggregated(*parts: bytes) -> bytes:
    aggregator = RecordAggregator()
    for number, part in enumerate(parts):
        aggregator.add_user_record(f"key{number}", part)
    _, _, data = aggregator.clear_and_get().get_contents()
    return bytes(data)
