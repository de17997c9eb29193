"""The Event table: what leads did, kept for good, each event once (by source and external_event_id)."""

from collections.abc import Iterable, Iterator
from typing import Any

from adapters.batches import query_all
from adapters.items import Item, item, plain
from rules.leads import SORT_KEY, LeadEvent, from_item, to_item


class LeadEventStore:
    """Stored events of all leads."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def of_leaves(self, leaves: Iterable[str]) -> Iterator[LeadEvent]:
        """Yield all events of some lead organizations, strongly consistent, each leaf by time."""
        for leaf in leaves:
            stored = query_all(
                self._dynamodb,
                TableName=self._table,
                KeyConditionExpression="lead_organization_id = :leaf",
                ExpressionAttributeValues={":leaf": {"S": leaf}},
                ConsistentRead=True,
            )
            yield from (from_item(plain(each)) for each in stored)


def stored_form(event: LeadEvent) -> Item:
    """Return the event as the table holds it."""
    return item(to_item(event))


def key_of(event: LeadEvent) -> Item:
    """Return the event's key in the table."""
    whole = to_item(event)
    return item({name: whole[name] for name in ("lead_organization_id", SORT_KEY)})
