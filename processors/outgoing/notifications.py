"""Makes notifications of changes of UserStreaks, Rewards and Feature, and of time (docs/rules.md, rule 18).

A profile's records arrive in order, maybe twice. The state of a user's notifications is stored. So the fold
of rules/outgoing/derivation.py needs no older image, and a record that is delivered twice is notified once.
Without an endpoint nothing is read or written.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters import clock, settings
from adapters.book import BookStore
from adapters.engagement.account_store import AccountStore
from adapters.engagement.achievements import AchievementReader, AchievementStore
from adapters.engagement.goals import GoalStore, StreakReader
from adapters.engagement.ledger_store import LedgerStore
from adapters.leads.lead_event_store import LeadEventStore
from adapters.logs import Logger
from adapters.outgoing.delivery_invoker import DeliveryInvoker
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.lane_store import LaneStore
from adapters.outgoing.notification_items import LANE_SHARDS
from adapters.outgoing.outbox_store import OutboxStore
from adapters.platform.aws import client
from adapters.platform.fence import fence_writer
from adapters.platform.queues import Deadline
from adapters.privacy.tombstones import ErasureCheck, is_erased_record, tombstones_of
from processors.batches import ConsumerSettings, Record, stream_consumer
from processors.outgoing.notification_writer import NoticeSteps, NotificationBatch, NotificationWriter

logger = Logger(service="notifications")
RESERVE_SECONDS = 20


@dataclass(frozen=True)
class NotificationSettings(ConsumerSettings):
    """Tables, and the function that delivers."""

    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rule_books_table: str
    event_table: str
    notifications_table: str
    webhook_endpoints_table: str
    event_bus_name: str  # "" for none
    deliver_function: str
    erasures_table: str
    erasure_secret_arn: str


@dataclass(frozen=True, slots=True)
class _Parts:
    writer: NotificationWriter
    lanes: LaneStore
    invoker: DeliveryInvoker
    erased: ErasureCheck


def _notice_steps(config: NotificationSettings, dynamodb: Any) -> NoticeSteps:
    ledger, days = LedgerStore(dynamodb, config.rewards_ledger_table), config.daily_activity_table
    accounts = AccountStore(dynamodb, config.user_streaks_table, days, ledger, 1)
    books = BookStore(dynamodb, config.rule_books_table)
    streaks = StreakReader(accounts, GoalStore(dynamodb, days), books)
    achievements = AchievementReader(streaks, AchievementStore(dynamodb, days), ledger)
    return NoticeSteps(achievements, LeadEventStore(dynamodb, config.event_table))


@settings.wiring(NotificationSettings)
def _parts(config: NotificationSettings) -> _Parts:
    dynamodb = fence_writer(client("dynamodb"))
    endpoints = EndpointStore(dynamodb, config.webhook_endpoints_table, config.event_bus_name)
    store = OutboxStore(dynamodb, config.notifications_table)
    return _Parts(
        NotificationWriter(
            dynamodb, config.user_streaks_table, store, endpoints, _notice_steps(config, dynamodb)
        ),
        LaneStore(dynamodb, config.notifications_table),
        DeliveryInvoker(lambda: client("lambda"), config.deliver_function),
        tombstones_of(config),
    )


def _sweep(_event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Write the notifications of what time has changed, and wake the delivery of what is due."""
    parts, now = _parts(), clock.now()
    shares = parts.writer.sweep(now, Deadline(context, RESERVE_SECONDS).is_over)
    waiting = {
        (each.endpoint_id, share)
        for each in parts.writer.endpoints.all()
        if not each.disabled
        for share in range(LANE_SHARDS)
        if parts.lanes.due(each.endpoint_id, share, now, limit=1)
    }
    parts.invoker.wake(shares | waiting)
    swept = {"woken": len(shares | waiting)}
    logger.info("swept", extra=swept)
    return swept


@stream_consumer("outgoing", logger, otherwise=_sweep)
def handler(records: list[Record], now: datetime) -> NotificationBatch:
    """Lambda entry: a batch of a stream, or the schedule."""
    parts = _parts()
    outcome = parts.writer.write(
        [record for record in records if not is_erased_record(record, parts.erased)], now
    )
    parts.invoker.wake(outcome.shares)
    return outcome
