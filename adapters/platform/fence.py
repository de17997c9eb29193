"""The fence: a region's functions write only while they know that their region may write (rule 23).

The register says which region may: one item, in a table that all regions read and write with strong
consistency. A function that writes while its region is the writer has a client of DynamoDB from
`fence_writer`: adapters.bootstrap gives no other. One that writes while its region follows has a client from
`fence_follower`. In a deployment of one region both return the client unchanged.
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from functools import cache, partial
from typing import Any

from botocore.exceptions import BotoCoreError

from adapters.platform.aws import free_client
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import get_one, write_if
from rules.regions.register import Clocks, Phase, Register, RegisterReading, may_follow, may_write

WRITES = (
    *("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"),
    *("BatchExecuteStatement", "ExecuteStatement", "ExecuteTransaction"),
)
RegisterRule = Callable[[Register, str], bool]  # (register, region) -> whether the region may write
KEY = {"name": "writer"}
REGISTER = "REGION_REGISTER"  # names the register's table, in a deployment of two regions


class RegionFenced(BotoCoreError):
    """It is not this region's turn to write, or that is unknown. A caller may try another region."""

    fmt = "the region {region} may not write now: {why}"


def read_clocks() -> Clocks:
    """Return both clocks of this machine."""
    return Clocks(time.monotonic(), time.time())


class Fence:
    """One process's knowledge of the register."""

    def __init__(
        self, look: Callable[[], Register | None], region: str, now: Callable[[], Clocks] = read_clocks
    ) -> None:
        self._look, self.region, self._now = look, region, now
        self._reading: RegisterReading | None = None
        self._lock = threading.Lock()

    def register(self) -> Register:
        """Return the register, no older than a lease. Raises RegionFenced if it cannot be read."""
        with self._lock:
            if self._reading is None or self._reading.is_stale(self._now()):
                self._renew()
            if self._reading is None or not self._reading.holds(self._now()):
                raise RegionFenced(region=self.region, why="the register cannot be read")
            return self._reading.register

    def check(self, rule: RegisterRule) -> Register:
        """Return the register if the rule lets this region write. Raises RegionFenced."""
        register = self.register()
        if not rule(register, self.region):
            why = f"{register.writer} writes, epoch {register.epoch}, {register.phase}"
            raise RegionFenced(region=self.region, why=why)
        return register

    def _renew(self) -> None:
        began = self._now()
        try:
            register = self._look()
        except Exception:  # noqa: BLE001 (whatever prevents it, the lease goes on until it ends)
            return
        if register:
            self._reading = RegisterReading(register, began)


def guard_client(dynamodb: Any, fence: Fence, rule: RegisterRule) -> Any:
    """Let a client write only while the rule lets the fence's region write; returns the client.

    A client that is guarded twice checks once. Raises ValueError if another rule guards it already.
    """
    if vars(dynamodb).setdefault("fence_rule", rule) is not rule:
        raise ValueError("another rule guards this client")
    for write in WRITES:
        name = f"before-send.dynamodb.{write}"
        dynamodb.meta.events.register(name, partial(_check_fence, fence, rule), unique_id=f"fence {write}")
    return dynamodb


def _check_fence(fence: Fence, rule: RegisterRule, **_: Any) -> None:
    fence.check(rule)


class RegisterMoved(Exception):
    """Somebody else has changed the register since it was read."""


class RegisterStore:
    """The table of the register: one item.

    On AWS it is a global table with strong consistency over three regions. So no region decides alone, and
    one that is cut off from the others can neither read nor write it (docs/decisions/0071).
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        """dynamodb: a client that no fence stops."""
        self._dynamodb, self._table = dynamodb, table

    def read(self) -> Register | None:
        """Return the register as it is now; None if it was never written. Raises what DynamoDB raises."""
        item = get_one(self._dynamodb, self._table, KEY)
        return _register_from(decode_item(item)) if item else None

    def change(self, before: Register | None, to: Register) -> None:
        """Write the register in place of `before`; raises RegisterMoved if another is stored now."""
        put: dict[str, Any] = {
            "TableName": self._table,
            "Item": encode_item(KEY | _attributes(to)),
            "ConditionExpression": "attribute_not_exists(#name)",
            "ExpressionAttributeNames": {"#name": "name"},
        }
        if before:
            put["ConditionExpression"] = "epoch = :epoch AND phase = :phase AND standby = :standby"
            read_values = {":epoch": before.epoch, ":phase": before.phase.value, ":standby": before.standby}
            put["ExpressionAttributeValues"] = encode_item(read_values)
            del put["ExpressionAttributeNames"]
        # If the register is this one, an earlier attempt wrote it, and its answer was lost.
        if not write_if(self._dynamodb.put_item, **put) and self.read() != to:
            raise RegisterMoved(f"{to.writer}, epoch {to.epoch}")


def _attributes(register: Register) -> dict[str, Any]:
    return {**asdict(register), "phase": register.phase.value}


def _register_from(attributes: dict[str, Any]) -> Register:
    names = [field.name for field in fields(Register)]
    return Register(**{name: attributes[name] for name in names} | {"phase": Phase(attributes["phase"])})


@cache
def process_fence() -> Fence | None:
    """Return the process's fence; None in a deployment of one region."""
    table = os.environ.get(REGISTER)
    if not table:
        return None
    # One attempt, and a short one: a lease is renewed long before it ends.
    registers = RegisterStore(free_client("dynamodb", attempts=1, answer_seconds=2), table)
    return Fence(registers.read, current_region())


def current_region() -> str:
    """Return the region that this process is in."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION", "")


def fence_writer(dynamodb: Any) -> Any:
    """Let a client write only while its region is the writer; returns it."""
    fence = process_fence()
    return guard_client(dynamodb, fence, may_write) if fence else dynamodb


def fence_follower(dynamodb: Any) -> Any:
    """Let a client write only while its region follows; returns it."""
    fence = process_fence()
    return guard_client(dynamodb, fence, may_follow) if fence else dynamodb
