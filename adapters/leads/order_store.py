"""The orders of shops, from which their events are derived. The records are in the table IdempotencyKeys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.leads.lead_event_store import CLAIM_KEY, write_together
from adapters.platform.items import decode_item, encode_item
from rules.leads.lead_events import LeadEvent, to_item
from rules.leads.orders import OrderState, from_text, to_text


@dataclass(frozen=True, slots=True)
class OrderRecord:
    """An order of a source, joined from all its webhooks so far."""

    source: str  # "acme/ecommerce"
    order_id: str  # "7"
    state: OrderState
    # Of the webhook whose placing of the order counts; or of the first webhook, if none has a placing yet
    body_hash: str
    # The lead whose order it is; "" while the order counts nothing, or no webhook has named anybody
    leaf: str = ""
    root_id: str = ""  # the leaf's root at that time
    event_counts: Mapping[str, int] = field(default_factory=dict)  # stored events by OrderChange.key


class OrderStore:
    """The record of each order, in the table IdempotencyKeys."""

    def __init__(self, dynamodb: Any, event_table: str, claims_table: str) -> None:
        self._dynamodb, self._events, self._claims = dynamodb, event_table, claims_table

    def read(self, source: str, order_id: str) -> OrderRecord | None:
        """Return an order, strongly consistent; None if nothing is known of it."""
        key = encode_item(_key(source, order_id))
        answer = self._dynamodb.get_item(TableName=self._claims, Key=key, ConsistentRead=True)
        return _order_record(source, order_id, answer["Item"]) if "Item" in answer else None

    def put(self, record: OrderRecord, before: OrderRecord | None, events: Sequence[LeadEvent]) -> bool:
        """Store an order and the events that report its change, in one request.

        False: somebody else was first, and nothing is written. Raises Unprocessed if DynamoDB would not
        decide; it is safe to repeat.
        """
        claim = _order_claim(_key(record.source, record.order_id), record)
        request = [{"Put": {"TableName": self._claims, "Item": claim, **_unchanged_condition(before)}}]
        new = {"ConditionExpression": "attribute_not_exists(lead_organization_id)"}
        request += [
            {"Put": {"TableName": self._events, "Item": encode_item(to_item(event)), **new}}
            for event in events
        ]
        return write_together(self._dynamodb, request) is None


def _key(source: str, order_id: str) -> dict[str, str]:
    return {"user_id": f"{source}#order:{order_id}", "idempotency_key": CLAIM_KEY}


def _order_claim(key: dict[str, str], record: OrderRecord) -> dict[str, Any]:
    fields = {"order": to_text(record.state), "told": record.event_counts, "body_hash": record.body_hash}
    return encode_item({**key, **fields, "leaf": record.leaf, "root_id": record.root_id})


def _unchanged_condition(before: OrderRecord | None) -> dict[str, Any]:
    if before is None:
        return {"ConditionExpression": "attribute_not_exists(user_id)"}
    return {
        "ConditionExpression": "#order = :order AND leaf = :leaf",
        "ExpressionAttributeNames": {"#order": "order"},
        "ExpressionAttributeValues": encode_item({":order": to_text(before.state), ":leaf": before.leaf}),
    }


def _order_record(source: str, order_id: str, stored: dict[str, Any]) -> OrderRecord:
    fields = decode_item(stored)
    state = from_text(fields["order"])
    return OrderRecord(
        source=source,
        order_id=order_id,
        state=state,
        body_hash=fields["body_hash"],
        leaf=fields["leaf"],
        root_id=fields["root_id"],
        event_counts=fields["told"],
    )
