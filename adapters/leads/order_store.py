"""What is known of each shop's order: in the order's claim, beside its lead. Table IdempotencyKeys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.platform.aws import THROTTLES, pauses
from adapters.platform.items import item, plain
from adapters.platform.tables import Unprocessed
from rules.leads.lead_events import LeadEvent, to_item
from rules.leads.orders import OrderSeen, from_text, to_text

ATTEMPTS_MAX = 8
REFUSED = "ConditionalCheckFailed"


@dataclass(frozen=True, slots=True)
class OrderRecord:
    """An order of a source, `acme/ecommerce` and `7`.

    body_hash: of the webhook that told how the order was placed, or made the record. leaf: "" while the order
    counts nothing or no webhook has named anybody, and so it is nobody's. told: how many events there are, by
    key.
    """

    source: str
    order_id: str
    seen: OrderSeen
    body_hash: str
    leaf: str = ""
    root_id: str = ""
    told: Mapping[str, int] = field(default_factory=dict)


class OrderStore:
    """What is known of orders."""

    def __init__(self, dynamodb: Any, event_table: str, claims_table: str, claim_key: str) -> None:
        self._dynamodb, self._events, self._claims = dynamodb, event_table, claims_table
        self._claim_key = claim_key

    def read(self, source: str, order_id: str) -> OrderRecord | None:
        """Return an order, strongly consistent; None if nothing is known of it."""
        key = item(self._key(source, order_id))
        answer = self._dynamodb.get_item(TableName=self._claims, Key=key, ConsistentRead=True)
        return _record(source, order_id, answer["Item"]) if "Item" in answer else None

    def put(self, record: OrderRecord, before: OrderRecord | None, events: Sequence[LeadEvent]) -> bool:
        """Store an order and the events that tell its change, in one request.

        False: somebody else was first, and nothing is written. Raises Unprocessed if DynamoDB would not
        decide; it is safe to repeat.
        """
        claim = _claim(self._key(record.source, record.order_id), record)
        request = [{"Put": {"TableName": self._claims, "Item": claim, **_unless_changed(before)}}]
        new = {"ConditionExpression": "attribute_not_exists(lead_organization_id)"}
        request += [
            {"Put": {"TableName": self._events, "Item": item(to_item(each)), **new}} for each in events
        ]
        for _ in pauses(ATTEMPTS_MAX):
            try:
                self._dynamodb.transact_write_items(TransactItems=request)
            except self._dynamodb.exceptions.TransactionCanceledException as error:
                codes = {each.get("Code") for each in error.response.get("CancellationReasons", [])}
                if REFUSED in codes:
                    return False
                if not THROTTLES & codes:
                    raise
            else:
                return True
        raise Unprocessed(f"{self._events}: an order left unstored")

    def _key(self, source: str, order_id: str) -> dict[str, str]:
        return {"user_id": f"{source}#order:{order_id}", "idempotency_key": self._claim_key}


def _claim(key: dict[str, str], record: OrderRecord) -> dict[str, Any]:
    known = {"order": to_text(record.seen), "told": record.told, "body_hash": record.body_hash}
    return item({**key, **known, "leaf": record.leaf, "root_id": record.root_id})


def _unless_changed(before: OrderRecord | None) -> dict[str, Any]:
    if before is None:
        return {"ConditionExpression": "attribute_not_exists(user_id)"}
    return {
        "ConditionExpression": "#order = :known AND leaf = :leaf",
        "ExpressionAttributeNames": {"#order": "order"},
        "ExpressionAttributeValues": item({":known": to_text(before.seen), ":leaf": before.leaf}),
    }


def _record(source: str, order_id: str, stored: dict[str, Any]) -> OrderRecord:
    read = plain(stored)
    more = (read["body_hash"], read["leaf"], read["root_id"], read["told"])
    return OrderRecord(source, order_id, from_text(read["order"]), *more)
