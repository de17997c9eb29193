"""The last step of a smoke test: removes what the other steps made.

It finds items by their keys, never by a scan. It looks again until nothing is left, because an effect may
come late. Rows in the lake and in the warehouse stay. Each of them has the test's name, and nights leave
users with such names out.
"""

import time
from collections.abc import Iterator

from adapters.leads.lead_event_store import CLAIM_KEY
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import query_all
from analytics.lake.layout import report_key, run_key
from ingest.questions.questions import open_questions_key
from local.operate.functions import invoke
from local.sign_in import users_of
from local.smoke import parts
from local.smoke.parts import question_id
from local.smoke.steps import StepFailed, Subject

Keys = dict[str, tuple[str, ...]]  # by table: the attributes of its key, the partition key first
USER_TABLES: Keys = {
    "BPEvents": ("user_id", "event_id"),
    "IdempotencyKeys": ("user_id", "idempotency_key"),
    "RewardsLedger": ("account_id", "created_at"),
    "DailyActivity": ("user_id", "activity_date"),
    "UserStreaks": ("user_id",),
}
LEAD_TABLES: Keys = {
    "Event": ("lead_organization_id", "occurred_at#id"),
    "Memory": ("lead_organization_id", "memory_type#key"),
    "Feature": ("lead_organization_id",),
}
QUESTION_TABLES: Keys = {"Questions": ("question_id",), "Responses": ("question_id", "response_id")}
# The agent's count of open questions. The counters of minutes expire by themselves.
OPEN_QUESTIONS: Keys = {"Limits": ("counter",)}
STATS: Keys = {"UserStats": ("fingerprint_hash",)}
CLAIMS: Keys = {"IdempotencyKeys": ("user_id", "idempotency_key")}
POINTER = "raw_payload_ref"  # the URL of an object that an item would be too small for
SWEEPS_MAX = 10
LAPTOP_QUIET_SECONDS, AWS_QUIET_SECONDS = 1.0, 10.0
STAY = "stay, marked by the name: rows in the lake and the warehouse"


def clean_up(subject: Subject) -> str:
    """Nothing is left but rows in the lake and the warehouse; raises StepFailed with what could not go."""
    items, objects, troubles = 0, remove_run_files(subject), []
    for sweep in range(SWEEPS_MAX):
        items_removed, objects_removed = remove_items(subject)
        items, objects = items + items_removed, objects + objects_removed
        if sweep and not items_removed:
            break
        time.sleep(LAPTOP_QUIET_SECONDS if subject.stack.is_laptop else AWS_QUIET_SECONDS)
    else:
        troubles.append(f"items came again in {SWEEPS_MAX} sweeps: look for {subject.name} later")
    if trouble := _forget_leads(subject):
        troubles.append(trouble)
    users = users_of(subject.stack) if not subject.stack.is_laptop else None
    if users:
        users.remove(subject.name)
    if troubles:
        raise StepFailed(f"{items} items removed; " + "; ".join(troubles))
    return f"{items} items and {objects} objects removed, leads forgotten; {STAY} {subject.name}"


def remove_items(subject: Subject) -> tuple[int, int]:
    """Delete all items that are there now; returns how many items and how many objects they pointed to.

    Partitions that an earlier sweep has found are looked at again: the item that led to them is gone by then.
    """
    items = objects = 0
    subject.partitions |= {(table, key): names for table, names, key in _partitions(subject)}
    for (table, key), names in subject.partitions.items():
        for item in _items(subject, table, names[0], key):
            objects += _remove_object(subject, item.get(POINTER, {}).get("S", ""))
            subject.stack.client("dynamodb").delete_item(
                TableName=subject.stack.tables[table], Key={name: item[name] for name in names}
            )
            items += 1
    return items, objects


def _partitions(subject: Subject) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield table, names of its key, and partition key of all that the test may have written.

    An item that leads to others comes after these: it is removed last.
    """
    lead_claim = f"{parts.source(subject)}#{parts.EXTERNAL_ID}"
    lead = _lead(subject, lead_claim)
    groups = [(LEAD_TABLES, lead)] if lead else []
    if subject.api is not None:
        question = question_id(subject)
        people: set[str] = set()
        for response in _items(subject, "Responses", "question_id", question):
            answer = decode_item(response)
            people |= {answer["response_id"], *answer.get("older_hashes", ())}
        groups += [(STATS, person) for person in sorted(people)]
        groups += [(QUESTION_TABLES, question), (OPEN_QUESTIONS, open_questions_key(subject.agent))]
    groups += [(CLAIMS, lead_claim), (USER_TABLES, subject.name), (USER_TABLES, subject.second_user)]
    for tables, key in groups:
        for table, names in tables.items():
            yield table, names, key


def _lead(subject: Subject, claim: str) -> str | None:
    """Return the order's lead, None before its event is stored. The event's claim names the lead.

    The claim of an order names it in `leaf`, that of any other event in `target`.
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


def _items(subject: Subject, table: str, name: str, key: str) -> list[Item]:
    """Return the items of a partition. name: the attribute of the partition key; key: its value."""
    items = query_all(
        subject.stack.client("dynamodb"),
        TableName=subject.stack.tables[table],
        KeyConditionExpression="#name = :key",
        ExpressionAttributeNames={"#name": name},
        ExpressionAttributeValues=encode_item({":key": key}),
        ConsistentRead=True,
    )
    return list(items)


def _remove_object(subject: Subject, url: str) -> int:
    """Delete the object of a URL ("": there is none); returns how many that were."""
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
