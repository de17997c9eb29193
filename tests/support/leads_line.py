"""The leads' queue and its consumer on moto, with the template's numbers, by a clock of the test's own."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from adapters.leads.identity_store import IdentityStore
from adapters.leads.lead_event_store import LeadEventStore, OrderStore
from adapters.leads.lead_queue import LeadPayloads
from adapters.logs import Logger
from adapters.platform.queues import Consumer, FailureQueue, SourceQueue
from adapters.postgresql.postgres import Postgres
from ingest.leads import lead_consumer
from ingest.leads.lead_consumer import LeadConsumer
from tests.support.template import template

START = datetime(2026, 3, 10, 12, tzinfo=UTC)
QUEUE = template()["Resources"]["LeadIngestion"]["Properties"]
VISIBILITY_SECONDS = QUEUE["VisibilityTimeout"]["Fn::If"][1]
BATCH = template()["Resources"]["LeadsMapping"]["Properties"]["BatchSize"]


class Broken(IdentityStore):
    """Has a bug where somebody is called so."""

    def resolve(self, organization_id: str, identities: Any, *rest: Any, **more: Any) -> Any:
        if any("bug" in each.external_id for each in identities):
            raise KeyError("bug")
        return super().resolve(organization_id, identities, *rest, **more)


@dataclass
class LeadsLine:
    """The queue, its failure queue and the consumer, on moto."""

    dynamodb: Any
    sqs: Any
    seconds: float = START.timestamp()
    work: str = ""
    failures: str = ""

    def __post_init__(self) -> None:
        self.failures = self.sqs.create_queue(QueueName="failures")["QueueUrl"]
        arn = self.sqs.get_queue_attributes(QueueUrl=self.failures, AttributeNames=["QueueArn"])
        redrive = {"deadLetterTargetArn": arn["Attributes"]["QueueArn"]}
        redrive["maxReceiveCount"] = QUEUE["RedrivePolicy"]["maxReceiveCount"]
        attributes = {
            "VisibilityTimeout": str(VISIBILITY_SECONDS),
            "MessageRetentionPeriod": str(QUEUE["MessageRetentionPeriod"]),
            "RedrivePolicy": json.dumps(redrive),
        }
        self.work = self.sqs.create_queue(QueueName="work", Attributes=attributes)["QueueUrl"]
        self.connect("postgresql://u:p@127.0.0.1:9/d")
        line = SourceQueue(lambda: self.sqs, self.work, lead_consumer._is_unavailable)
        failures = FailureQueue(lambda: self.sqs, self.failures)
        self.consumer = Consumer("leads", failures, Logger("test", level="CRITICAL"), line)

    def connect(self, url: str) -> None:
        events = LeadEventStore(self.dynamodb, "Event", "IdempotencyKeys")
        orders = OrderStore(self.dynamodb, "Event", "IdempotencyKeys")
        payloads = LeadPayloads(lambda: None, "payloads")
        self.leads = LeadConsumer(Broken(Postgres(url)), events, orders, payloads, "USD")

    def send(self, payload: Any) -> None:
        message = {"organization_id": "acme", "source": "email_campaign", "payload": payload}
        self.sqs.send_message(QueueUrl=self.work, MessageBody=json.dumps(message))

    def deliver(self, is_over: Callable[[], bool] = lambda: False) -> int:
        """Hand over a batch as Lambda does; returns how many messages were done."""
        found = self.sqs.receive_message(
            QueueUrl=self.work,
            MaxNumberOfMessages=BATCH,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        ).get("Messages", [])
        event = {"Records": [as_record(each) for each in found]}
        now = datetime.fromtimestamp(self.seconds, UTC)
        answer = self.consumer.serve(
            event, lambda message: self.leads.handle(message, now, is_over), now, is_over
        )
        again = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        for each in found:
            if each["MessageId"] not in again:
                self.sqs.delete_message(QueueUrl=self.work, ReceiptHandle=each["ReceiptHandle"])
        return len(found) - len(again)

    def stored(self) -> set[str]:
        found = self.dynamodb.scan(TableName="Event")["Items"]
        return {each["external_event_id"]["S"] for each in found}

    def failed(self) -> list[str]:
        found = self.sqs.receive_message(QueueUrl=self.failures, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return [each["Body"] for each in found.get("Messages", [])]


def as_record(message: dict[str, Any]) -> dict[str, Any]:
    told = message.get("MessageAttributes", {})
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {
            name: {"stringValue": each["StringValue"], "dataType": each["DataType"]}
            for name, each in told.items()
        },
    }
