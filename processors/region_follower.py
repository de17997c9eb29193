"""The queue of changes -> a standby's tables (docs/rules.md, rule 23).

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
    """Settings of the function that takes over changes."""

    tables: str  # JSON, names in the template -> tables' names
    changes_queue_url: str  # in which messages wait for another attempt


class ChangesNotReady(Exception):
    """Some changes of a message wait for others."""


class ChangeReceiver:
    """Takes over the changes of messages. follower: writes them to this region's tables."""

    def __init__(self, follower: Follower, region: str) -> None:
        self._follower, self._region = follower, region

    def take(self, message: Mapping[str, Any], register: Register, now: datetime) -> int:
        """Take over a message's changes; returns how many.

        Raises ChangesNotReady if some must come again, and PoisonMessage if no attempt will succeed. Changes
        that were taken over stay, and taking them over again changes nothing.
        """
        try:
            changes = changes_of(message)
        except ValueError as error:
            raise PoisonMessage(str(error)) from None
        followed = followed_epoch(register) if may_follow(register, self._region) else -1
        if any(change.epoch != followed for change in changes):
            logger.warning("of no epoch that is followed", extra={"changes": len(changes)})
            return 0
        outcome = self._follower.follow(changes, now)
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
    receiver: ChangeReceiver
    fence: Fence
    queue: SourceQueue


@settings.wiring(ReceiverSettings)
def _parts(config: ReceiverSettings) -> _Parts:
    fence = process_fence()
    assert fence is not None  # noqa: S101 (the function is there in a deployment of two regions only)
    follower = Follower(fence_follower(free_client("dynamodb")), json.loads(config.tables))
    queue = SourceQueue(lambda: client("sqs"), config.changes_queue_url, is_waiting)
    return _Parts(ChangeReceiver(follower, current_region()), fence, queue)


@queue_consumer("receiver", logger, lambda: _parts().queue, RESERVE_SECONDS)
def handler(message: Any, now: datetime) -> None:
    """Lambda entry: a batch of the queue of changes."""
    parts = _parts()
    parts.receiver.take(message, parts.fence.register(), now)
