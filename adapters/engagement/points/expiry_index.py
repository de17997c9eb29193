"""The accounts with points to expire, from the index ByExpiry of UserStreaks. Nobody else is in it."""

from collections.abc import Iterator
from datetime import date
from typing import Any

from adapters.engagement.account_items import EXPIRY_SHARDS
from adapters.platform.items import item
from adapters.platform.tables import query_all


class ExpiryIndex:
    """Reads accounts by the date on which their next points expire."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def due(self, until: date, first_shard: int = 0) -> Iterator[str]:
        """Yield the users whose next points expire on a date or before it, those of the oldest first in each
        shard. They may be some seconds old. first_shard: where to begin, so that runs take turns.
        """
        for number in range(EXPIRY_SHARDS):
            found = query_all(
                self._dynamodb,
                TableName=self._table,
                IndexName="ByExpiry",
                KeyConditionExpression="expiry_shard = :shard AND expires_next <= :until",
                ExpressionAttributeValues=item(
                    {":shard": str((first_shard + number) % EXPIRY_SHARDS), ":until": until.isoformat()}
                ),
            )
            yield from (each["user_id"]["S"] for each in found)
