"""Streams of UserStreaks, Rewards and Feature, and time -> notifications (docs/rules.md, rule 18).

A profile's record comes in order, maybe twice. What was told of the user is kept, so the fold of
rules/outgoing/derive.py needs no older image, and what comes again is told once. Without an endpoint nothing
is read or written.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from adapters import clock, settings
from adapters.book.book_store import BookStore
from adapters.engagement.account_store import AccountStore
from adapters.engagement.goals.achievement_reader import AchievementReader
from adapters.engagement.goals.achievement_store import AchievementStore
from adapters.engagement.goals.goal_store import GoalStore
from adapters.engagement.goals.streak_reader import StreakReader
from adapters.engagement.ledger_store import LedgerStore
from adapters.leads.lead_event_store import LeadEventStore
from adapters.logs import Logger
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.lane_store import LaneStore
from adapters.outgoing.told_items import LANE_SHARDS
from adapters.outgoing.told_store import ToldStore
from adapters.outgoing.waking import Waker
from adapters.platform.aws import client
from adapters.platform.failures import FailureQueue
from adapters.platform.fencing.turn import fenced
from adapters.platform.queues import Deadline
from adapters.privacy.erased_records import is_erased_record
from adapters.privacy.tombstones import Erased, tombstones_of
from adapters.settings.outgoing import TellingSettings
from processors.outgoing.teller import Teller
from processors.outgoing.telling_steps import TellingSteps

logger = Logger(service="telling")
CONSUMER = "outgoing"
RESERVE_SECONDS = 20


@dataclass(frozen=True, slots=True)
class _Parts:
    teller: Teller
    endpoints: EndpointStore
    lanes: LaneStore
    waker: Waker
    failures: FailureQueue
    erased: Erased


def _telling_steps(config: TellingSettings, dynamodb: Any) -> TellingSteps:
    ledger, days = LedgerStore(dynamodb, config.rewards_ledger_table), config.daily_activity_table
    accounts = AccountStore(dynamodb, config.user_streaks_table, days, ledger, 1)
    books = BookStore(dynamodb, config.rule_books_table)
    streaks = StreakReader(accounts, GoalStore(dynamodb, days), books)
    achievements = AchievementReader(streaks, AchievementStore(dynamodb, days), ledger)
    return TellingSteps(achievements, LeadEventStore(dynamodb, config.event_table))


@cache
def _parts() -> _Parts:
    config, dynamodb = settings.read(TellingSettings), fenced(client("dynamodb"))
    endpoints = EndpointStore(dynamodb, config.webhook_endpoints_table, config.event_bus_name)
    store = ToldStore(dynamodb, config.notifications_table)
    return _Parts(
        Teller(dynamodb, config.user_streaks_table, store, endpoints, _telling_steps(config, dynamodb)),
        endpoints,
        LaneStore(dynamodb, config.notifications_table),
        Waker(lambda: client("lambda"), config.deliver_function),
        FailureQueue(lambda: client("sqs"), config.failure_queue_url),
        tombstones_of(config),
    )


def _swept(parts: _Parts, now: datetime, is_over: Callable[[], bool]) -> dict[str, Any]:
    """Tell of what time has changed, and wake whoever delivers what is due."""
    shares = parts.teller.sweep(now, is_over)
    waiting = {
        (each.endpoint_id, share)
        for each in parts.endpoints.all()
        if not each.disabled
        for share in range(LANE_SHARDS)
        if parts.lanes.due(each.endpoint_id, share, now, limit=1)
    }
    parts.waker.wake(shares | waiting)
    return {"woken": len(shares | waiting)}


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a batch of a stream, or the schedule. It answers with the records to come again."""
    parts, now = _parts(), clock.now()
    if "Records" not in event:
        swept = _swept(parts, now, Deadline(context, RESERVE_SECONDS).is_over)
        logger.info("swept", extra=swept)
        return swept
    records = [each for each in event["Records"] if not is_erased_record(each, parts.erased)]
    outcome = parts.teller.hear(records, now)
    outcome.again += parts.failures.settle(event, CONSUMER, outcome.poison, now)
    parts.waker.wake(outcome.shares)
    told = {"told": outcome.told, "again": len(outcome.again), "poison": len(outcome.poison)}
    logger.info("batch", extra=told)
    return parts.failures.answer(outcome.again)
