"""The index of recent activity: which leads the daily schedule has to look at. Never a scan."""

from collections.abc import Iterator
from typing import Any

from adapters.platform.batches import query_all
from adapters.platform.items import item

INDEX = "ByActivity"


class ActiveLeads:
    """Leads that time still changes. shards: as the features' writer has it."""

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def ids(self) -> Iterator[str]:
        """Yield lead_organization_ids, at the cost of one query (and its pages) a shard.

        All that are listed, however long ago they were active: a lead leaves the index with its last
        refresh (rules.leads.features.listed_on), so one that is still there has missed that, and needs it.
        """
        for shard in range(self._shards):
            found = query_all(
                self._dynamodb,
                TableName=self._table,
                IndexName=INDEX,
                KeyConditionExpression="active_shard = :shard",
                ExpressionAttributeValues=item({":shard": str(shard)}),
                ProjectionExpression="lead_organization_id",
            )
            yield from (each["lead_organization_id"]["S"] for each in found)
