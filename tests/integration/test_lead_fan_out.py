"""Event -> SNS lead-events -> SQS by event type, on the engine: filters, raw delivery, attributes."""

import json
import time
from typing import Any
from uuid import uuid4

import pytest

from adapters.leads.lead_event_store import event_item
from adapters.platform.publishing import Topic
from processors.leads.lead_events import announce
from rules.leads.lead_events import from_item
from tests.integration.test_lead_event_store import new_event
from tests.support.engine import Engine

TYPES = ("purchase_completed", "message_received", "leads_merged", "campaign_opened")


def queue(engine: Engine, topic: str, wanted: dict[str, Any] | None) -> str:
    sqs, sns = engine.client("sqs"), engine.client("sns")
    url = sqs.create_queue(QueueName=f"q-{uuid4()}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    attributes = {"RawMessageDelivery": "true"}
    if wanted is not None:
        attributes |= {"FilterPolicy": json.dumps(wanted), "FilterPolicyScope": "MessageAttributes"}
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=attributes)
    return str(url)


def received(engine: Engine, url: str, count: int) -> list[dict[str, Any]]:
    sqs, found = engine.client("sqs"), list[dict[str, Any]]()
    deadline = time.monotonic() + 5
    while len(found) < count and time.monotonic() < deadline:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        found += answer.get("Messages", [])
    return found


@pytest.fixture(scope="session")
def topic(engine: Engine) -> str:
    return str(engine.client("sns").create_topic(Name="lead-events")["TopicArn"])


def test_each_queue_gets_its_types_raw(engine: Engine, topic: str) -> None:
    every = queue(engine, topic, None)
    some = queue(engine, topic, {"event_type": ["purchase_completed", "leads_merged"]})
    none = queue(engine, topic, {"event_type": ["page_viewed"]})
    sent = [new_event(event_type=TYPES[number % 4]) for number in range(23)]
    records: list[Any] = [
        {"eventName": "INSERT", "dynamodb": {"NewImage": event_item(each), "SequenceNumber": str(number)}}
        for number, each in enumerate(sent)
    ]
    outcome = announce(records, Topic(engine.client("sns"), topic), lambda _: None)
    assert (outcome.counts["announced"], outcome.again, outcome.poison) == (23, [], [])
    told = [from_item(json.loads(each["Body"])) for each in received(engine, every, 23)]
    assert {each.id for each in told} == {each.id for each in sent}
    wanted = [each.id for each in sent if each.event_type in ("purchase_completed", "leads_merged")]
    bodies = received(engine, some, len(wanted))
    assert sorted(json.loads(each["Body"])["occurred_at#id"].partition("#")[2] for each in bodies) == sorted(
        wanted
    )
    assert received(engine, none, 0) == []
    attributes = bodies[0]["MessageAttributes"]
    assert attributes["organization_id"]["StringValue"] == "acme"
