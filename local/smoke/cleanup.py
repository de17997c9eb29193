"""The last step of a smoke test: removes what the other steps made.

It finds items by their keys, never by a scan. It sweeps until nothing is left, because an effect may come
late. Rows in the lake and in the warehouse stay: each has the test's name, and nights leave such users out.
"""

import time
from collections.abc import Iterator
from functools import partial

from adapters.engagement.account_items import LEAGUE
from adapters.engagement.leagues import leave_cohort
from adapters.platform.items import Item, encode_item
from adapters.platform.tables import query_all
from analytics.lake.layout import report_key, run_key
from local.sign_in import users_of
from local.smoke.steps import SmokePart, StepFailed, Subject
from rules.parts import said
from rules.user_ids import kept_partition

PARTS: list[SmokePart] = list(said("smoke"))
KEYS = {  # by table: the attributes of its key, the partition key first
    "BPEvents": ("user_id", "event_id"),
    "IdempotencyKeys": ("user_id", "idempotency_key"),
    "RewardsLedger": ("account_id", "created_at"),
    "DailyActivity": ("user_id", "activity_date"),
    "UserStreaks": ("user_id",),
    **{table: key for part in PARTS for table, key in part.keys.items()},
    "Limits": ("counter",),
    "Notifications": ("holder", "place"),  # where the stack has webhook endpoints
}
USER_TABLES = (
    "BPEvents",
    "IdempotencyKeys",
    "RewardsLedger",
    "DailyActivity",
    "Notifications",
    "UserStreaks",
)
PAYLOAD_URL = "raw_payload_ref"  # the attribute with the URL of a payload that is too large for an item
SWEEPS_MAX = 10
LAPTOP_QUIET_SECONDS, AWS_QUIET_SECONDS = 1.0, 10.0  # between two sweeps


def clean_up(subject: Subject) -> str:
    """Remove all that the test made, except rows in the lake and the warehouse; returns what was removed.

    Raises StepFailed with what could not be removed.
    """
    item_count, object_count, troubles = 0, remove_run_files(subject), []
    for sweep in range(SWEEPS_MAX):
        items_removed, objects_removed = remove_items(subject)
        item_count += items_removed
        object_count += objects_removed
        if sweep > 0 and not items_removed:  # never after the first sweep: effects may come late
            break
        time.sleep(LAPTOP_QUIET_SECONDS if subject.stack.is_laptop else AWS_QUIET_SECONDS)
    else:
        troubles.append(f"items came again in {SWEEPS_MAX} sweeps: look for {subject.name} later")
    troubles += filter(None, (part.forget(subject) for part in PARTS if part.part in subject.stack.parts))
    user_pool = users_of(subject.stack) if not subject.stack.is_laptop else None
    if user_pool:
        user_pool.remove(subject.name)
    if troubles:
        raise StepFailed(f"{item_count} items removed; " + "; ".join(troubles))
    return (
        f"{item_count} items and {object_count} objects removed; "
        f"rows in the lake and the warehouse stay, marked by the name {subject.name}"
    )


def remove_items(subject: Subject) -> tuple[int, int]:
    """Delete the items that are there now, and the objects that they point to; returns how many of each.

    Partitions of an earlier sweep are looked at again, although the item that led to them is gone.
    """
    item_count = object_count = 0
    tables, dynamodb = subject.stack.tables, subject.stack.client("dynamodb")
    subject.partitions |= dict.fromkeys(_partitions(subject))
    for table, key in subject.partitions:
        for item in _items(subject, table, key):
            if LEAGUE in item:
                leave_cohort(dynamodb, tables["Boards"], item)
            object_count += _remove_object(subject, item.get(PAYLOAD_URL, {}).get("S", ""))
            dynamodb.delete_item(TableName=tables[table], Key={name: item[name] for name in KEYS[table]})
            item_count += 1
    return item_count, object_count


def _partitions(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield each partition that the test may have written to: table, partition key.

    An item that leads to other partitions comes after these, so it is removed last.
    """
    if subject.api is not None:
        for part in PARTS:
            yield from part.partitions(subject, partial(_items, subject))
    for user in (subject.name, subject.second_user):
        yield "DailyActivity", kept_partition(user)
        yield from ((table, user) for table in USER_TABLES)


def _items(subject: Subject, table: str, key: str) -> list[Item]:
    """Return the items of a partition; none of a table that the deployment leaves out."""
    if table not in subject.stack.tables:
        return []
    items = query_all(
        subject.stack.client("dynamodb"),
        TableName=subject.stack.tables[table],
        KeyConditionExpression="#name = :key",
        ExpressionAttributeNames={"#name": KEYS[table][0]},
        ExpressionAttributeValues=encode_item({":key": key}),
        ConsistentRead=True,
    )
    return list(items)


def _remove_object(subject: Subject, url: str) -> int:
    """Delete the object of a URL, if there is one; returns how many were deleted: 0 or 1."""
    bucket, _, key = url.removeprefix("s3://").partition("/")
    if not key:
        return 0
    subject.stack.client("s3").delete_object(Bucket=bucket, Key=key)
    return 1


def remove_run_files(subject: Subject) -> int:
    """Delete the files and reports of the nightly runs that the test started; returns how many."""
    s3, bucket = subject.stack.client("s3"), subject.stack.outputs["LakeBucketName"]
    runs = [execution.rpartition(":")[2] for execution in subject.executions]
    keys = [report_key(run, suffix) for run in runs for suffix in ("json", "md")]
    for run in runs:
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=run_key(run, "")):
            keys += [stored["Key"] for stored in page.get("Contents", ())]
    for key in keys:
        s3.delete_object(Bucket=bucket, Key=key)
    return len(keys)
