"""The index of recent activity: it names the leads that the daily refresh computes. No scan is needed."""

from collections.abc import Iterator
from typing import Any

from adapters.platform.items import item
from adapters.platform.tables import query_all

INDEX = "ByActivity"


class ActiveLeads:
    """Leads with features that time still changes. shards: the same number as the writer of features has."""

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def ids(self) -> Iterator[str]:
        """Yield lead_organization_ids, at the cost of one query (and its pages) a shard.

        It yields all listed leads, however long ago they were active. A lead leaves the index with its last
        refresh (rules.leads.features.listed_on), so a lead that is still listed has missed that refresh, and
        needs it.
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
