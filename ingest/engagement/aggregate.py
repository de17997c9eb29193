"""Reads KPL-aggregated Kinesis records.

The door imports this module only when such a record arrives, because a plain record needs no protobuf.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from aws_kinesis_agg import DIGEST_SIZE, MAGIC
from aws_kinesis_agg.deaggregator import deaggregate_records
from aws_kinesis_agg.messages_pb2 import AggregatedRecord
from google.protobuf.message import DecodeError


def user_records(record: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return the data of the user records (base64), and whether none of them is missing.

    The library leaves out user records that it cannot read. So their number is compared with the number
    that the aggregated record itself tells.
    """
    found = [each["kinesis"]["data"] for each in deaggregate_records([dict(record)]) or []]
    texts = [data.decode() if isinstance(data, bytes) else data for data in found]
    return texts, bool(texts) and len(texts) >= _announced(record["kinesis"]["data"])


def _announced(data: str) -> int:
    raw = base64.b64decode(data)
    message, digest = raw[len(MAGIC) : -DIGEST_SIZE], raw[-DIGEST_SIZE:]
    if hashlib.md5(message, usedforsecurity=False).digest() != digest:
        return 0
    try:
        return len(AggregatedRecord.FromString(message).records)
    except DecodeError:
        return 0
