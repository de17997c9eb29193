"""The Event table: what leads did, each event once, kept for good; and the orders that events follow from.

An event is stored together with its claim in the table IdempotencyKeys, which says that its id is taken.
Orders are in that table, too.
"""

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from enum import StrEnum
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import Action, get_all, get_one, query_all, transact_until_decided
from rules.leads.lead_events import SORT_KEY, TYPE_KEY, LeadEvent, MalformedLeadEvent, from_item, to_item
from rules.leads.orders import OrderChange, OrderState, from_text, to_text

UNDECIDED = "events of a lead are left unstored"
# The sort key of lead events' claims in the table IdempotencyKeys, which has users' keys too. Their partition
# key is `{source}#{external_event_id}`. No user id has a `#`.
CLAIM_KEY = "lead-event"
EVENTS_MAX = 99  # beside their order in one transaction, which DynamoDB limits to 100 writes
IDEMPOTENCY_INDEX, TYPE_INDEX = "idempotency-index", "event-type-index"


@dataclass(frozen=True, slots=True)
class EventPage:
    """Which events are asked for: since <= `occurred_at#id` < until."""

    event_type: str  # "" for all types
    since: str
    until: str
    limit: int


class StoreOutcome(StrEnum):
    """What became of an event that was to be stored."""

    STORED = "stored"
    DUPLICATE = "duplicate"  # an event with the same id and body is stored
    CONFLICT = "conflict"  # an event with the same id and another body is stored


class LeadEventStore:
    """Stored events of all leads, and their claims in the table of idempotency keys."""

    def __init__(self, dynamodb: Any, table: str, claims_table: str = "") -> None:
        """claims_table: only put_new and claimed need it."""
        self._dynamodb, self._table, self._claims = dynamodb, table, claims_table

    def put_new(self, event: LeadEvent, body_hash: str) -> StoreOutcome:
        """Store an event and its claim in one request, unless its external id has been claimed.

        If it has, nothing is written. Raises Unprocessed if DynamoDB would not decide; it is safe to repeat.
        """
        actions = [
            _put_new(self._claims, _claim(event, body_hash), "user_id"),
            _put_new(self._table, event_item(event), "lead_organization_id"),
        ]
        reasons = transact_until_decided(self._dynamodb, actions, UNDECIDED)
        if not reasons:
            return StoreOutcome.STORED
        if "Item" in reasons[0]:  # the claim that refused the event
            return _outcome(reasons[0]["Item"], body_hash)
        # If there is no claim, another event has this event's key in the table. That should never happen.
        return self.claimed(event.source, event.external_event_id, body_hash) or StoreOutcome.CONFLICT

    def claimed(self, source: str, external_event_id: str, body_hash: str) -> StoreOutcome | None:
        """Return DUPLICATE or CONFLICT for an event whose id has been claimed; None if it has not."""
        key = {"user_id": f"{source}#{external_event_id}", "idempotency_key": CLAIM_KEY}
        claim = get_one(self._dynamodb, self._claims, key)
        return _outcome(claim, body_hash) if claim else None

    def of_leaves(self, leaves: Iterable[str]) -> Iterator[LeadEvent]:
        """Yield all events of lead organizations, strongly consistent, each leaf's by time.

        Malformed items are left out: processors/leads/lead_events.py keeps them, with reasons.
        """
        for leaf in leaves:
            stored = query_all(
                self._dynamodb,
                TableName=self._table,
                KeyConditionExpression="lead_organization_id = :leaf",
                ExpressionAttributeValues={":leaf": {"S": leaf}},
                ConsistentRead=True,
            )
            yield from (event for event in map(_read, stored) if event is not None)

    def of_keys(self, keys: Iterable[Mapping[str, str]]) -> Iterator[LeadEvent]:
        """Yield the events that have these keys, strongly consistent, in no order; else as of_leaves()."""
        stored = get_all(self._dynamodb, self._table, keys)
        return (event for event in map(_read, stored) if event is not None)

    def rows_of_keys(self, keys: Iterable[Mapping[str, str]]) -> list[dict[str, Any]]:
        """Return the items that have these keys, as table attributes, strongly consistent, in no order."""
        return [decode_item(item) for item in get_all(self._dynamodb, self._table, keys)]

    def leaf_of(self, source: str, external_event_id: str) -> str | None:
        """Return the leaf that an event belongs to, by the event's external id.

        None for an unknown id, and for a moment also after an event was stored: the index follows the table.
        """
        page = self._dynamodb.query(
            TableName=self._table,
            IndexName=IDEMPOTENCY_INDEX,
            KeyConditionExpression="#source = :source AND external_event_id = :id",
            ExpressionAttributeNames={"#source": "source"},
            ExpressionAttributeValues=encode_item({":source": source, ":id": external_event_id}),
        )
        return str(page["Items"][0]["lead_organization_id"]["S"]) if page["Items"] else None

    def organization_of(self, leaf: str) -> str | None:
        """Return the organization that a leaf's events are of; None if the leaf has no event."""
        page = self._dynamodb.query(
            TableName=self._table,
            KeyConditionExpression="lead_organization_id = :leaf",
            ExpressionAttributeValues={":leaf": {"S": leaf}},
            ProjectionExpression="organization_id",
            ConsistentRead=True,
            Limit=1,
        )
        return str(page["Items"][0]["organization_id"]["S"]) if page["Items"] else None

    def newest(self, leaves: Iterable[str], page: EventPage) -> list[dict[str, Any]]:
        """Return events of lead organizations, newest first over all of them, as table attributes.

        It makes a query for each leaf, of at most `limit` + 1 events. For events of one type it reads keys
        from an index in the same way, and then the items. The index follows the table, so an event may be
        missing for a moment after it was stored.
        """
        read = self._keys_of_type if page.event_type else self._events_of_leaf
        rows = [row for leaf in leaves for row in islice(read(leaf, page), page.limit)]
        newest = heapq.nlargest(page.limit, rows, key=itemgetter(SORT_KEY))
        if not page.event_type:
            return newest
        return sorted(self.rows_of_keys(newest), key=itemgetter(SORT_KEY), reverse=True)

    def _keys_of_type(self, leaf: str, page: EventPage) -> Iterator[dict[str, Any]]:
        """Yield the keys of a leaf's events of a type, newest first.

        The index orders by time alone, so events of one instant are sorted here.
        """
        first, last = (f"{page.event_type}#{key.partition('#')[0]}" for key in (page.since, page.until))
        stored = query_all(
            self._dynamodb,
            TableName=self._table,
            IndexName=TYPE_INDEX,
            KeyConditionExpression="lead_organization_id = :leaf AND #at BETWEEN :first AND :last",
            ExpressionAttributeNames={"#at": TYPE_KEY},
            ExpressionAttributeValues=encode_item({":leaf": leaf, ":first": first, ":last": last}),
            ScanIndexForward=False,
            Limit=page.limit + 1,
        )
        for _, rows_of_instant in groupby(map(decode_item, stored), key=itemgetter(TYPE_KEY)):
            for row in sorted(rows_of_instant, key=itemgetter(SORT_KEY), reverse=True):
                if page.since <= row[SORT_KEY] < page.until:
                    yield {name: row[name] for name in ("lead_organization_id", SORT_KEY)}

    def _events_of_leaf(self, leaf: str, page: EventPage) -> Iterator[dict[str, Any]]:
        stored = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="lead_organization_id = :leaf AND #at BETWEEN :since AND :until",
            ExpressionAttributeNames={"#at": SORT_KEY},
            ExpressionAttributeValues=encode_item(
                {":leaf": leaf, ":since": page.since, ":until": page.until}
            ),
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=page.limit + 1,
        )
        # BETWEEN has both ends, and `until` is not asked for.
        return (row for row in map(decode_item, stored) if row[SORT_KEY] != page.until)


def event_item(event: LeadEvent) -> Item:
    """Return the event as the table holds it."""
    return encode_item(to_item(event))


def _read(stored: Item) -> LeadEvent | None:
    try:
        return from_item(decode_item(stored))
    except MalformedLeadEvent:
        return None


def _outcome(claim: Item, body_hash: str) -> StoreOutcome:
    """Return what a claim says of another event with its id.

    A claim that was restored has no digest (rule 21), so the event counts as a duplicate.
    """
    stored_hash = claim.get("body_hash", {}).get("S", body_hash)
    return StoreOutcome.DUPLICATE if stored_hash == body_hash else StoreOutcome.CONFLICT


def _claim(event: LeadEvent, body_hash: str) -> Item:
    """Return the claim as table attributes, without a time to live: events of leads are kept for good."""
    return encode_item(
        {
            "user_id": f"{event.source}#{event.external_event_id}",
            "idempotency_key": CLAIM_KEY,
            "body_hash": body_hash,
            "target": f"{event.lead_organization_id}#{event.sort_key}",
            "created_at": event.received_at,
        }
    )


def _put_new(table: str, item: Item, key: str) -> Action:
    """Return the action that puts an item if there is none; a refusal brings along the one that there is.

    key: the name of the table's partition key.
    """
    put = {
        "TableName": table,
        "Item": item,
        "ConditionExpression": f"attribute_not_exists({key})",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    return {"Put": put}


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
    # Changes of the state whose events are not stored yet: a transaction takes at most EVENTS_MAX
    unreported_changes: tuple[OrderChange, ...] = ()


class OrderStore:
    """The record of each order, in the table IdempotencyKeys."""

    def __init__(self, dynamodb: Any, event_table: str, claims_table: str) -> None:
        self._dynamodb, self._events, self._claims = dynamodb, event_table, claims_table

    def read(self, source: str, order_id: str) -> OrderRecord | None:
        """Return an order, strongly consistent; None if nothing is known of it."""
        item = get_one(self._dynamodb, self._claims, _key(source, order_id))
        return _order_record(source, order_id, item) if item else None

    def put(self, record: OrderRecord, before: OrderRecord | None, events: Sequence[LeadEvent]) -> bool:
        """Store an order and the events that report its change, at most EVENTS_MAX of them, in one request.

        False: somebody else was first, and nothing is written. Raises Unprocessed if DynamoDB would not
        decide; it is safe to repeat.
        """
        put_order = {"TableName": self._claims, "Item": _order_item(record), **_unchanged_condition(before)}
        put_events = [_put_new(self._events, event_item(event), "lead_organization_id") for event in events]
        return not transact_until_decided(self._dynamodb, [{"Put": put_order}, *put_events], UNDECIDED)


def _key(source: str, order_id: str) -> dict[str, str]:
    return {"user_id": f"{source}#order:{order_id}", "idempotency_key": CLAIM_KEY}


def _order_item(record: OrderRecord) -> Item:
    fields = {
        "order": to_text(record.state),
        "event_counts": record.event_counts,
        "body_hash": record.body_hash,
    }
    key = _key(record.source, record.order_id)
    unreported = {"unreported": _changes_text(record.unreported_changes)} if record.unreported_changes else {}
    return encode_item({**key, **fields, "leaf": record.leaf, "root_id": record.root_id, **unreported})


def _changes_text(changes: Iterable[OrderChange]) -> str:
    return json.dumps([astuple(change) for change in changes])


def _unchanged_condition(before: OrderRecord | None) -> dict[str, Any]:
    if before is None:
        return {"ConditionExpression": "attribute_not_exists(user_id)"}
    # Each write of an order without a change of its state or lead stores events, and so changes their counts.
    values = {":order": to_text(before.state), ":leaf": before.leaf, ":counts": before.event_counts}
    return {
        "ConditionExpression": "#order = :order AND leaf = :leaf AND event_counts = :counts",
        "ExpressionAttributeNames": {"#order": "order"},
        "ExpressionAttributeValues": encode_item(values),
    }


def _order_record(source: str, order_id: str, stored: Item) -> OrderRecord:
    fields = decode_item(stored)
    return OrderRecord(
        source=source,
        order_id=order_id,
        state=from_text(fields["order"]),
        body_hash=fields["body_hash"],
        leaf=fields["leaf"],
        root_id=fields["root_id"],
        event_counts=fields["event_counts"],
        unreported_changes=tuple(
            OrderChange(*values) for values in json.loads(fields.get("unreported", "[]"))
        ),
    )
