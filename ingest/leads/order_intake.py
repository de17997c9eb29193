"""Stores what a webhook tells of an order: the order's new state, and the events that tell the difference."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from adapters.leads.identity_store import Resolution
from adapters.leads.lead_event_store import LeadEventStore, OrderRecord, OrderStore, StoreOutcome
from adapters.leads.lead_queue import LeadPayloads
from adapters.platform.aws import pauses
from ingest.leads.decoding import DecodedEvent, OrderPart, PayloadPart
from ingest.leads.lead_accept import Envelope, part_digest, stored_event
from ingest.leads.payload_fields import amount_in
from rules.leads.lead_events import PURCHASE_COMPLETED, LeadEvent
from rules.leads.orders import ORDER, OrderChange, OrderSeen, changes, contradicts, join

ATTEMPTS_MAX = 12
Whose = Callable[[], Resolution]


class OrderContended(RuntimeError):
    """Others were first in every attempt: the message comes again."""


@dataclass(frozen=True, slots=True)
class OrderIntake:
    """orders: where orders are known. payloads: where large webhooks are kept."""

    orders: OrderStore
    payloads: LeadPayloads

    @classmethod
    def of(cls, events: LeadEventStore, payloads: LeadPayloads) -> "OrderIntake":
        """Return the intake beside a store of events."""
        return cls(events.orders(), payloads)

    def store(self, event: DecodedEvent, part: PayloadPart, sent: Envelope, whose: Whose) -> StoreOutcome:
        """Join what a webhook tells to what is known. whose: asks for the lead, at most once.

        What names nobody is kept until a webhook of the order names somebody. DUPLICATE: nothing new.
        CONFLICT: it contradicts what is known, and neither says when it was so.
        """
        told, digest, source = order_of(event), part_digest(part), sent.context.source
        for _ in pauses(ATTEMPTS_MAX):
            known = self.orders.read(source, told.order_id)
            if known is not None and (outcome := _settled(known, event, digest)):
                return outcome
            before = known.seen if known else OrderSeen()
            after = join(before, told.seen)
            # Of an order without a lead nothing has been told yet, whatever is known of it.
            found = changes(before if known and known.leaf else OrderSeen(), after)
            if known and after == before and not found:
                return StoreOutcome.DUPLICATE
            record = known or OrderRecord(source, told.order_id, after, digest)
            if told.seen.placed and after.placed == told.seen.placed:
                record = replace(record, body_hash=digest)
            if not record.leaf and not event.identities:
                found = []
            elif found and not record.leaf:
                lead = whose()
                record = replace(record, leaf=lead.leaf, root_id=lead.root_id)
            record, events = _told(replace(record, seen=after), event, sent, found)
            if self.orders.put(record, known, self._with_raw(events, part, digest)):
                return StoreOutcome.STORED
        raise OrderContended(f"order {told.order_id} of {source}")

    def _with_raw(self, events: list[LeadEvent], part: PayloadPart, digest: str) -> list[LeadEvent]:
        """Keep the webhook with the first event that it leaves."""
        return [
            self.payloads.with_raw(each, part.payload, digest) if at == 0 else each
            for at, each in enumerate(events)
        ]


def order_of(event: DecodedEvent) -> OrderPart:
    """Return what an event tells of an order; raises ValueError for one that tells of none."""
    if event.order is None:
        raise ValueError(f"{event.external_event_id} tells of no order")
    return event.order


def _settled(known: OrderRecord, event: DecodedEvent, digest: str) -> StoreOutcome | None:
    """Return what becomes of a webhook that changes nothing; None: it may change something."""
    seen = order_of(event).seen
    both = (known.seen.placed, seen.placed)
    if all(each and not each.version for each in both) and known.body_hash != digest:
        return StoreOutcome.CONFLICT
    if contradicts(known.seen, seen):
        return StoreOutcome.CONFLICT
    names_somebody = bool(event.identities) and not known.leaf
    return StoreOutcome.DUPLICATE if join(known.seen, seen) == known.seen and not names_somebody else None


def _told(
    record: OrderRecord, event: DecodedEvent, sent: Envelope, found: list[OrderChange]
) -> tuple[OrderRecord, list[LeadEvent]]:
    """Return the record with the events counted, and the events: `order:7`, the next of it `order:7/2`."""
    told, events, order = dict(record.told), list[LeadEvent](), order_of(event)
    for each in found:
        told[each.key] = told.get(each.key, 0) + 1
        name = f"order:{order.order_id}" if each.key == ORDER else each.key
        decoded = replace(
            event,
            external_event_id=name if told[each.key] == 1 else f"{name}/{told[each.key]}",
            event_type=each.event_type,
            occurred_at=each.at,
            payload=_payload(each, order, sent),
        )
        events.append(stored_event(decoded, sent, record.leaf, record.root_id))
    return replace(record, told=told), events


def _payload(change: OrderChange, order: OrderPart, sent: Envelope) -> dict[str, object]:
    amount = amount_in(change.currency, change.amount_minor, sent.context)
    payload: dict[str, object] = {"order_id": order.order_id, **amount}
    if change.event_type == PURCHASE_COMPLETED and order.products:
        payload["products"] = list(order.products)
    return payload
