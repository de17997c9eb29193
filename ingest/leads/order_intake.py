"""Orders in webhooks of shops. A webhook's state of an order is joined to the stored state.

The events that report the difference are stored with the new state.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from adapters.leads.identity_store import Resolution
from adapters.leads.lead_event_store import StoreOutcome
from adapters.leads.lead_queue import LeadPayloads
from adapters.leads.order_store import OrderRecord, OrderStore
from adapters.platform.aws import pauses
from ingest.leads.lead_accept import Envelope, part_digest, stored_event
from ingest.leads.payloads import DecodedEvent, OrderPart, PayloadPart
from ingest.leads.readers import amount_in
from rules.leads.lead_events import PURCHASE_COMPLETED, LeadEvent
from rules.leads.orders import ORDER, OrderChange, OrderState, contradicts, join_orders, order_changes

ATTEMPTS_MAX = 12
Resolver = Callable[[], Resolution]


class OrderContended(RuntimeError):
    """Other writers were first in every attempt. The message comes again."""


@dataclass(frozen=True, slots=True)
class OrderIntake:
    """Joins the states of orders in webhooks to the stored ones."""

    orders: OrderStore
    payloads: LeadPayloads  # stores large webhooks

    def store(
        self, event: DecodedEvent, part: PayloadPart, envelope: Envelope, resolve: Resolver
    ) -> StoreOutcome:
        """Join a webhook's state of an order to the stored one; returns the outcome for the webhook.

        DUPLICATE: it has nothing new. CONFLICT: it contradicts the stored state, and neither has a version.
        If no webhook of the order has named a lead yet, the state is stored without events. resolve: finds
        the lead of this webhook; called at most once. Raises OrderContended.
        """
        order, digest, source = order_of(event), part_digest(part), envelope.context.source
        for _ in pauses(ATTEMPTS_MAX):
            stored = self.orders.read(source, order.order_id)
            if stored is not None and (outcome := _unchanged_outcome(stored, event, digest)):
                return outcome
            before = stored.state if stored else OrderState()
            after = join_orders(before, order.state)
            # An order without a lead has no stored events yet. So all of its state is a change.
            changes = order_changes(before if stored and stored.leaf else OrderState(), after)
            if stored and after == before and not changes:
                return StoreOutcome.DUPLICATE
            record = stored or OrderRecord(source, order.order_id, after, digest)
            if order.state.placed and after.placed == order.state.placed:
                record = replace(record, body_hash=digest)
            if not record.leaf and not event.identities:
                changes = []
            elif changes and not record.leaf:
                lead = resolve()
                record = replace(record, leaf=lead.leaf, root_id=lead.root_id)
            record, events = _count_changes(replace(record, state=after), event, envelope, changes)
            if events:  # the webhook is stored once, as the raw payload of the first event
                events[0] = self.payloads.with_raw(events[0], part.payload, digest)
            if self.orders.put(record, stored, events):
                return StoreOutcome.STORED
        raise OrderContended(f"order {order.order_id} of {source}")


def order_of(event: DecodedEvent) -> OrderPart:
    """Return the order part of an event; raises ValueError for an event without one."""
    if event.order is None:
        raise ValueError(f"{event.external_event_id} is about no order")
    return event.order


def _unchanged_outcome(record: OrderRecord, event: DecodedEvent, digest: str) -> StoreOutcome | None:
    """Return the outcome for a webhook that changes nothing; None: it may change something."""
    state = order_of(event).state
    placings = (record.state.placed, state.placed)
    have_no_version = all(placed and not placed.version for placed in placings)
    if have_no_version and record.body_hash != digest:
        return StoreOutcome.CONFLICT
    if contradicts(record.state, state):
        return StoreOutcome.CONFLICT
    names_lead = bool(event.identities) and not record.leaf
    is_known = join_orders(record.state, state) == record.state
    return StoreOutcome.DUPLICATE if is_known and not names_lead else None


def _count_changes(
    record: OrderRecord, event: DecodedEvent, envelope: Envelope, changes: list[OrderChange]
) -> tuple[OrderRecord, list[LeadEvent]]:
    """Return (record, events): the events that report the changes, and the record with them counted.

    The events' ids are `order:7`, then `order:7/2`.
    """
    event_counts, events, order = dict(record.event_counts), list[LeadEvent](), order_of(event)
    for change in changes:
        number = event_counts[change.key] = event_counts.get(change.key, 0) + 1
        base_id = f"order:{order.order_id}" if change.key == ORDER else change.key
        decoded = replace(
            event,
            external_event_id=base_id if number == 1 else f"{base_id}/{number}",
            event_type=change.event_type,
            occurred_at=change.at,
            payload=_payload(change, order, envelope),
        )
        events.append(stored_event(decoded, envelope, record.leaf, record.root_id))
    return replace(record, event_counts=event_counts), events


def _payload(change: OrderChange, order: OrderPart, envelope: Envelope) -> dict[str, object]:
    amount = amount_in(change.currency, change.amount_minor, envelope.context)
    payload: dict[str, object] = {"order_id": order.order_id, **amount}
    if change.event_type == PURCHASE_COMPLETED and order.products:
        payload["products"] = list(order.products)
    return payload
