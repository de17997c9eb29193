"""Event stream -> SNS topic lead-events. Each stored event is announced to the subscribers of its type.

An event may be announced twice or out of order. Subscribers are idempotent. Before an event of an absorbed
leaf is announced, GroupEvents lists it under the root. So a reader of the root finds every event that a
subscriber has counted.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from adapters.bootstrap import ClientOf, bootstrap
from adapters.leads.erasures import is_erased
from adapters.leads.feature_store import FeatureStore
from adapters.leads.person_events import GroupEvents
from adapters.logs import Logger
from adapters.platform.items import decode_item
from adapters.platform.publishing import Topic, TopicMessage
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck, tombstones_of
from processors.batches import BatchResult, ConsumerSettings, Record, sequence_number_of, stream_consumer
from rules.leads.lead_events import LeadEvent, announcement, from_item

logger = Logger(service="lead-events")
Note = Callable[[list[LeadEvent]], None]


@dataclass(frozen=True)
class LeadEventsSettings(ConsumerSettings):
    """Events are announced at lead_events_topic_arn."""

    feature_table: str
    group_events_table: str
    lead_events_topic_arn: str
    erasures_table: str
    erasure_secret_arn: str


def announce(
    records: list[Record], topic: Topic, note: Note, erased: ErasureCheck = NO_ERASURES
) -> BatchResult:
    """Announce new events, but not those of erased leads. note: is called with the events before."""
    outcome = BatchResult()

    def read(record: Record) -> tuple[LeadEvent, TopicMessage] | None:
        event, message = message_of(record)
        return None if is_erased(event, erased) else (event, message)

    pairs = outcome.read(records, read)
    note([event for _, (event, _) in pairs])
    refused = topic.publish([message for _, (_, message) in pairs])
    outcome.again += [sequence_number_of(pairs[index][0]) for index in refused.again]
    outcome.poison += [(pairs[index][0], reason) for index, reason in refused.faulty.items()]
    outcome.counts["announced"] = len(pairs) - len(refused.again) - len(refused.faulty)
    return outcome


def note_at_roots(events: list[LeadEvent], features: FeatureStore, rows: GroupEvents) -> None:
    """Note events of absorbed leaves at their roots. Raises Unprocessed."""
    items = features.get_many(event.lead_organization_id for event in events)
    rows.note(
        (items[event.lead_organization_id].root, event)
        for event in events
        if event.lead_organization_id in items
    )


def message_of(record: Record) -> tuple[LeadEvent, TopicMessage]:
    """Return the event, and the message that subscribers get; raises MalformedLeadEvent if it is none."""
    stored = decode_item(record["dynamodb"]["NewImage"])
    event = from_item(stored)
    body = json.dumps(announcement(stored), separators=(",", ":"), ensure_ascii=False)
    about = {"event_type": event.event_type, "organization_id": event.organization_id}
    return event, TopicMessage(body, about)


@bootstrap(LeadEventsSettings)
def _parts(config: LeadEventsSettings, client: ClientOf) -> tuple[Topic, Note, ErasureCheck]:
    dynamodb = client("dynamodb")
    features = FeatureStore(dynamodb, config.feature_table)
    note = partial(note_at_roots, features=features, rows=GroupEvents(dynamodb, config.group_events_table))
    return Topic(client("sns"), config.lead_events_topic_arn), note, tombstones_of(config, client)


@stream_consumer("lead-events", logger)
def handler(records: list[Record], _now: datetime) -> BatchResult:
    """Lambda entry: a batch of Event's stream."""
    return announce([record for record in records if record["eventName"] == "INSERT"], *_parts())
