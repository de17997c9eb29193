"""Endpoints of outgoing webhooks, in the table WebhookEndpoints.

HookStore has their secrets (adapters/hook_store.py). An EventBridge bus that a setting names is an
endpoint, too. It has the bus's name as its URL, and no item.
"""

import json
import time
from collections.abc import Sequence
from typing import Any

from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import Refresh, get_one, query_all, update_if, write_if
from rules.outgoing.notices import BUS, OWNED_KINDS, Endpoint

FRESH_SECONDS = 20.0  # how long a process uses the endpoints that it has read
REGISTRY = "endpoints"  # the one partition of all endpoints, because they are few
# Why an endpoint is disabled that has no secret yet, or whose end has begun: an admin cannot enable it.
ENDED = "ended"


class NoEndpoint(LookupError):
    """There is no endpoint with this id."""


class EndpointStore:
    """All endpoints of a deployment. bus: the name of an EventBridge bus; "": there is none."""

    def __init__(self, dynamodb: Any, table: str, bus: str = "") -> None:
        self._dynamodb, self._table, self._bus = dynamodb, table, bus
        self._known, self._refresh = list[Endpoint](), Refresh(FRESH_SECONDS)

    def all(self) -> list[Endpoint]:
        """Return all endpoints, the bus first, then the oldest; strongly consistent."""
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="registry = :registry",
            ExpressionAttributeValues=encode_item({":registry": REGISTRY}),
            ConsistentRead=True,
        )
        stored = map(_endpoint_from, items)
        endpoints = [Endpoint(BUS, "", self._bus)] if self._bus else []
        endpoints += sorted(stored, key=lambda endpoint: (endpoint.created_at, endpoint.endpoint_id))
        return endpoints

    def known(self) -> Sequence[Endpoint]:
        """Return all endpoints as they were at most 20 seconds ago."""
        if self._refresh.is_over:
            began_at = time.monotonic()
            self._known = self.all()
            self._refresh.renew(began_at)
        return self._known

    def get(self, endpoint_id: str) -> Endpoint:
        """Return an endpoint, strongly consistent; raises NoEndpoint."""
        if endpoint_id == BUS and self._bus:
            return Endpoint(BUS, "", self._bus)
        item = get_one(self._dynamodb, self._table, {"registry": REGISTRY, "endpoint_id": endpoint_id})
        if item is None:
            raise NoEndpoint(endpoint_id)
        return _endpoint_from(item)

    def put(self, endpoint: Endpoint) -> None:
        """Store an endpoint."""
        self._dynamodb.put_item(TableName=self._table, Item=_endpoint_item(endpoint))

    def touch(self, endpoint_id: str) -> Endpoint:
        """Return an endpoint, by a write that changes nothing. Raises NoEndpoint, and what a write raises."""
        item = update_if(
            self._dynamodb,
            TableName=self._table,
            Key=_key(endpoint_id),
            UpdateExpression="SET created_at = created_at",
            ConditionExpression="attribute_exists(endpoint_id)",
        )
        if item is None:
            raise NoEndpoint(endpoint_id)
        return _endpoint_from(item)

    def set_disabled(self, endpoint_id: str, why: str) -> Endpoint:
        """Disable an endpoint, or enable it if `why` is ""; returns the endpoint. Raises NoEndpoint.

        One that is ENDED stays so.
        """
        may_change = "(attribute_not_exists(disabled) OR disabled <> :ended)"
        write_if(
            self._dynamodb.update_item,
            TableName=self._table,
            Key=_key(endpoint_id),
            UpdateExpression="SET disabled = :why",
            ConditionExpression=f"attribute_exists(endpoint_id) AND {may_change}",
            ExpressionAttributeValues=encode_item({":why": why, ":ended": ENDED}),
        )
        return self.get(endpoint_id)

    def remove(self, endpoint_id: str) -> None:
        """Delete an endpoint, if it is there."""
        self._dynamodb.delete_item(TableName=self._table, Key=_key(endpoint_id))


def _key(endpoint_id: str) -> Item:
    return encode_item({"registry": REGISTRY, "endpoint_id": endpoint_id})


def _endpoint_item(endpoint: Endpoint) -> Item:
    return encode_item(
        {
            "registry": REGISTRY,
            "endpoint_id": endpoint.endpoint_id,
            "organization_id": endpoint.organization_id,
            "url": endpoint.url,
            "types": sorted(endpoint.types) or None,
            "filters": json.dumps(endpoint.filters) if endpoint.filters else None,
            "description": endpoint.description or None,
            "created_at": endpoint.created_at,
            "disabled": endpoint.disabled or None,
            **{kind.whose: sorted(endpoint.whose.get(kind.whose, ())) or None for kind in OWNED_KINDS},
        }
    )


def _endpoint_from(stored: Item) -> Endpoint:
    fields = decode_item(stored)
    return Endpoint(
        fields["endpoint_id"],
        fields["organization_id"],
        fields["url"],
        frozenset(fields.get("types", ())),
        json.loads(fields.get("filters", "{}")),
        fields.get("description", ""),
        fields["created_at"],
        fields.get("disabled", ""),
        {kind.whose: frozenset(fields[kind.whose]) for kind in OWNED_KINDS if kind.whose in fields},
    )
