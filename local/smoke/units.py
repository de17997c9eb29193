"""Counts the request units of DynamoDB that a client uses.

Only the command's own reads and deletions are seen here. What functions use, only CloudWatch can tell: by
table and minute, for all callers together.
"""

from typing import Any

from local.stack import Stack, fresh_client

COUNTED = ("GetItem", "Query", "DeleteItem")


class UnitMeter:
    """The units that one client has used. client: of DynamoDB; it asks for the units of every call."""

    def __init__(self, stack: Stack) -> None:
        self.total = 0.0
        self.client = fresh_client(stack.endpoint_url, stack.region, "dynamodb")
        for operation in COUNTED:
            events = self.client.meta.events
            events.register(f"provide-client-params.dynamodb.{operation}", _ask)
            events.register(f"after-call.dynamodb.{operation}", self._count)

    def _count(self, parsed: dict[str, Any], **_: Any) -> None:
        self.total += float((parsed.get("ConsumedCapacity") or {}).get("CapacityUnits", 0.0))


def _ask(params: dict[str, Any], **_: Any) -> dict[str, Any]:
    return {**params, "ReturnConsumedCapacity": "TOTAL"}
