"""Questions stream -> announcements queue: the first page of each shard of a new question's listeners."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger

from adapters import clock, settings
from adapters.platform.aws import Unavailable, client
from adapters.platform.failures import FailureQueue
from adapters.platform.items import plain
from adapters.questions.announcement_queue import AnnouncementQueue
from adapters.settings.questions import NotifySettings
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


@cache
def _parts() -> tuple[AnnouncementQueue | None, FailureQueue]:
    config = settings.read(NotifySettings)
    failures = FailureQueue(lambda: client("sqs"), config.failure_queue_url)
    if not config.platform_application_arn:
        return None, failures
    return AnnouncementQueue(lambda: client("sqs"), config.announcement_queue_url), failures


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a batch of the Questions stream. Without a platform application nobody is told."""
    queue, failures = _parts()
    if queue is None:
        logger.info("no platform application")
        return {"batchItemFailures": []}
    again, poison = begin(queue, [each for each in event["Records"] if each["eventName"] == "INSERT"])
    again += failures.settle(event, CONSUMER, poison, clock.now())
    logger.info("batch", extra={"to_come_again": len(again), "poison": len(poison)})
    return failures.answer(again)
