"""lead-ingestion queue -> whose event it is (PostgreSQL) -> table Event.

A message is a webhook (lead_accept.py), the command to undo a merge, or the daily command `announce`. A
consumer may die between a change of identity and its announcement; `announce` makes up for that. Every step
is idempotent, so if any step fails, the whole message comes again. Poison is kept with its reason.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any

from adapters import clock, settings
from adapters.leads.identity_store import (
    CannotRepair,
    IdentityCache,
    IdentityChange,
    IdentityStore,
    LeadEventKey,
    Resolution,
)
from adapters.leads.lead_event_store import LeadEventStore, OrderRecord, OrderStore, StoreOutcome
from adapters.leads.lead_queue import LeadPayloads, NoPayload
from adapters.logs import Logger
from adapters.platform import aws
from adapters.platform.aws import client, pauses
from adapters.platform.failures import FailureQueue
from adapters.platform.fence import fence_writer
from adapters.platform.queues import Consumer, Deadline, PoisonMessage, SourceQueue, TimeIsUp
from adapters.platform.tables import Unprocessed, chunks
from adapters.postgresql.postgres import database
from adapters.postgresql.sql import PostgresUnavailable
from adapters.privacy.erasers import IdentityEraser, LeadErasureStarter
from adapters.privacy.erasure_jobs import ErasureJobs
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck, tombstones_of
from adapters.settings.leads import LeadsSettings
from ingest.leads.lead_accept import (
    RESERVED,
    BadEnvelope,
    Envelope,
    open_payload,
    part_digest,
    read_envelope,
    stored_event,
)
from ingest.leads.lead_schemas import ANNOUNCE_COMMAND, UNMERGE, UNMERGE_COMMAND
from ingest.leads.payloads import DecodedEvent, ErasurePart, OrderPart, PayloadPart, amount_in
from ingest.web.validate import first_problem
from rules.days import stamp
from rules.json_values import check_strict, read_json
from rules.leads.lead_events import LEADS_MERGED, LEADS_UNMERGED, PURCHASE_COMPLETED, LeadEvent, body_hash
from rules.leads.orders import ORDER, OrderChange, OrderState, contradicts, join_orders, order_changes
from rules.privacy.tombstones import identity_subject, lead_subject

# Stores what a webhook says of an order: the order's new state, and the events that report the difference.


ATTEMPTS_MAX = 12
Resolver = Callable[[], Resolution]
CONSUMER = "leads"
REASONS_MAX = 10
# What one event may take: once a batch, a sleeping database is waited for (adapters/postgresql/rds_data.py).
STEP_SECONDS_MAX = 65
# The moves of one event, of 40 bytes each: a text of the warehouse takes 64 KB, a message 256 KB.
MOVES_MAX = 500


class OrderContended(RuntimeError):
    """Others were first in every attempt: the message comes again."""


@dataclass(frozen=True, slots=True)
class OrderIntake:
    """Joins what webhooks say of orders."""

    orders: OrderStore  # where orders are known
    payloads: LeadPayloads  # where large webhooks are kept

    @classmethod
    def of(cls, events: LeadEventStore, payloads: LeadPayloads) -> "OrderIntake":
        """Return the intake beside a store of events."""
        return cls(events.orders(), payloads)

    def store(self, event: DecodedEvent, part: PayloadPart, sent: Envelope, whose: Resolver) -> StoreOutcome:
        """Join what a webhook says to what is known. whose: asks for the lead, at most once.

        What names nobody is kept until a webhook of the order names somebody. DUPLICATE: nothing new.
        CONFLICT: it contradicts what is known, and neither says when it was so.
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
                lead = whose()
                record = replace(record, leaf=lead.leaf, root_id=lead.root_id)
            record, events = _count_changes(replace(record, seen=after), event, sent, changes)
            if self.orders.put(record, stored, self._with_raw(events, part, digest)):
                return StoreOutcome.STORED
        raise OrderContended(f"order {order.order_id} of {source}")

    def _with_raw(self, events: list[LeadEvent], part: PayloadPart, digest: str) -> list[LeadEvent]:
        """Keep the webhook with the first event that it leaves."""
        return [
            self.payloads.with_raw(each, part.payload, digest) if at == 0 else each
            for at, each in enumerate(events)
        ]


def order_of(event: DecodedEvent) -> OrderPart:
    """Return the order part of an event; raises ValueError for one without."""
    if event.order is None:
        raise ValueError(f"{event.external_event_id} tells of no order")
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
    for each in changes:
        event_counts[each.key] = event_counts.get(each.key, 0) + 1
        name = f"order:{order.order_id}" if each.key == ORDER else each.key
        decoded = replace(
            event,
            external_event_id=name if event_counts[each.key] == 1 else f"{name}/{event_counts[each.key]}",
            event_type=each.event_type,
            occurred_at=each.at,
            payload=_payload(each, order, sent),
        )
        events.append(stored_event(decoded, sent, record.leaf, record.root_id))
    return replace(record, event_counts=event_counts), events


def _payload(change: OrderChange, order: OrderPart, sent: Envelope) -> dict[str, object]:
    amount = amount_in(change.currency, change.amount_minor, sent.context)
    payload: dict[str, object] = {"order_id": order.order_id, **amount}
    if change.event_type == PURCHASE_COMPLETED and order.products:
        payload["products"] = list(order.products)
    return payload


logger = Logger(service="leads")


@dataclass(frozen=True, slots=True)
class LeadConsumer:
    """Stores the events of messages."""

    identities: IdentityStore
    cache: IdentityCache
    events: LeadEventStore
    payloads: LeadPayloads
    currency: str  # currency, phone_regions: the settings
    phone_regions: str = ""
    erased: ErasureCheck = NO_ERASURES
    # Carries out what sources ask to be erased; without it such a message is poison
    erasing: LeadErasureStarter | None = None

    def handle(self, message: Any, now: datetime, is_over: Callable[[], bool] = lambda: False) -> None:
        """Handle one message; raises PoisonMessage if no attempt will get past it.

        is_over: whether the time is up. Then it raises TimeIsUp before the next event; at least one event
        is handled. Those that are stored already cost the next attempt little.
        """
        if isinstance(message, dict) and "command" in message:
            self._command(message, now)
            return
        try:
            sent = read_envelope(message, self.currency, now, self.phone_regions)
        except BadEnvelope as bad:
            raise PoisonMessage(str(bad)) from None
        opened = open_payload(self._payload(sent), sent, now)
        reasons = [str(each) for each in opened.refused]
        reasons += [f"the decoder raised {type(each).__name__}: {each}" for each in opened.broken]
        for index, (event, part) in enumerate(opened.events):
            if index and is_over():
                raise TimeIsUp(f"{index} of {len(opened.events)} events are stored")
            if event.erasure is not None:
                self._erase(event, event.erasure, sent, now)
                continue
            if self._is_erased(event, sent):
                continue
            if event.omissions:
                # The first name of each path is the decoder's own; others may be what somebody has sent.
                fields = sorted({each.field.partition(".")[0] for each in event.omissions})
                logger.info("side fields left out", extra={"source": sent.context.source, "fields": fields})
            if self._store(event, part, sent, now) is StoreOutcome.CONFLICT:
                reasons.append(f"conflict: {event.external_event_id} is stored with another body")
        if reasons:
            raise PoisonMessage("; ".join(reasons[:REASONS_MAX]))

    def _is_erased(self, event: DecodedEvent, sent: Envelope) -> bool:
        """Whether an event is of somebody who was erased, or of before that was lifted."""
        organization = sent.context.organization_id
        happened_at = min(event.occurred_at, sent.context.received_at)
        return any(
            self.erased.forbids(identity_subject(organization, each.channel, each.external_id), happened_at)
            for each in event.identities
        )

    def _erase(self, event: DecodedEvent, asked: ErasurePart, sent: Envelope, now: datetime) -> None:
        """Begin the erasure of a lead of the organization that asks for it; again it changes nothing.

        What leads to the lead is the organization's: its identities, and the orders of this source of it.
        """
        if self.erasing is None:
            raise PoisonMessage("an erasure is asked for, and this process begins none")
        orders = self.events.orders()
        records = (orders.read(sent.context.source, each) for each in asked.order_ids)
        leaves = dict.fromkeys(each.leaf for each in records if each and each.leaf)
        erasure_id = self.erasing.begin(sent.context.organization_id, event.identities, leaves, now)
        logger.info("erasure", extra={"source": sent.context.source, "erasure_id": erasure_id})

    def _payload(self, sent: Envelope) -> Any:
        if sent.payload_ref is None:
            return sent.payload
        try:
            return read_json(self.payloads.read_inbox(sent.payload_ref))
        except NoPayload as reason:
            raise PoisonMessage(f"payload_ref cannot be read: {reason}") from None
        except ValueError as reason:
            raise PoisonMessage(f"payload_ref holds no JSON: {reason}") from None

    def _store(self, event: DecodedEvent, part: PayloadPart, sent: Envelope, now: datetime) -> StoreOutcome:
        """Store an event, unless its external id has been claimed.

        Only a new event may merge leads: a conflicting body must change nothing, and a late resend must not
        redo a merge that an operator has undone. So the consumer reads the claim before it asks PostgreSQL.
        """
        digest, organization = part_digest(part), sent.context.organization_id
        if event.order is not None:
            return OrderIntake.of(self.events, self.payloads).store(
                event, part, sent, lambda: self._whose(event, sent, now)
            )
        whose = self._cached_lead(organization, event)
        if whose is None:
            outcome = self.events.claimed(sent.context.source, event.external_event_id, digest)
            if outcome is not None:
                return outcome
            whose = self._resolve(event, sent, now)
        stored = stored_event(event, sent, whose.leaf, whose.root_id)
        return self.events.put_new(self.payloads.with_raw(stored, part.payload, digest), digest)

    def _whose(self, event: DecodedEvent, sent: Envelope, now: datetime) -> Resolution:
        cached = self._cached_lead(sent.context.organization_id, event)
        return cached or self._resolve(event, sent, now)

    def _cached_lead(self, organization: str, event: DecodedEvent) -> Resolution | None:
        """Return the lead that Redis remembers, unless it was erased: PostgreSQL knows it no more."""
        found = self.cache.get(organization, event.identities)
        is_gone = found is not None and self.erased.of(lead_subject(found.leaf)) is not None
        return None if is_gone else found

    def _resolve(self, event: DecodedEvent, sent: Envelope, now: datetime) -> Resolution:
        """Find or make the lead, and announce what that changed.

        The claim comes later. So if the process dies here, the message comes again and announces the rest.
        """
        organization = sent.context.organization_id
        evidence = LeadEventKey(sent.context.source, event.external_event_id)
        found = self.identities.resolve(organization, event.identities, evidence, now)
        self._announce(found.changes, now)
        self.cache.remember(organization, event.identities, found)
        return found

    def _announce(self, changes: Iterable[IdentityChange], now: datetime) -> None:
        """Store each change as an event of its organization, then mark it as announced."""
        listed = tuple(changes)
        for event in (each for change in listed for each in change_events(change, now)):
            if self.events.put_new(event, body_hash(event.payload)) is StoreOutcome.CONFLICT:
                raise RuntimeError(f"{event.external_event_id} of {event.source} was told in another way")
        if listed:
            self.identities.note_announced(listed)

    def _command(self, message: dict[str, Any], now: datetime) -> None:
        if message["command"] == ANNOUNCE_COMMAND:
            self._announce(self.identities.pending(), now)
        elif message["command"] == UNMERGE_COMMAND:
            self._unmerge(message, now)
        else:
            raise PoisonMessage(f"command must be {UNMERGE_COMMAND} or {ANNOUNCE_COMMAND}")

    def _unmerge(self, message: dict[str, Any], now: datetime) -> None:
        try:
            check_strict(message)
        except ValueError as reason:
            raise PoisonMessage(str(reason)) from None
        if problem := first_problem(UNMERGE, message):
            raise PoisonMessage(" ".join(problem))
        try:
            changes = self.identities.unmerge(
                message.get("organization_id"), message["change"], message["reason"], message["by"], now
            )
        except CannotRepair as reason:
            if not str(reason).startswith(f"change {message['change']} has been undone"):
                raise PoisonMessage(str(reason)) from None
            # The merge is undone, as asked. An earlier attempt may have died before it announced that.
            changes = self.identities.pending()
        self._announce(changes, now)


def change_events(change: IdentityChange, now: datetime) -> Iterator[LeadEvent]:
    """Yield the events that report a change to its organization, in parts: `7`, the next of it `7/2`.

    Only received_at differs between attempts.
    """
    organization, first = change.organization_id, change.groups[0].root
    moves = ((group.root, leaf) for group in change.groups for leaf in group.leaves)
    for part, some in enumerate(chunks(moves, MOVES_MAX), 1):
        leaves_by_root = {root: [root] for root, _ in some}
        for root, leaf in some:
            leaves_by_root[root] += [leaf] if leaf != root else []
        groups = [{"root": root, "leaves": leaves} for root, leaves in leaves_by_root.items()]
        yield LeadEvent(
            organization_id=organization,
            lead_organization_id=first,
            root_id=first,
            source=f"{organization}/{RESERVED}",
            source_type=RESERVED,
            external_event_id=str(change.number) if part == 1 else f"{change.number}/{part}",
            event_type=LEADS_UNMERGED if change.kind == "unmerged" else LEADS_MERGED,
            occurred_at=stamp(change.at),
            received_at=stamp(now),
            payload={"change": change.number, "groups": groups, **change.note},
        )


def _is_unavailable(error: Exception) -> bool:
    """Whether a store is away, which is no fault of the message."""
    if isinstance(error, PostgresUnavailable):
        return error.is_away
    return isinstance(error, Unprocessed) or aws.is_away(error)


@cache
def _parts() -> tuple[LeadConsumer, Consumer]:
    config, dynamodb = settings.read_settings(LeadsSettings), fence_writer(client("dynamodb"))
    identities, tombstones = database(config.identity_url), tombstones_of(config)
    jobs = ErasureJobs(dynamodb, config.erasures_table)
    consumer = LeadConsumer(
        IdentityStore(identities),
        IdentityCache(config.redis_url),
        LeadEventStore(dynamodb, config.event_table, config.idempotency_keys_table),
        LeadPayloads(lambda: client("s3"), config.payload_bucket),
        config.currency,
        config.phone_regions,
        tombstones,
        LeadErasureStarter(IdentityEraser(identities), jobs, tombstones),
    )
    failures = FailureQueue(lambda: client("sqs"), config.failure_queue_url)
    line = SourceQueue(lambda: client("sqs"), config.lead_queue_url, _is_unavailable)
    return consumer, Consumer(CONSUMER, failures, logger, line)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: an SQS batch; the answer lists what must come again. Or the end of a smoke test."""
    consumer, queue = _parts()
    if "streakline_forget" in event:
        return {"left": consumer.identities.forget(event["streakline_forget"])}
    now, is_over = clock.now(), Deadline(context, STEP_SECONDS_MAX).is_over
    return queue.serve(event, lambda message: consumer.handle(message, now, is_over), now, is_over)
