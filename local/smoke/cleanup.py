"""The last step of a smoke test: removes what the other steps made.

It finds items by their keys, never by a scan. It sweeps until nothing is left, because an effect may come
late. Rows in the lake and in the warehouse stay: each has the test's name, and nights leave such users out.
"""

import time
from collections.abc import Iterator
from functools import partial

from adapters.leads.lead_event_store import CLAIM_KEY
from adapters.platform.items import Item, encode_item
from adapters.platform.tables import query_all
from analytics.lake.layout import report_key, run_key
from local.operate.functions import invoke
from local.sign_in import users_of
from local.smoke import parts
from local.smoke.steps import SmokePart, StepFailed, Subject
from rules.leads.notice_kinds import lead_holder
from rules.parts import Part, said
from rules.user_ids import kept_partition

PARTS: list[SmokePart] = list(said("smoke"))
KEYS = {  # by table: the attributes of its key, the partition key first
    "BPEvents": ("user_id", "event_id"),
    "IdempotencyKeys": ("user_id", "idempotency_key"),
    "RewardsLedger": ("account_id", "created_at"),
    "DailyActivity": ("user_id", "activity_date"),
    "UserStreaks": ("user_id",),
    "Event": ("lead_organization_id", "occurred_at#id"),
    "Memory": ("lead_organization_id", "memory_type#key"),
    "Feature": ("lead_organization_id",),
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
LEAD_TABLES = ("Event", "Memory", "Feature")
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
    if Part.LEADS in subject.stack.parts and (trouble := _forget_leads(subject)):
        troubles.append(trouble)
    user_pool = users_of(subject.stack) if not subject.stack.is_laptop else None
    if user_pool:
        user_pool.remove(subject.name)
    if troubles:
        raise StepFailed(f"{item_count} items removed; " + "; ".join(troubles))
    leads = ", leads forgotten" if Part.LEADS in subject.stack.parts else ""
    return (
        f"{item_count} items and {object_count} objects removed{leads}; "
        f"rows in the lake and the warehouse stay, marked by the name {subject.name}"
    )


def remove_items(subject: Subject) -> tuple[int, int]:
    """Delete the items that are there now, and the objects that they point to; returns how many of each.

    Partitions of an earlier sweep are looked at again, although the item that led to them is gone.
    """
    item_count = object_count = 0
    subject.partitions |= dict.fromkeys(_partitions(subject))
    for table, key in subject.partitions:
        for item in _items(subject, table, key):
            object_count += _remove_object(subject, item.get(PAYLOAD_URL, {}).get("S", ""))
            subject.stack.client("dynamodb").delete_item(
                TableName=subject.stack.tables[table], Key={name: item[name] for name in KEYS[table]}
            )
            item_count += 1
    return item_count, object_count


def _partitions(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield each partition that the test may have written to: table, partition key.

    An item that leads to other partitions comes after these, so it is removed last.
    """
    lead_claim = f"{parts.source(subject)}#{parts.EXTERNAL_ID}"
    lead = _lead(subject, lead_claim)
    if lead:
        yield "Notifications", lead_holder(lead)
        yield from ((table, lead) for table in LEAD_TABLES)
    if subject.api is not None:
        for part in PARTS:
            yield from part.partitions(subject, partial(_items, subject))
    yield "IdempotencyKeys", lead_claim
    for user in (subject.name, subject.second_user):
        yield "DailyActivity", kept_partition(user)
        yield from ((table, user) for table in USER_TABLES)


def _lead(subject: Subject, claim: str) -> str | None:
    """Return the lead of the test's order, which the event's claim names; None before the event is stored.

    The claim of an order names the lead in `leaf`, that of any other event in `target`.
    """
    answer = subject.stack.client("dynamodb").get_item(
        TableName=subject.stack.tables["IdempotencyKeys"],
        Key=encode_item({"user_id": claim, "idempotency_key": CLAIM_KEY}),
        ConsistentRead=True,
    )
    if "Item" not in answer:
        return None
    stored: Item = answer["Item"]
    return str(stored["leaf" if "leaf" in stored else "target"]["S"]).partition("#")[0]


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


def _forget_leads(subject: Subject) -> str:
    """Let PostgreSQL forget the test's leads; returns what went wrong, or ""."""
    name = subject.stack.outputs["LeadsFunctionName"]
    reply = invoke(subject.stack, name, {"streakline_forget": subject.name})
    left = reply.answer.get("left") if isinstance(reply.answer, dict) else None
    return "" if left == 0 and not reply.error else f"leads are left in PostgreSQL: {reply.answer}"
