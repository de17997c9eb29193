"""KPL-aggregated Kinesis records. Imported only when one arrives: a plain record needs no protobuf."""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from aws_kinesis_agg import DIGEST_SIZE, MAGIC
from aws_kinesis_agg.deaggregator import deaggregate_records
from aws_kinesis_agg.messages_pb2 import AggregatedRecord
from google.protobuf.message import DecodeError


def user_records(record: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return the user records' data (base64), and whether these are all that the record says it has.

    The library leaves out user records that it cannot read.
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
