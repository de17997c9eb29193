"""Consumes the lead-ingestion queue: finds each event's lead in PostgreSQL, and stores it in the table Event.

A message is a webhook (lead_accept.py), the command to undo a merge, or the daily command `announce`.
LeadConsumer.handle takes one message; of an event about an order, the changes of the order's state are stored
in its place (rules.leads.orders). Every step is idempotent, so if any step fails, the whole message comes
again. A consumer may die between a change of identity and its announcement; then `announce` announces it.
Poison is kept with its reason.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.leads.erasers import IdentityEraser
from adapters.leads.erasures import LeadErasureStarter
from adapters.leads.identity_store import (
    AlreadyUndone,
    CannotRepair,
    IdentityChange,
    IdentityStore,
    Resolution,
)
from adapters.leads.lead_event_store import (
    EVENTS_MAX,
    LeadEventStore,
    OrderRecord,
    OrderStore,
    StoreOutcome,
)
from adapters.leads.lead_queue import LeadPayloads, NoPayload
from adapters.logs import Logger
from adapters.platform import aws
from adapters.platform.aws import pauses
from adapters.platform.queues import Consumer, Deadline, FailureQueue, PoisonMessage, SourceQueue, TimeIsUp
from adapters.platform.tables import Unprocessed, chunks
from adapters.postgresql.postgres import database
from adapters.postgresql.sql import PostgresUnavailable
from adapters.privacy.erasure_jobs import ErasureJobs
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck, tombstones_of
from ingest.leads.lead_accept import (
    RESERVED_INTEGRATION,
    BadEnvelope,
    Envelope,
    open_payload,
    part_digest,
    read_envelope,
    stored_event,
)
from ingest.leads.lead_schemas import ANNOUNCE_COMMAND, UNMERGE, UNMERGE_COMMAND
from ingest.leads.readers import (
    OPT_OUT_ID,
    DecodedEvent,
    ErasurePart,
    OrderPart,
    PayloadPart,
    amount_in,
)
from ingest.web.validate import first_problem
from rules.days import stamp
from rules.json_values import check_strict, read_json
from rules.leads.lead_events import (
    IDENTITY_REPLACED,
    LEADS_MERGED,
    LEADS_UNMERGED,
    PURCHASE_COMPLETED,
    LeadEvent,
    body_hash,
)
from rules.leads.orders import ORDER, OrderChange, OrderState, contradicts, join_orders, order_changes
from rules.privacy.tombstones import identity_subject

CONSUMER = "leads"
REASONS_MAX = 10  # reasons of one message that are kept
# One event may take so long: it may wait for a database that wakes up (adapters/postgresql/rds_data.py).
STEP_SECONDS_MAX = 65
# Leaves in one event, of 40 bytes each: a text of the warehouse has 64 KB at most.
MOVES_MAX = 500
ORDER_ATTEMPTS_MAX = 12
logger = Logger(service="leads")


@dataclass(frozen=True, slots=True)
class LeadsSettings:
    """Settings of this function."""

    # postgresql://user[:password]@host:port/database: by a driver, which signs in by IAM without a password
    # rds-data://DATABASE?cluster=CLUSTER_ARN&secret=SECRET_ARN: by the RDS Data API
    identity_url: str
    lead_queue_url: str  # the queue that the function reads, and in which messages wait for another attempt
    event_table: str
    idempotency_keys_table: str
    payload_bucket: str
    failure_queue_url: str
    currency: str
    phone_regions: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class LeadConsumer:
    """Stores the events of messages, and carries out commands."""

    identities: IdentityStore
    events: LeadEventStore
    orders: OrderStore
    payloads: LeadPayloads
    currency: str  # the setting
    phone_regions: str = ""  # the setting
    erased: ErasureCheck = NO_ERASURES
    # Begins the erasures that sources ask for; without it such a message is poison
    erasing: LeadErasureStarter | None = None

    def handle(self, message: Any, now: datetime, is_over: Callable[[], bool] = lambda: False) -> None:
        """Handle one message; raises PoisonMessage if no attempt can ever process it.

        is_over: returns whether the function ends soon. Then the method raises TimeIsUp before the next
        event, but not before the first, so that each attempt gets further. The next attempt recognises the
        events that are stored already.
        """
        if isinstance(message, dict) and "command" in message:
            self._command(message, now)
            return
        try:
            envelope = read_envelope(message, self.currency, now, self.phone_regions)
        except BadEnvelope as bad:
            raise PoisonMessage(str(bad)) from None
        if "refused" in message:
            raise PoisonMessage(f"the door has refused it: {message['refused']}")
        opened = open_payload(self._payload(envelope), envelope, now)
        reasons = [str(error) for error in opened.refusals]
        reasons += [f"the decoder raised {type(error).__name__}: {error}" for error in opened.decoder_bugs]
        for index, (event, part) in enumerate(opened.events):
            if index and is_over():
                raise TimeIsUp(f"{index} of {len(opened.events)} events are stored")
            if event.erasure is not None:
                self._erase(event, event.erasure, envelope, now)
            elif not self._is_erased(event, envelope):
                _log_omissions(event, envelope)
                outcome = self._store(event, part, envelope, now)
                is_same = event.external_event_id.startswith(OPT_OUT_ID)
                if outcome is StoreOutcome.CONFLICT and not is_same:
                    reasons.append(f"conflict: {event.external_event_id} is stored with another body")
        if reasons:
            raise PoisonMessage("; ".join(reasons[:REASONS_MAX]))

    def _is_erased(self, event: DecodedEvent, envelope: Envelope) -> bool:
        """Return whether an event is of an erased person, and not from after the erasure was lifted."""
        organization = envelope.context.organization_id
        happened_at = min(event.occurred_at, envelope.context.received_at)
        return any(
            self.erased.forbids(
                identity_subject(organization, identity.channel, identity.external_id), happened_at
            )
            for identity in event.identities
        )

    def _erase(self, event: DecodedEvent, erasure: ErasurePart, envelope: Envelope, now: datetime) -> None:
        """Begin the erasure of a lead of the organization that asks for it. Repeating it changes nothing.

        The lead is found by the identities of the event, and by its orders of the same source.
        """
        if self.erasing is None:
            raise PoisonMessage("an erasure is asked for, and this process begins none")
        records = (self.orders.read(envelope.context.source, order_id) for order_id in erasure.order_ids)
        leaves = dict.fromkeys(record.leaf for record in records if record and record.leaf)
        erasure_id = self.erasing.begin(envelope.context.organization_id, event.identities, leaves, now)
        logger.info("erasure", extra={"source": envelope.context.source, "erasure_id": erasure_id})

    def _payload(self, envelope: Envelope) -> Any:
        if envelope.payload_ref is None:
            return envelope.payload
        try:
            return read_json(self.payloads.read_inbox(envelope.payload_ref))
        except NoPayload as reason:
            raise PoisonMessage(f"payload_ref cannot be read: {reason}") from None
        except ValueError as reason:
            raise PoisonMessage(f"payload_ref holds no JSON: {reason}") from None

    def _store(
        self, event: DecodedEvent, part: PayloadPart, envelope: Envelope, now: datetime
    ) -> StoreOutcome:
        """Store an event, unless its external id has been claimed.

        Only a new event may merge leads: a conflicting body must change nothing, and a late resend must not
        redo a merge that an operator has undone. So the consumer reads the claim before it asks PostgreSQL.
        """
        digest = part_digest(part)
        if event.order is not None:
            return self._store_order(event, event.order, part, envelope, now)
        outcome = self.events.claimed(envelope.context.source, event.external_event_id, digest)
        if outcome is not None:
            return outcome
        lead = self._resolve(event, envelope, now)
        stored = stored_event(event, envelope, lead.leaf, lead.root_id)
        return self.events.put_new(self.payloads.with_raw(stored, part.payload, digest), digest)

    def _store_order(
        self, event: DecodedEvent, order: OrderPart, part: PayloadPart, envelope: Envelope, now: datetime
    ) -> StoreOutcome:
        """Join a webhook's state of an order to the stored one, and store the events of what changes.

        Returns DUPLICATE for a webhook that has nothing new, CONFLICT for one that contradicts the stored
        state while neither has a version. If no webhook of the order has named a lead yet, the state is
        stored without events. The first one that does stores the events of all of it. What one transaction
        has no room for follows in the next.
        """
        digest, source = part_digest(part), envelope.context.source
        for _ in pauses(ORDER_ATTEMPTS_MAX):
            stored = self.orders.read(source, order.order_id)
            if stored and (outcome := _unchanged_outcome(stored, event, order.state, digest)):
                return outcome
            record = stored or OrderRecord(source, order.order_id, OrderState(), digest)
            after = join_orders(record.state, order.state)
            # An order without a lead has no stored events yet. So all of its state is a change.
            reported = record.state if record.leaf else OrderState()
            changes = [*record.unreported_changes, *order_changes(reported, after)]
            if stored and after == stored.state and not changes:
                return StoreOutcome.DUPLICATE
            if order.state.placed and after.placed == order.state.placed:
                record = replace(record, body_hash=digest)  # this webhook's version of the order counts
            if changes and event.identities and not record.leaf:
                lead = self._resolve(event, envelope, now)
                record = replace(record, leaf=lead.leaf, root_id=lead.root_id)
            if not record.leaf:
                changes = []
            record = replace(record, state=after, unreported_changes=tuple(changes[EVENTS_MAX:]))
            record, events = _change_order(record, event, order, envelope, changes[:EVENTS_MAX])
            if events:  # the webhook is stored once in a transaction, as the raw payload of the first event
                events[0] = self.payloads.with_raw(events[0], part.payload, digest)
            if self.orders.put(record, stored, events) and not record.unreported_changes:
                return StoreOutcome.STORED
        raise Unprocessed(
            "an order kept changing, or has very many changes: the rest comes with the next attempt"
        )

    def _resolve(self, event: DecodedEvent, envelope: Envelope, now: datetime) -> Resolution:
        """Return the event's lead, which may be a new one, and announce the changes of identity.

        The event is claimed later. So if the process dies here, the message comes again and announces the
        rest.
        """
        organization = envelope.context.organization_id
        evidence = {"source": envelope.context.source, "external_event_id": event.external_event_id}
        replaces = event.event_type == IDENTITY_REPLACED
        lead = self.identities.resolve(organization, event.identities, evidence, now, replaces=replaces)
        self._announce(lead.changes, now)
        return lead

    def _announce(self, changes: Iterable[IdentityChange], now: datetime) -> None:
        """Store the events of changes of identity, then note that they are announced."""
        pending = tuple(changes)
        for change in pending:
            for event in change_events(change, now):
                if self.events.put_new(event, body_hash(event.payload)) is StoreOutcome.CONFLICT:
                    raise RuntimeError(f"{event.external_event_id} of {event.source} is stored otherwise")
        if pending:
            self.identities.note_announced(pending)

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
        except AlreadyUndone:
            # An earlier attempt may have undone the merge, and died before it announced that.
            changes = self.identities.pending()
        except CannotRepair as reason:
            raise PoisonMessage(str(reason)) from None
        self._announce(changes, now)


def _log_omissions(event: DecodedEvent, envelope: Envelope) -> None:
    if event.omissions:
        # Only the first name of each path is the decoder's: the others may be a person's words.
        fields = sorted({omission.field.partition(".")[0] for omission in event.omissions})
        logger.info("side fields left out", extra={"source": envelope.context.source, "fields": fields})


def _unchanged_outcome(
    record: OrderRecord, event: DecodedEvent, state: OrderState, digest: str
) -> StoreOutcome | None:
    """Return the outcome for a webhook that changes nothing; None: it may change something."""
    stored_order, order = record.state.placed, state.placed
    have_no_version = stored_order and order and not stored_order.version and not order.version
    if (have_no_version and record.body_hash != digest) or contradicts(record.state, state):
        return StoreOutcome.CONFLICT
    names_lead = bool(event.identities) and not record.leaf
    is_known = join_orders(record.state, state) == record.state
    return StoreOutcome.DUPLICATE if is_known and not names_lead and not record.unreported_changes else None


def _change_order(
    record: OrderRecord,
    event: DecodedEvent,
    order: OrderPart,
    envelope: Envelope,
    changes: list[OrderChange],
) -> tuple[OrderRecord, list[LeadEvent]]:
    """Return (record, events): the events that report the changes, and the record that counts them.

    Each kind of change has a count of its own, from which the events have their ids: `order:7`, `order:7/2`.
    """
    event_counts, events = dict(record.event_counts), list[LeadEvent]()
    for change in changes:
        number = event_counts[change.key] = event_counts.get(change.key, 0) + 1
        base_id = f"order:{order.order_id}" if change.key == ORDER else change.key
        decoded = replace(
            event,
            external_event_id=base_id if number == 1 else f"{base_id}/{number}",
            event_type=change.event_type,
            occurred_at=change.at,
            payload=_order_payload(change, order, envelope),
        )
        events.append(stored_event(decoded, envelope, record.leaf, record.root_id))
    return replace(record, event_counts=event_counts), events


def _order_payload(change: OrderChange, order: OrderPart, envelope: Envelope) -> dict[str, object]:
    amount = amount_in(change.currency, change.amount_minor, envelope.context)
    payload: dict[str, object] = {"order_id": order.order_id, **amount}
    if change.event_type == PURCHASE_COMPLETED and order.products:
        payload["products"] = list(order.products)
    return payload


def change_events(change: IdentityChange, now: datetime) -> Iterator[LeadEvent]:
    """Yield the events that report a change to its organization. Their ids: `7`, then `7/2`.

    Only received_at differs between attempts.
    """
    organization, first = change.organization_id, change.groups[0].root
    moves = ((group.root, leaf) for group in change.groups for leaf in group.leaves)
    for part, chunk in enumerate(chunks(moves, MOVES_MAX), 1):
        leaves_by_root = {root: [root] for root, _ in chunk}  # each root comes first
        for root, leaf in chunk:
            if leaf != root:
                leaves_by_root[root].append(leaf)
        groups = [{"root": root, "leaves": leaves} for root, leaves in leaves_by_root.items()]
        yield LeadEvent(
            organization_id=organization,
            lead_organization_id=first,
            root_id=first,
            source=f"{organization}/{RESERVED_INTEGRATION}",
            source_type=RESERVED_INTEGRATION,
            external_event_id=str(change.number) if part == 1 else f"{change.number}/{part}",
            event_type=LEADS_UNMERGED if change.kind == "unmerged" else LEADS_MERGED,
            occurred_at=stamp(change.at),
            received_at=stamp(now),
            payload={"change": change.number, "groups": groups, **change.note},
        )


def _is_unavailable(error: Exception) -> bool:
    """Return whether a store is away, so that the message is not at fault."""
    if isinstance(error, PostgresUnavailable):
        return error.is_away
    return isinstance(error, Unprocessed) or aws.is_away(error)


@bootstrap(LeadsSettings)
def _parts(config: LeadsSettings, client: ClientOf) -> tuple[LeadConsumer, Consumer]:
    dynamodb = client("dynamodb")
    identities, tombstones = database(config.identity_url), tombstones_of(config, client)
    jobs = ErasureJobs(dynamodb, config.erasures_table)
    consumer = LeadConsumer(
        IdentityStore(identities),
        LeadEventStore(dynamodb, config.event_table, config.idempotency_keys_table),
        OrderStore(dynamodb, config.event_table, config.idempotency_keys_table),
        LeadPayloads(lambda: client("s3"), config.payload_bucket),
        config.currency,
        config.phone_regions,
        tombstones,
        LeadErasureStarter(IdentityEraser(identities), jobs, tombstones),
    )
    failures = FailureQueue(lambda: client("sqs"), config.failure_queue_url)
    source = SourceQueue(lambda: client("sqs"), config.lead_queue_url, _is_unavailable)
    return consumer, Consumer(CONSUMER, failures, logger, source)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda's entry: serves an SQS batch, or forgets the leads of a smoke test.

    The answer to a batch lists the messages that must come again.
    """
    consumer, queue = _parts()
    if "streakline_forget" in event:
        return {"left": consumer.identities.forget(event["streakline_forget"])}
    now, is_over = clock.now(), Deadline(context, STEP_SECONDS_MAX).is_over
    return queue.serve(event, lambda message: consumer.handle(message, now, is_over), now, is_over)
