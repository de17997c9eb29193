"""The queue of the writing region's changes -> the following region's tables (rule 23).

Changes that need items which are not stored yet wait in the queue. Changes of an epoch that is not followed
are dropped. The region that sent them still has them, and both regions are compared when it returns.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters import settings
from adapters.logs import Logger
from adapters.platform.aws import Unavailable, client, free_client
from adapters.platform.fence import Fence, current_region, fence_follower, process_fence
from adapters.platform.queues import PoisonMessage, SourceQueue
from adapters.regions import Follower
from processors.batches import ConsumerSettings, queue_consumer
from rules.regions.changes import changes_of
from rules.regions.register import Register, followed_epoch, may_follow

logger = Logger(service="taking_over")
RESERVE_SECONDS = 10.0


@dataclass(frozen=True)
class ReceiverSettings(ConsumerSettings):
    """Settings of this function."""

    tables: str  # JSON, names in the template -> tables' names
    changes_queue_url: str  # in which messages wait for another attempt


class ChangesNotReady(Exception):
    """Some changes of a message wait for others."""


def take_over(
    message: Mapping[str, Any], follower: Follower, region: str, register: Register, now: datetime
) -> int:
    """Take over a message's changes into a region; returns how many.

    Raises ChangesNotReady if some must come again, and PoisonMessage if no attempt will succeed. Changes that
    were taken over stay, and taking them over again changes nothing.
    """
    try:
        changes = changes_of(message)
    except ValueError as error:
        raise PoisonMessage(str(error)) from None
    is_follower, epoch = may_follow(register, region), followed_epoch(register)
    if any(not is_follower or change.epoch != epoch for change in changes):
        logger.warning("of no epoch that is followed", extra={"changes": len(changes)})
        return 0
    batch = follower.follow(changes, now)
    if batch.wrong:
        raise PoisonMessage("; ".join(reason for _, reason in batch.wrong))
    if batch.waiting:
        raise ChangesNotReady(f"{len(batch.waiting)} changes wait for entries")
    return batch.followed


def is_waiting(error: Exception) -> bool:
    """Whether a message waits in the queue, however long that takes."""
    return isinstance(error, (ChangesNotReady, *Unavailable))


@dataclass(frozen=True, slots=True)
class _Parts:
    follower: Follower
    fence: Fence
    queue: SourceQueue


@settings.wiring(ReceiverSettings)
def _parts(config: ReceiverSettings) -> _Parts:
    fence = process_fence()
    assert fence is not None  # noqa: S101 (the function is there in a deployment of two regions only)
    follower = Follower(fence_follower(free_client("dynamodb")), json.loads(config.tables))
    queue = SourceQueue(lambda: client("sqs"), config.changes_queue_url, is_waiting)
    return _Parts(follower, fence, queue)


@queue_consumer("receiver", logger, lambda: _parts().queue, RESERVE_SECONDS)
def handler(message: Any, now: datetime) -> None:
    """Lambda entry: a batch of the queue of changes."""
    parts = _parts()
    take_over(message, parts.follower, current_region(), parts.fence.register(), now)
