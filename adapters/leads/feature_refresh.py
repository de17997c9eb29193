"""The index of the leads whose features time still changes, and the queue that asks for new features."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.items import encode_item
from adapters.platform.tables import chunks, query_all
from rules.privacy.tombstones import SafeToLog

INDEX = "ByActivity"
CALL_MAX = 10  # messages in a call: SendMessageBatch's own limit
LEADS_MAX = 50  # in a message
SEND_ATTEMPTS_MAX = 6


class ActiveLeads:
    """The index of leads with features that time still changes. The daily refresh reads it, and no table."""

    def __init__(self, dynamodb: Any, table: str, shards: int) -> None:
        """shards: as many as the FeatureStore has that writes the table."""
        self._dynamodb, self._table, self._shards = dynamodb, table, shards

    def ids(self) -> Iterator[str]:
        """Yield lead_organization_ids, at the cost of one query (and its pages) a shard.

        A lead leaves the index at the last refresh that can change its features (`listing_date`). So a lead
        that is still listed long after its last activity has missed a refresh, and needs it.
        """
        for shard in range(self._shards):
            rows = query_all(
                self._dynamodb,
                TableName=self._table,
                IndexName=INDEX,
                KeyConditionExpression="active_shard = :shard",
                ExpressionAttributeValues=encode_item({":shard": str(shard)}),
                ProjectionExpression="lead_organization_id",
            )
            yield from (row["lead_organization_id"]["S"] for row in rows)


class RefreshUnsent(SafeToLog, Exception):
    """Messages that SQS still refused after all attempts; sending all of them again is safe."""


class FeatureQueue:
    """The feature-refresh queue: asks for refreshes or rebuilds of many leads, up to 50 in a message."""

    def __init__(self, sqs: Any, url: str) -> None:
        self._sqs, self._url = sqs, url

    def request_refresh(self, as_of: str, leads: Iterable[str]) -> tuple[int, int]:
        """Ask for features as of a stamp; returns (number of leads, number of messages).

        Raises RefreshUnsent.
        """
        return self._request(leads, lambda chunk: {"refresh": {"as_of": as_of, "leads": chunk}})

    def request_rebuild(self, leads: Iterable[str], ignores_stored: bool = False) -> tuple[int, int]:
        """Ask for features as the stored events say; returns and raises as request_refresh().

        ignores_stored: items that can be read are rebuilt like damaged ones (FeatureRepair).
        """
        flags = {"anew": True} if ignores_stored else {}
        return self._request(leads, lambda chunk: {"rebuild": {"leads": chunk, **flags}})

    def _request(self, leads: Iterable[str], body: Callable[[list[str]], Any]) -> tuple[int, int]:
        lead_count = message_count = 0
        for leads_by_message in chunks(chunks(leads, LEADS_MAX), CALL_MAX):
            self._send([json.dumps(body(message_leads)) for message_leads in leads_by_message])
            lead_count += sum(map(len, leads_by_message))
            message_count += len(leads_by_message)
        return lead_count, message_count

    def _send(self, bodies: list[str]) -> None:
        unsent = [{"Id": str(index), "MessageBody": body} for index, body in enumerate(bodies)]
        for _ in pauses(SEND_ATTEMPTS_MAX):
            answer = self._sqs.send_message_batch(QueueUrl=self._url, Entries=unsent)
            failed = {entry["Id"] for entry in answer.get("Failed", ())}
            unsent = [entry for entry in unsent if entry["Id"] in failed]
            if not unsent:
                return
        raise RefreshUnsent(f"{len(unsent)} messages to {self._url}")
