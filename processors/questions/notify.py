"""Questions stream -> announcements queue: the first page of each shard of a new question's listeners.

The closing of a question is sent to endpoints of outgoing webhooks (rule 18). That is done here, because a
stream has two readers at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.outbox_store import DeliveryInvoker, OutboxStore
from adapters.platform.items import decode_item
from adapters.questions.announcements import AnnouncementQueue
from processors.batches import BatchResult, ConsumerSettings, Record, stream_consumer
from processors.outgoing.notifications import NotificationWriter
from processors.questions.noticed_changes import question_change
from rules.questions.questions import Question, from_item

logger = Logger(service="notify")


@dataclass(frozen=True)
class NotifySettings(ConsumerSettings):
    """Settings of the function that asks for announcements."""

    announcement_queue_url: str
    platform_application_arn: str  # SNS's platform application for FCM; "": no phone is told
    outgoing_webhooks: bool  # whether endpoints are told of closed questions; the next settings are for that
    notifications_table: str
    webhook_endpoints_table: str
    event_bus_name: str
    deliver_function: str


def request_announcements(queue: AnnouncementQueue, records: Sequence[Record]) -> BatchResult:
    """Ask for the announcement of each record's question. To ask twice tells nobody twice."""
    outcome = BatchResult()
    # Each question is an attempt of its own, so that an error does not affect the others.
    for pair in outcome.read(records, _question_of):
        outcome.attempt([pair], lambda pairs: queue.begin(pairs[0][1].question_id), logger)
    return outcome


def _question_of(record: Record) -> Question:
    return from_item(decode_item(record["dynamodb"]["NewImage"]))


@dataclass(frozen=True, slots=True)
class _Parts:
    queue: AnnouncementQueue | None  # None without a platform application
    writer: NotificationWriter | None  # None without outgoing webhooks
    invoker: DeliveryInvoker


@bootstrap(NotifySettings)
def _parts(config: NotifySettings, client: ClientOf) -> _Parts:
    queue, writer = None, None
    if config.platform_application_arn:
        queue = AnnouncementQueue(lambda: client("sqs"), config.announcement_queue_url)
    if config.outgoing_webhooks:
        dynamodb = client("dynamodb")
        endpoints = EndpointStore(dynamodb, config.webhook_endpoints_table, config.event_bus_name)
        outbox = OutboxStore(dynamodb, config.notifications_table)
        readers = {"question_id": question_change}
        writer = NotificationWriter(dynamodb, "", outbox, endpoints, readers=readers)
    return _Parts(queue, writer, DeliveryInvoker(lambda: client("lambda"), config.deliver_function))


@stream_consumer("notify", logger)
def handler(records: list[Record], now: datetime) -> BatchResult:
    """Lambda entry: a batch of the Questions stream. Without a platform application no phone is told."""
    parts, outcome = _parts(), BatchResult()
    changes = [record for record in records if record["eventName"] == "MODIFY"]
    if parts.writer is not None and changes:
        notifications = parts.writer.write(changes, now)
        parts.invoker.wake(notifications.shares)
        outcome.add(notifications)
    if parts.queue is not None:
        new_questions = [record for record in records if record["eventName"] == "INSERT"]
        outcome.add(request_announcements(parts.queue, new_questions))
    return outcome
