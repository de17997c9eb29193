"""Kinesis records, plain and aggregated, as Lambda hands them to a function."""

import base64
import json
from typing import Any

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
