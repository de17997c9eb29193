"""Kinesis records, plain and aggregated, as Lambda hands them to a function."""

import base64
import hashlib
import json
from typing import Any

from aws_kinesis_agg import MAGIC
from aws_kinesis_agg.deaggregator import messages_pb2

from local.operate.redrive import _records, waiting_message

EVENT = {"idempotency_key": "k", "event_type": "CHECK_IN", "user_id": "u"}
SECRET = "ann@example.com"  # of a person: no log may have it
OF_A_PERSON = json.dumps({**EVENT, "user_id": SECRET}).encode()


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
    (found,) = _records(stack, waiting)
    return found


def wrapped(message: bytes) -> bytes:
    """An aggregated record of this message, with the right digest."""
    return bytes(MAGIC) + message + hashlib.md5(message).digest()


def odd_aggregate(
    *records: dict[str, Any],
    keys: tuple[str, ...] = (SECRET, SECRET),
    hash_keys: tuple[str, ...] = (),
    more: bytes = b"",
) -> bytes:
    """An aggregated record with a right digest, of user records with these fields. more: further bytes of it."""
    message = messages_pb2.AggregatedRecord()
    message.partition_key_table.extend(keys)
    message.explicit_hash_key_table.extend(hash_keys)
    for each in records:
        part = message.records.add()
        for name, value in {"partition_key_index": 0, "data": OF_A_PERSON, **each}.items():
            if name == "tags":
                part.tags.add(key=value)
            elif value is not None:
                setattr(part, name, value)
    return wrapped(message.SerializePartialToString() + more)
