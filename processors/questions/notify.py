"""Questions stream -> announcements queue: the first page of each shard of a new question's listeners.

A question that is closed is told to endpoints of outgoing webhooks (rule 18). That is done here, because a
stream has two readers at most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from adapters import clock, settings
from adapters.logs import Logger
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.told_store import ToldStore
from adapters.outgoing.waking import Waker
from adapters.platform.aws import Unavailable, client
from adapters.platform.failures import FailureQueue
from adapters.platform.fencing.turn import fenced
from adapters.platform.items import plain
from adapters.questions.announcement_queue import AnnouncementQueue
from adapters.settings.questions import NotifySettings
from processors.outgoing.teller import Teller
from rules.questions.questions import from_item

logger = Logger(service="notify")
CONSUMER = "notify"
Record = Mapping[str, Any]


def begin(queue: AnnouncementQueue, records: Sequence[Record]) -> tuple[list[str], list[tuple[Any, str]]]:
    """Ask for the announcement of each record's question; returns what is to come again, and poison.

    A record that comes twice has its question announced twice, which tells nobody twice.
    """
    again: list[str] = []
    poison: list[tuple[Any, str]] = []
    for record in records:
        try:
            queue.begin(from_item(plain(record["dynamodb"]["NewImage"])).question_id)
        except Unavailable:
            logger.exception("to come again")
            again.append(record["dynamodb"]["SequenceNumber"])
        except Exception as error:  # whatever a record raises, its neighbours go on
            logger.exception("poison")
            poison.append((record, f"{type(error).__name__}: {error}"))
    return again, poison


@dataclass(frozen=True, slots=True)
class _Parts:
    """queue: None without a platform application. teller: None where nothing is told of closed questions."""

    queue: AnnouncementQueue | None
    teller: Teller | None
    waker: Waker
    failures: FailureQueue


@cache
def _parts() -> _Parts:
    config = settings.read(NotifySettings)
    queue, teller = None, None
    if config.platform_application_arn:
        queue = AnnouncementQueue(lambda: client("sqs"), config.announcement_queue_url)
    if config.outgoing_webhooks:
        dynamodb = fenced(client("dynamodb"))
        endpoints = EndpointStore(dynamodb, config.webhook_endpoints_table, config.event_bus_name)
        teller = Teller(dynamodb, "", ToldStore(dynamodb, config.notifications_table), endpoints)
    waker = Waker(lambda: client("lambda"), config.deliver_function)
    return _Parts(queue, teller, waker, FailureQueue(lambda: client("sqs"), config.failure_queue_url))


def _tell(parts: _Parts, records: Sequence[Record]) -> tuple[list[str], list[tuple[Any, str]]]:
    """Tell endpoints of closed questions; returns what is to come again, and poison."""
    if parts.teller is None or not records:
        return [], []
    outcome = parts.teller.hear(records, clock.now())
    parts.waker.wake(outcome.shares)
    return outcome.again, outcome.poison


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a batch of the Questions stream. Without a platform application no phone is told."""
    parts, records = _parts(), event["Records"]
    again, poison = _tell(parts, [each for each in records if each["eventName"] == "MODIFY"])
    if parts.queue is not None:
        more = begin(parts.queue, [each for each in records if each["eventName"] == "INSERT"])
        again, poison = [*again, *more[0]], [*poison, *more[1]]
    again += parts.failures.settle(event, CONSUMER, poison, clock.now())
    logger.info("batch", extra={"to_come_again": len(again), "poison": len(poison)})
    return parts.failures.answer(again)
