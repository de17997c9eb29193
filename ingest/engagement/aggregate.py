"""Reads KPL-aggregated Kinesis records.

The door imports this module only when such a record arrives, because a plain record needs no protobuf. Of the
library only the message is used: its reader prints keys and data of what it cannot read, and leaves that out.
"""

import hashlib
from typing import Any

from aws_kinesis_agg import DIGEST_SIZE, MAGIC
from aws_kinesis_agg.deaggregator import messages_pb2  # the only way: it cannot be imported by itself
from google.protobuf.message import DecodeError

DAMAGED = "is aggregated, and damaged"
UNLISTED = "has a key that its aggregated record does not list"
# After this many user records, or this many that are bad, the rest is kept as one. A redrive goes on with it.
RECORDS_MAX = 10_000
BAD_RECORDS_MAX = 100


def user_records(data: bytes) -> list[tuple[bytes, str]]:
    """Return the data of each user record with "", or with the reason why it cannot be taken.

    It is the aggregated record itself, with the reason, if that cannot be read. data: begins with MAGIC.
    """
    message, digest = data[len(MAGIC) : -DIGEST_SIZE], data[-DIGEST_SIZE:]
    if digest != _digest(message):
        return [(data, DAMAGED)]
    try:
        aggregated = messages_pb2.AggregatedRecord.FromString(message)
    except DecodeError:
        return [(data, DAMAGED)]
    found: list[tuple[bytes, str]] = []
    bad = 0
    for index, each in enumerate(aggregated.records):
        if index == RECORDS_MAX or bad == BAD_RECORDS_MAX:
            return [*found, (_rest(aggregated, index), "is the rest of an aggregated record")]
        why = "is empty" if not each.data else "" if _is_listed(each, aggregated) else UNLISTED
        bad += bool(why)
        found.append((each.data, why))
    return found or [(data, "is aggregated, and holds no user record")]


def _is_listed(record: Any, aggregated: Any) -> bool:
    keys, hash_keys = len(aggregated.partition_key_table), len(aggregated.explicit_hash_key_table)
    if record.HasField("explicit_hash_key_index") and record.explicit_hash_key_index >= hash_keys:
        return False
    return bool(record.HasField("partition_key_index") and record.partition_key_index < keys)


def _rest(aggregated: Any, index: int) -> bytes:
    """Return an aggregated record with the same keys, and the user records from a place on."""
    rest = messages_pb2.AggregatedRecord()
    rest.CopyFrom(aggregated)
    del rest.records[:index]
    message = rest.SerializePartialToString()
    return MAGIC + message + _digest(message)  # type: ignore[no-any-return]  # MAGIC has no type


def _digest(message: bytes) -> bytes:
    return hashlib.md5(message, usedforsecurity=False).digest()
