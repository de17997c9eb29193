"""Items of a standby's tables, apart from the ledger: each is as its newest change says, in any order of
arrival.

An item keeps the number of the change that it is from (`followed`). A deletion leaves a mark among the
claims:

| user_id | idempotency_key | holds |
|---|---|---|
| gone/DIGEST of table and key | gone | followed: the deletion's number; ttl |

The mark is written before the item is deleted, and whoever puts an item where there was none looks for a mark
afterwards. So whichever of the two comes second finds the other.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.items import Item, item
from rules.regions.changes import FOLLOWED, GONE, GONE_KEY, KEYS, ItemChange

# Nothing is under way for longer: 7 days in a stream, 14 in a queue, 14 in a failure queue.
MARK_KEPT = timedelta(days=60)
CLAIMS = "IdempotencyKeys"
IS_NEWER = f"attribute_not_exists({FOLLOWED}) OR {FOLLOWED} < :number"


class FollowedItems:
    """tables: by name in the template."""

    def __init__(self, dynamodb: Any, tables: Mapping[str, str]) -> None:
        self._dynamodb, self._tables = dynamodb, tables

    def put(self, change: ItemChange) -> bool:
        """Put a changed item if it is newer than what is there; returns whether it was."""
        number = {":number": {"S": change.number}}
        image = {name: dict(each) for name, each in (change.image or {}).items()}
        image.pop("applied_through", None)  # a place in the writer's stream, which means nothing here
        try:
            before = self._dynamodb.put_item(
                TableName=self._tables[change.table],
                Item={**image, FOLLOWED: {"S": change.number}},
                ConditionExpression=IS_NEWER,
                ExpressionAttributeValues=number,
                ReturnValues="ALL_OLD",
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        if "Attributes" not in before and change.number <= self._gone(change):
            self._delete(change, f"{FOLLOWED} = :number")
            return False
        return True

    def delete(self, change: ItemChange, now: datetime) -> None:
        """Delete an item unless it is newer, and leave the mark."""
        with suppress(self._dynamodb.exceptions.ConditionalCheckFailedException):
            self._dynamodb.put_item(
                TableName=self._tables[CLAIMS],
                Item={
                    **mark_key(change),
                    **item({FOLLOWED: change.number, "ttl": int((now + MARK_KEPT).timestamp())}),
                },
                ConditionExpression=IS_NEWER,
                ExpressionAttributeValues={":number": {"S": change.number}},
            )
        self._delete(change, IS_NEWER)

    def _gone(self, change: ItemChange) -> str:
        """Return the number of the newest deletion of an item; "" if there is none."""
        found = self._dynamodb.get_item(
            TableName=self._tables[CLAIMS], Key=mark_key(change), ConsistentRead=True
        )
        return str(found["Item"][FOLLOWED]["S"]) if "Item" in found else ""

    def _delete(self, change: ItemChange, condition: str) -> None:
        with suppress(self._dynamodb.exceptions.ConditionalCheckFailedException):
            self._dynamodb.delete_item(
                TableName=self._tables[change.table],
                Key={name: dict(change.key[name]) for name in KEYS[change.table]},
                ConditionExpression=condition,
                ExpressionAttributeValues={":number": {"S": change.number}},
            )


def mark_key(change: ItemChange) -> Item:
    """Return the key of the mark of an item's deletion, which tells nobody whose item it was."""
    values = [change.table, *(list(change.key[name].items()) for name in KEYS[change.table])]
    digest = hashlib.sha256(json.dumps(values).encode()).hexdigest()
    return item({"user_id": GONE + digest, "idempotency_key": GONE_KEY})
