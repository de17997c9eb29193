"""The queue of changes -> a standby's tables (rule 23).

Changes that speak of entries which are not there yet wait in the queue. Changes of another epoch than is
followed are dropped: whoever sent them still has them, and is asked when it returns.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

from adapters import clock, settings
from adapters.logs import Logger
from adapters.platform.aws import Unavailable, client, free_client
from adapters.platform.failures import FailureQueue
from adapters.platform.fencing.fence import Fence
from adapters.platform.fencing.turn import fence, following, region_here
from adapters.platform.queues import Consumer, Deadline, Line, Poison
from adapters.regions.follower import Follower
from adapters.settings.regions import TakingOverSettings
from rules.regions.messages import changes_of
from rules.regions.register import Register, followed_epoch, may_follow

logger = Logger(service="taking_over")
CONSUMER = "taking-over"
RESERVE_SECONDS = 10.0


class NotYet(Exception):
    """Some changes of a message wait for others."""


class TakingOver:
    """Takes over messages. follower: writes to this region's tables."""

    def __init__(self, follower: Follower, region: str) -> None:
        self._follower, self._region = follower, region

    def take(self, message: Mapping[str, Any], register: Register, now: datetime) -> int:
        """Take over a message's changes; returns how many.

        Raises NotYet if some must come again, and Poison for what no attempt will get past. What was taken
        stays, and taking it again changes nothing.
        """
        try:
            changes = changes_of(message)
        except ValueError as error:
            raise Poison(str(error)) from None
        followed = followed_epoch(register) if may_follow(register, self._region) else -1
        if any(each.epoch != followed for each in changes):
            logger.warning("of no epoch that is followed", extra={"changes": len(changes)})
            return 0
        outcome = self._follower.follow(changes, now)
        if outcome.wrong:
            raise Poison("; ".join(why for _, why in outcome.wrong))
        if outcome.waiting:
            raise NotYet(f"{len(outcome.waiting)} changes wait for entries")
        return outcome.followed


def is_waiting(error: Exception) -> bool:
    """Whether a message waits in the queue, however long that takes."""
    return isinstance(error, (NotYet, *Unavailable))


@cache
def _parts() -> tuple[TakingOver, Fence, Consumer]:
    config = settings.read(TakingOverSettings)
    turn = fence()
    assert turn is not None  # noqa: S101 (the function is there in a deployment of two regions only)
    follower = Follower(following(free_client("dynamodb")), json.loads(config.tables))
    failures = FailureQueue(lambda: client("sqs"), config.failure_queue_url)
    line = Line(lambda: client("sqs"), config.changes_queue_url, is_waiting)
    return TakingOver(follower, region_here()), turn, Consumer(CONSUMER, failures, logger, line)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a batch of the queue of changes."""
    taking, turn, consumer = _parts()
    now, deadline = clock.now(), Deadline(context, RESERVE_SECONDS)
    return consumer.serve(event, lambda each: taking.take(each, turn.register(), now), now, deadline.is_over)
