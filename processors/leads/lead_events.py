"""Event stream -> SNS topic lead-events. Each stored event is announced to the subscribers of its type.

An event may be announced twice or out of order. Subscribers are idempotent.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger

from adapters import clock, settings
from adapters.platform.aws import client
from adapters.platform.failures import FailureQueue
from adapters.platform.items import plain
from adapters.platform.topics import Topic, TopicMessage
from adapters.settings.leads import LeadEventsSettings
from rules.leads.lead_events import announcement, from_item

logger = Logger(service="lead-events")
CONSUMER = "lead-events"
Record = Mapping[str, Any]


@dataclass(slots=True)
class AnnouncedBatch:
    """What became of records: each is announced, to come again (by sequence number), or poison."""

    announced: int = 0
    again: list[str] = field(default_factory=list)
    poison: list[tuple[Any, str]] = field(default_factory=list)


def announce(records: list[Record], topic: Topic) -> AnnouncedBatch:
    """Announce a batch of new events."""
    outcome = AnnouncedBatch()
    pairs: list[tuple[Record, TopicMessage]] = []
    for record in records:
        try:
            pairs.append((record, message_of(record)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            outcome.poison.append((record, f"{type(error).__name__}: {error}"))
    refused = topic.publish([message for _, message in pairs])
    outcome.again += [pairs[place][0]["dynamodb"]["SequenceNumber"] for place in refused.again]
    outcome.poison += [(pairs[place][0], reason) for place, reason in refused.faulty.items()]
    outcome.announced += len(pairs) - len(refused.again) - len(refused.faulty)
    return outcome


def message_of(record: Record) -> TopicMessage:
    """Return the message that subscribers get; raises MalformedLeadEvent for an item that is no event."""
    stored = plain(record["dynamodb"]["NewImage"])
    event = from_item(stored)
    body = json.dumps(announcement(stored), separators=(",", ":"), ensure_ascii=False)
    return TopicMessage(body, {"event_type": event.event_type, "organization_id": event.organization_id})


@cache
def _parts() -> tuple[Topic, FailureQueue]:
    config = settings.read(LeadEventsSettings)
    failures = FailureQueue(lambda: client("sqs"), config.failure_queue_url)
    return Topic(client("sns"), config.lead_events_topic_arn), failures


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a batch of Event's stream. The answer lists the records that must come again."""
    topic, failures = _parts()
    outcome = announce([each for each in event["Records"] if each["eventName"] == "INSERT"], topic)
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
