"""The fence: a region's functions write only while they know that it is their turn (rule 23).

A process reads the register every few seconds, and no write costs more than it did. Each attempt of each
write to DynamoDB asks before it is sent: so a process that slept through a promotion writes nothing when it
wakes up.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError

from rules.regions.register import Clocks, Reading, Register

WRITES = (
    *("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"),
    *("BatchExecuteStatement", "ExecuteStatement", "ExecuteTransaction"),
)
Allowed = Callable[[Register, str], bool]


class Fenced(BotoCoreError):
    """It is not this region's turn to write, or nobody can tell. Whoever asked may try again, elsewhere."""

    fmt = "the region {region} may not write now: {why}"


def clocks() -> Clocks:
    """Return both clocks of this machine."""
    return Clocks(time.monotonic(), time.time())


class Fence:
    """One process's knowledge of the register."""

    def __init__(
        self, look: Callable[[], Register | None], region: str, now: Callable[[], Clocks] = clocks
    ) -> None:
        self._look, self.region, self._now = look, region, now
        self._reading: Reading | None = None
        self._lock = threading.Lock()

    def register(self) -> Register:
        """Return the register, as old as a lease at most. Raises Fenced if it cannot be known."""
        with self._lock:
            if self._reading is None or self._reading.is_stale(self._now()):
                self._renew()
            if self._reading is None or not self._reading.holds(self._now()):
                raise Fenced(region=self.region, why="the register cannot be read")
            return self._reading.register

    def check(self, allowed: Allowed) -> Register:
        """Return the register if it allows this region to write. Raises Fenced."""
        found = self.register()
        if not allowed(found, self.region):
            why = f"{found.writer} writes, epoch {found.epoch}, {found.phase}"
            raise Fenced(region=self.region, why=why)
        return found

    def _renew(self) -> None:
        began = self._now()
        try:
            found = self._look()
        except Exception:  # noqa: BLE001 (whatever hinders it, the lease that is there goes on until it ends)
            return
        if found:
            self._reading = Reading(found, began)


def guard(dynamodb: Any, fence: Fence, allowed: Allowed) -> Any:
    """Let a client's writes through only while the fence allows them; returns the client.

    A client that is guarded twice asks once.
    """
    for each in WRITES:
        name = f"before-send.dynamodb.{each}"
        dynamodb.meta.events.register(name, partial(_before, fence, allowed), unique_id=f"fence {each}")
    return dynamodb


def _before(fence: Fence, allowed: Allowed, **_: Any) -> None:
    fence.check(allowed)
