"""A record that is poisoned or malformed waits with its reason, and holds back no other (rule 7)."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.items import encode_item
from local.api import Api
from local.operate.redrive import list_failures, redrive
from local.replay import post_events, put_on_stream
from local.stack import Stack
from tests.e2e.conftest import event

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")

Settled = Callable[..., None]


def workers(stack: Stack, logical_id: str) -> list[int]:
    """The processes that run a function."""
    wanted = f"AWS_LAMBDA_FUNCTION_NAME={stack.outputs[f'{logical_id}FunctionName']}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def know_at_once(stack: Stack, *logical_ids: str) -> None:
    """Let functions read anew what they keep for up to a minute: other processes begin."""
    for pid in (each for name in logical_ids for each in workers(stack, name)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def days(user: str, number: int) -> list[dict[str, Any]]:
    return [
        event(user, f"k{each}", f"2026-0{1 + each % 9}-{1 + each % 28:02}T10:00:00Z")
        for each in range(number)
    ]


def test_one_poison_record_in_100_waits_with_its_reason(stack: Stack, user: str, settled: Settled) -> None:
    dynamodb, table = stack.client("dynamodb"), stack.tables["BPEvents"]
    good = [f"{user}-{number}" for number in range(9)]
    bad = {"user_id": f"{user}-bad", "event_id": "2026-01-01T00:00:00.000000Z#poison"}
    events = [each for name in good for each in days(name, 11)]
    post_events(stack, events[:50])
    dynamodb.put_item(
        TableName=table, Item=encode_item({**bad, "event_type": "CONTRIBUTION", "points_awarded": 10})
    )
    post_events(stack, events[50:])
    settled(*good)
    left = [
        each
        for each in redrive(stack)["left"]
        if each["record"] and bad["user_id"] in json.dumps(each["record"])
    ]
    assert len(left) == 1
    assert "idempotency_key is missing" in left[0]["reason"]

    repaired = {
        **bad,
        "idempotency_key": "k",
        "event_type": "CONTRIBUTION",
        "points_awarded": 10,
        "source": "repair",
        "occurred_at": "2026-01-01T00:00:00Z",
        "activity_date": "2026-01-01",
        "rules_version": 1,
        "zone": "UTC",
        "created_at": "2026-01-01T00:00:00.000000Z",
        "ttl": int(time.time()) + 10**6,
    }
    dynamodb.put_item(TableName=table, Item=encode_item(repaired))
    assert redrive(stack)["redriven"] >= 1
    assert Api(stack).get(f"/v1/users/{bad['user_id']}")["balance"] == 10
    settled(str(bad["user_id"]))


def test_a_malformed_kinesis_record_waits_with_its_reason(stack: Stack, user: str, settled: Settled) -> None:
    kinesis, stream = stack.client("kinesis"), stack.outputs["EventsStreamName"]
    for data in (
        b"\xff\xfe",
        b"\xf3\x89\x9a\xc2 not protobuf",
        b"[]",
        json.dumps({"user_id": user}).encode(),
    ):
        kinesis.put_record(StreamName=stream, Data=data, PartitionKey=user)
    put_on_stream(stack, [event(user, "good")])
    settled(user)
    assert Api(stack).get(f"/v1/users/{user}")["balance"] == 10
    reasons = [each["reason"] for each in list_failures(stack)]
    assert {"the record is aggregated, and damaged", "the record holds no event"} <= {*reasons}
    assert any(
        "event_type is missing" in reason or "idempotency_key is missing" in reason for reason in reasons
    )
