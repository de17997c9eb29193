"""Every byte that the online stores of a test hold, unpacked, to look for somebody in it."""

import json
import zlib
from collections.abc import Iterator
from typing import Any

from adapters.platform.redis import Redis
from tests.support.engine import TABLES, Engine


def everything(engine: Engine, redis_url: str = "") -> Iterator[tuple[str, str]]:
    """Yield (store, text) of every item, object and key."""
    dynamodb, s3 = engine.client("dynamodb"), engine.client("s3")
    for table in TABLES:
        for page in dynamodb.get_paginator("scan").paginate(TableName=table):
            for each in page["Items"]:
                yield table, json.dumps(each, default=_unpacked, ensure_ascii=False)
    for bucket in s3.list_buckets()["Buckets"]:
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket["Name"]):
            for each in page.get("Contents", ()):
                body = s3.get_object(Bucket=bucket["Name"], Key=each["Key"])["Body"].read()
                yield f"s3://{bucket['Name']}", f"{each['Key']} {body.decode(errors='replace')}"
    yield from _redis(redis_url) if redis_url else ()


def stores_with(engine: Engine, text: str, redis_url: str = "") -> set[str]:
    """Return the stores that hold a text anywhere."""
    return {store for store, held in everything(engine, redis_url) if text in held}


def _unpacked(value: Any) -> str:
    data = bytes(value)
    try:
        return zlib.decompress(data).decode(errors="replace")
    except zlib.error:
        return data.decode(errors="replace")


READS = {
    "string": ("GET",),
    "hash": ("HGETALL",),
    "set": ("SMEMBERS",),
    "zset": ("ZRANGE", 0, -1),
    "list": ("LRANGE", 0, -1),
}


def _redis(url: str) -> Iterator[tuple[str, str]]:
    redis = Redis(url)
    for key in redis.call("KEYS", "*"):
        name, *rest = READS[str(redis.call("TYPE", key))]
        yield "Redis", f"{key} {redis.call(name, key, *rest)}"
