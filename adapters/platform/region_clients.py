"""Whose turn it is, for a process of a deployment of two regions (rule 23).

Who wires a function says on which side of the fence its client of DynamoDB stands: `fenced` writes while the
region is the writer, `following` while it follows. In a deployment of one region both change nothing.
"""

import os
from functools import cache
from typing import Any

from adapters.platform.aws import free_client
from adapters.platform.fence import Fence, RegisterStore, guard_client
from rules.regions.register import may_follow, may_write

REGISTER = "REGION_REGISTER"  # names the register's table, in a deployment of two regions


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
    found = process_fence()
    return guard_client(dynamodb, found, may_write) if found else dynamodb


def fence_follower(dynamodb: Any) -> Any:
    """Let a client write only while its region follows; returns it."""
    found = process_fence()
    return guard_client(dynamodb, found, may_follow) if found else dynamodb
