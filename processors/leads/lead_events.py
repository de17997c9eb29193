"""Event stream -> SNS topic lead-events. Each stored event is announced to the subscribers of its type.

An event may be announced twice or out of order. Subscribers are idempotent. Before that, an event of an
absorbed leaf is noted at its root: what subscribers count, a reader of the root finds.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from adapters import clock, settings
from adapters.leads.feature_store import FeatureStore
from adapters.leads.groups.group_events import GroupEvents
from adapters.logs import Logger
from adapters.platform.aws import client
from adapters.platform.failures import FailureQueue
from adapters.platform.fencing.turn import fenced
from adapters.platform.items import plain
from adapters.platform.sending.topics import Topic, TopicMessage
from adapters.privacy.erased_leads import is_erased
from adapters.privacy.tombstones import NOBODY, Erased, tombstones_of
from adapters.settings.leads import LeadEventsSettings
from rules.leads.lead_events import LeadEvent, announcement, from_item

logger = Logger(service="lead-events")
CONSUMER = "lead-events"
Record = Mapping[str, Any]
Note = Callable[[list[LeadEvent]], None]


@dataclass(slots=True)
class AnnouncedBatch:
    """What became of records: each is announced, to come again (by sequence number), or poison."""

    announced: int = 0
    again: list[str] = field(default_factory=list)
    poison: list[tuple[Any, str]] = field(default_factory=list)


def announce(records: list[Record], topic: Topic, note: Note, erased: Erased = NOBODY) -> AnnouncedBatch:
    """Announce new events, but those of leads that were erased. note: what is done with them first."""
    outcome = AnnouncedBatch()
    pairs: list[tuple[Record, TopicMessage]] = []
    events: list[LeadEvent] = []
    for record in records:
        try:
            event, message = message_of(record)
            if is_erased(event, erased):
                continue
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            outcome.poison.append((record, f"{type(error).__name__}: {error}"))
            continue
        events.append(event)
        pairs.append((record, message))
    note(events)
    refused = topic.publish([message for _, message in pairs])
    outcome.again += [pairs[place][0]["dynamodb"]["SequenceNumber"] for place in refused.again]
    outcome.poison += [(pairs[place][0], reason) for place, reason in refused.faulty.items()]
    outcome.announced += len(pairs) - len(refused.again) - len(refused.faulty)
    return outcome


def note_at_roots(events: list[LeadEvent], features: FeatureStore, rows: GroupEvents) -> None:
    """Note events of absorbed leaves at their roots. Raises Unprocessed."""
    found = features.get_many(each.lead_organization_id for each in events)
    absorbed = (each for each in events if each.lead_organization_id in found)
    rows.note((found[each.lead_organization_id].root, each) for each in absorbed)


def message_of(record: Record) -> tuple[LeadEvent, TopicMessage]:
    """Return the event, and the message that subscribers get; raises MalformedLeadEvent if it is none."""
    stored = plain(record["dynamodb"]["NewImage"])
    event = from_item(stored)
    body = json.dumps(announcement(stored), separators=(",", ":"), ensure_ascii=False)
    about = {"event_type": event.event_type, "organization_id": event.organization_id}
    return event, TopicMessage(body, about)


@cache
def _parts() -> tuple[Topic, Note, FailureQueue, Erased]:
    config, dynamodb = settings.read(LeadEventsSettings), fenced(client("dynamodb"))
    features = FeatureStore(dynamodb, config.feature_table)
    note = partial(note_at_roots, features=features, rows=GroupEvents(dynamodb, config.group_events_table))
    failures = FailureQueue(lambda: client("sqs"), config.failure_queue_url)
    return Topic(client("sns"), config.lead_events_topic_arn), note, failures, tombstones_of(config)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a batch of Event's stream. The answer lists the records that must come again."""
    topic, note, failures, erased = _parts()
    records = [each for each in event["Records"] if each["eventName"] == "INSERT"]
    outcome = announce(records, topic, note, erased)
    outcome.again += failures.settle(event, CONSUMER, outcome.poison, clock.now())
    logger.info(
        "batch",
        extra={
            "announced": outcome.announced,
            "again": len(outcome.again),
            "poison": len(outcome.poison),
        },
    )
    return failures.answer(outcome.again)
