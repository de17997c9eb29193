"""How far a file has been taken in: a note in the deployment, so any machine goes on where one was killed.

The note only saves work. Whatever comes twice changes nothing.
"""

from datetime import datetime
from typing import Any

from adapters.platform.items import item, plain
from rules.engagement.events import RETENTION

NOTE = "rows-taken"


class MarkStore:
    """Notes in the table IdempotencyKeys, under a name that no user can have."""

    def __init__(self, dynamodb: Any, table: str, digest: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._key = {"user_id": f"import#{digest}", "idempotency_key": NOTE}

    def get(self) -> int:
        """Return how many of the file's rows are taken in."""
        answer = self._dynamodb.get_item(TableName=self._table, Key=item(self._key), ConsistentRead=True)
        return int(plain(answer["Item"])["rows"]) if "Item" in answer else 0

    def put(self, rows: int, now: datetime) -> None:
        """Note that so many rows are taken in."""
        ttl = int((now + RETENTION).timestamp())
        self._dynamodb.put_item(TableName=self._table, Item=item({**self._key, "rows": rows, "ttl": ttl}))
