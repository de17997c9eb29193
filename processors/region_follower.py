"""The queue of changes -> a standby's tables (docs/rules.md, rule 23). adapters/regions.py writes them.

Changes that need items which are not stored yet wait in the queue. Changes of an epoch that is not followed
are dropped. The region that sent them still has them, and both regions are compared when it returns.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.platform.aws import Unavailable, free_client
from adapters.platform.fence import Fence, current_region, fence_follower, process_fence
from adapters.platform.queues import PoisonMessage, SourceQueue
from adapters.regions import Follower
from processors.batches import ConsumerSettings, queue_consumer
from rules.regions.changes import changes_of
from rules.regions.register import Register, followed_epoch

logger = Logger(service="taking_over")
RESERVE_SECONDS = 10.0  # what a message may take


@dataclass(frozen=True)
class ReceiverSettings(ConsumerSettings):
    """Settings of the function that takes over changes."""

    tables: str  # JSON, names in the template -> tables' names
    changes_queue_url: str  # in which messages wait for another attempt


class ChangesNotReady(Exception):
    """Some changes of a message wait for others."""


def take_over(
    message: Mapping[str, Any], follower: Follower, register: Register, region: str, now: datetime
) -> int:
    """Take over a message's changes into a region's tables; returns how many.

    Raises ChangesNotReady if some must come again, and PoisonMessage if no attempt will succeed. Changes that
    were taken over stay, and taking them over again changes nothing.
    """
    try:
        changes = changes_of(message)
    except ValueError as error:
        raise PoisonMessage(str(error)) from None
    followed = followed_epoch(register, region)
    if any(change.epoch != followed for change in changes):
        logger.warning("of no epoch that is followed", extra={"changes": len(changes)})
        return 0
    outcome = follower.follow(changes, now)
    if outcome.wrong:
        raise PoisonMessage("; ".join(why for _, why in outcome.wrong))
    if outcome.waiting:
        raise ChangesNotReady(f"{len(outcome.waiting)} changes wait for entries")
    return outcome.followed


def is_waiting(error: Exception) -> bool:
    """Whether a message waits in the queue, however long that takes."""
    return isinstance(error, (ChangesNotReady, *Unavailable))


@dataclass(frozen=True, slots=True)
class _Parts:
    follower: Follower
    fence: Fence
    queue: SourceQueue


@bootstrap(ReceiverSettings)
def _parts(config: ReceiverSettings, client: ClientOf) -> _Parts:
    fence = process_fence()
    assert fence is not None  # noqa: S101 (the function is there in a deployment of two regions only)
    follower = Follower(fence_follower(free_client("dynamodb")), json.loads(config.tables))
    return _Parts(follower, fence, SourceQueue(lambda: client("sqs"), config.changes_queue_url, is_waiting))


@queue_consumer("receiver", logger, lambda: _parts().queue, RESERVE_SECONDS)
def handler(message: Any, now: datetime) -> None:
    """Lambda entry: a batch of the queue of changes."""
    parts = _parts()
    take_over(message, parts.follower, parts.fence.register(), current_region(), now)
