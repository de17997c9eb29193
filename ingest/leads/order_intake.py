"""Orders in webhooks of shops: what a webhook says is joined to what is known of the order, and the events
that report the difference are stored with it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from adapters.leads.identity_store import Resolution
from adapters.leads.lead_event_store import OrderRecord, OrderStore, StoreOutcome
from adapters.leads.lead_queue import LeadPayloads
from adapters.platform.aws import pauses
from ingest.leads.lead_accept import Envelope, part_digest, stored_event
from ingest.leads.payloads import DecodedEvent, OrderPart, PayloadPart, amount_in
from rules.leads.lead_events import PURCHASE_COMPLETED, LeadEvent
from rules.leads.orders import ORDER, OrderChange, OrderState, contradicts, join_orders, order_changes

ATTEMPTS_MAX = 12
Resolver = Callable[[], Resolution]


class OrderContended(RuntimeError):
    """Others were first in every attempt: the message comes again."""


@dataclass(frozen=True, slots=True)
class OrderIntake:
    """Joins what webhooks say of orders."""

    orders: OrderStore  # where orders are known
    payloads: LeadPayloads  # where large webhooks are kept

    def store(
        self, event: DecodedEvent, part: PayloadPart, sent: Envelope, resolve: Resolver
    ) -> StoreOutcome:
        """Join what a webhook says to what is known. resolve: asks for the lead; called at most once.

        A webhook that names nobody is kept until another one of the order names somebody. DUPLICATE: nothing
        new. CONFLICT: it contradicts what is known, and neither says when it was so.
        """
        order, digest, source = order_of(event), part_digest(part), sent.context.source
        for _ in pauses(ATTEMPTS_MAX):
            stored = self.orders.read(source, order.order_id)
            if stored is not None and (outcome := _unchanged_outcome(stored, event, digest)):
                return outcome
            before = stored.seen if stored else OrderState()
            after = join_orders(before, order.seen)
            # Of an order without a lead no event is stored yet, whatever is known of it.
            changes = order_changes(before if stored and stored.leaf else OrderState(), after)
            if stored and after == before and not changes:
                return StoreOutcome.DUPLICATE
            record = stored or OrderRecord(source, order.order_id, after, digest)
            if order.seen.placed and after.placed == order.seen.placed:
                record = replace(record, body_hash=digest)
            if not record.leaf and not event.identities:
                changes = []
            elif changes and not record.leaf:
                lead = resolve()
                record = replace(record, leaf=lead.leaf, root_id=lead.root_id)
            record, events = _count_changes(replace(record, seen=after), event, sent, changes)
            if events:  # the first one keeps the webhook
                events[0] = self.payloads.with_raw(events[0], part.payload, digest)
            if self.orders.put(record, stored, events):
                return StoreOutcome.STORED
        raise OrderContended(f"order {order.order_id} of {source}")


def order_of(event: DecodedEvent) -> OrderPart:
    """Return the order part of an event; raises ValueError for one without."""
    if event.order is None:
        raise ValueError(f"{event.external_event_id} is about no order")
    return event.order


def _unchanged_outcome(record: OrderRecord, event: DecodedEvent, digest: str) -> StoreOutcome | None:
    """Return what becomes of a webhook that changes nothing; None: it may change something."""
    seen = order_of(event).seen
    both = (record.seen.placed, seen.placed)
    if all(each and not each.version for each in both) and record.body_hash != digest:
        return StoreOutcome.CONFLICT
    if contradicts(record.seen, seen):
        return StoreOutcome.CONFLICT
    names_somebody = bool(event.identities) and not record.leaf
    return (
        StoreOutcome.DUPLICATE
        if join_orders(record.seen, seen) == record.seen and not names_somebody
        else None
    )


def _count_changes(
    record: OrderRecord, event: DecodedEvent, sent: Envelope, changes: list[OrderChange]
) -> tuple[OrderRecord, list[LeadEvent]]:
    """Return the record with the events counted, and the events: `order:7`, the next of it `order:7/2`."""
    event_counts, events, order = dict(record.event_counts), list[LeadEvent](), order_of(event)
    for change in changes:
        number = event_counts[change.key] = event_counts.get(change.key, 0) + 1
        name = f"order:{order.order_id}" if change.key == ORDER else change.key
        decoded = replace(
            event,
            external_event_id=name if number == 1 else f"{name}/{number}",
            event_type=change.event_type,
            occurred_at=change.at,
            payload=_payload(change, order, sent),
        )
        events.append(stored_event(decoded, sent, record.leaf, record.root_id))
    return replace(record, event_counts=event_counts), events


def _payload(change: OrderChange, order: OrderPart, sent: Envelope) -> dict[str, object]:
    amount = amount_in(change.currency, change.amount_minor, sent.context)
    payload: dict[str, object] = {"order_id": order.order_id, **amount}
    if change.event_type == PURCHASE_COMPLETED and order.products:
        payload["products"] = list(order.products)
    return payload
