"""Leases of shares of endpoints: a share has at most one worker at a time, and none during a pause.

A share is a part of an endpoint's lanes. A share that has failed has a pause before the next worker may
begin.
"""

from datetime import datetime
from typing import Any

from adapters.outgoing.notification_items import LEASE
from adapters.platform.items import decode_item, encode_item
from rules.days import stamp

WORKER = "worker"


class WorkerLeases:
    """The leases of all shares of all endpoints."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def begin(self, endpoint_id: str, share: int, now: datetime) -> int | None:
        """Take a share's lease for three minutes; returns how many of its rounds failed in a row.

        None: another worker has the share, or the share has a pause.
        """
        values = {":now": stamp(now), ":until": stamp(now + LEASE)}
        try:
            answer = self._dynamodb.update_item(
                TableName=self._table,
                Key=_worker_key(endpoint_id, share),
                UpdateExpression="SET busy_until = :until",
                ConditionExpression="attribute_not_exists(busy_until) OR busy_until <= :now",
                ExpressionAttributeValues=encode_item(values),
                ReturnValues="ALL_NEW",
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return None
        return int(decode_item(answer["Attributes"]).get("failures", 0))

    def end(self, endpoint_id: str, share: int, failures: int, until: datetime) -> None:
        """Give a share's lease back. The next worker may begin at `until`.

        failures: how many rounds failed in a row.
        """
        self._dynamodb.update_item(
            TableName=self._table,
            Key=_worker_key(endpoint_id, share),
            UpdateExpression="SET busy_until = :until, failures = :failures",
            ExpressionAttributeValues=encode_item({":until": stamp(until), ":failures": failures}),
        )


def _worker_key(endpoint_id: str, share: int) -> dict[str, Any]:
    return encode_item({"holder": f"{WORKER}/{endpoint_id}/{share}", "place": WORKER})
