"""Wakes the function that delivers. If that fails, or comes too early, the next minute's sweep does it."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from adapters.logs import Logger
from adapters.outgoing.told_items import LANE_SHARDS, shard_of
from adapters.platform.aws import Unavailable

logger = Logger(service="waking")
Share = tuple[str, int]  # an endpoint's id, and a shard of its lanes


def share_of(endpoint_id: str, holder: str) -> Share:
    """Return the share of an endpoint's lanes that a user's is in."""
    return endpoint_id, shard_of(holder, LANE_SHARDS)


class Waker:
    """Invokes a function, and does not wait for it. functions: returns the client of Lambda."""

    def __init__(self, functions: Callable[[], Any], name: str) -> None:
        self._functions, self._name = functions, name

    def wake(self, shares: Iterable[Share]) -> None:
        """Let what waits in shares of endpoints be delivered."""
        for endpoint_id, share in sorted(set(shares)):
            payload = json.dumps({"endpoint_id": endpoint_id, "share": share})
            try:
                self._functions().invoke(FunctionName=self._name, InvocationType="Event", Payload=payload)
            except Unavailable:
                logger.warning("not woken", extra={"endpoint_id": endpoint_id}, exc_info=True)
