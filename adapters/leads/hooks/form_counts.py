"""Counts how many forms an address has sent in a minute, for all processes together.

The counts are in the table IdempotencyKeys. A hook's `#` keeps them apart from users, whose ids have none. An
address is kept as a keyed digest, for a few minutes.
"""

import hmac
from datetime import datetime
from typing import Any

from adapters.platform.items import item
from adapters.platform.limits import network_of
from rules.leads.hooks import Hook

KEPT_SECONDS = 300


class FormCounts:
    """The counts of all hooks. One form costs one write unit."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def count(self, hook: Hook, address: str, now: datetime) -> int:
        """Count one form more; returns how many the address has sent in this minute."""
        second = int(now.timestamp())
        key = {
            "user_id": f"hook#{hook.organization_id}/{hook.source}#{_digest(hook, address)}",
            "idempotency_key": f"minute#{second // 60}",
        }
        counted = self._dynamodb.update_item(
            TableName=self._table,
            Key=item(key),
            UpdateExpression="ADD #count :one SET #ttl = :ttl",
            ExpressionAttributeNames={"#count": "count", "#ttl": "ttl"},
            ExpressionAttributeValues=item({":one": 1, ":ttl": second + KEPT_SECONDS}),
            ReturnValues="UPDATED_NEW",
        )
        return int(counted["Attributes"]["count"]["N"])


def _digest(hook: Hook, address: str) -> str:
    key = hook.secrets[0].value.encode()
    return hmac.digest(key, network_of(address).encode(), "sha256").hex()[:32]
