"""What dies, throttles or is poisoned, and what must be there afterwards (rule 7)."""

import contextlib
import http.server
import json
import os
import random
import signal
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.items import encode_item
from local.api import Api
from local.cloud import laptop_cloud, processes
from local.cloud.patience import drain
from local.operate.redrive import list_failures, redrive
from local.replay import post_events, put_on_stream
from local.stack import Stack
from tests.e2e.conftest import event
from tests.support.effort import only_soak
from tests.support.released import release, variables_of

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


@only_soak(
    "test_rule_7_holds_after (tests/faults/test_schedules.py) for a processor that dies at any call,"
    " tests/e2e/test_lead_survival.py and tests/e2e/test_lake.py for functions that are killed on the cloud"
)
def test_a_processor_killed_inside_a_batch(stack: Stack, user: str, settled: Settled) -> None:
    users = [f"{user}-{number}" for number in range(12)]
    events = [each for name in users for each in days(name, 30)]
    random.Random(1).shuffle(events)
    stop = threading.Event()
    killed: list[int] = []

    def kill() -> None:
        while not stop.wait(0.4):
            for pid in workers(stack, "Engagement"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    put_on_stream(stack, events[:100])
    killer = threading.Thread(target=kill)
    killer.start()
    post_events(stack, events[100:])
    time.sleep(4)
    stop.set()
    killer.join()
    assert killed
    settled(*users)
    for name in users:
        assert Api(stack).get(f"/v1/users/{name}")["total_bestie_points"] == 300


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


class Throttling(http.server.BaseHTTPRequestHandler):
    """Stands between a function and DynamoDB, and refuses one call in ten."""

    target = ""
    chance = random.Random(5)
    refused = 0
    refusing = True
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        status, answer = (
            400,
            b'{"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "message": "slow"}',
        )
        if Throttling.refusing and Throttling.chance.random() < 0.1:
            Throttling.refused += 1
        else:
            # With the host that was signed.
            request = urllib.request.Request(self.target, body, dict(self.headers.items()))
            try:
                with urllib.request.urlopen(request, timeout=30) as found:
                    status, answer = found.status, found.read()
            except urllib.error.HTTPError as error:
                status, answer = error.code, error.read()
        self.send_response(status)
        self.send_header("content-type", "application/x-amz-json-1.0")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def throttled(stack: Stack) -> Iterator[type[Throttling]]:
    """Route both writing functions' DynamoDB calls through the throttle."""
    Throttling.target, Throttling.refusing = stack.endpoint_url, True
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Throttling)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    names = [stack.outputs[f"{each}FunctionName"] for each in ("Engagement", "EventsApi")]
    before = {name: variables_of(stack, name) for name in names}
    proxy = {"AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{server.server_port}"}
    for name, variables in before.items():
        release(stack, name, variables | proxy)
    yield Throttling
    for name, variables in before.items():
        release(stack, name, variables)
    # The server stays: a worker that still has the old setting must find somebody there.
    Throttling.refusing = False


@only_soak(
    "test_rule_7_holds_after (tests/faults/test_schedules.py), whose schedules throttle any call of both functions"
)
def test_dynamodb_throttling_one_call_in_ten(
    stack: Stack, user: str, settled: Settled, throttled: type[Throttling]
) -> None:
    users = [f"{user}-{number}" for number in range(10)]
    # In small batches: a hundred events in one post would take too few calls to be refused often.
    outcome = post_events(stack, [each for name in users for each in days(name, 30)], batch=20)
    assert outcome.counts["accepted"] + outcome.counts["duplicate"] == 300
    settled(*users)
    assert throttled.refused > 10
    assert all(Api(stack).get(f"/v1/users/{name}")["balance"] == 300 for name in users)


BOARD_KNOWN_SECONDS = 60  # a function remembers the boards for half a minute


@only_soak(
    "test_boards_are_the_same_while_redis_is_away (tests/integration/test_board_snapshots.py),"
    " test_dropped_writes_are_made_good_and_the_backlog_is_cleared (tests/integration/test_cache_contract.py), and"
    " test_a_dead_part_is_named_and_mended_and_nothing_is_lost (tests/e2e/test_dead_parts.py) for Redis of the cloud"
)
def test_redis_stopped_halfway_changes_no_answer(stack: Stack, user: str, settled: Settled) -> None:
    api, users = Api(stack), [f"{user}-{number}" for number in range(6)]
    zone = {"timezone": "Antarctica/Troll"}
    events = [{**each, **zone} for number, name in enumerate(users) for each in days(name, 3 + number)]
    assert post_events(stack, events[: len(events) // 2]).counts == {"accepted": len(events) // 2}
    drain(stack)
    before = {name: api.get(f"/v1/users/{name}") for name in users}
    assert any(each["balance"] for each in before.values())
    processes.stop("redis")
    post_events(stack, events[len(events) // 2 :])
    settled(*users)
    without = {name: api.get(f"/v1/users/{name}") for name in users}
    assert [without[name]["balance"] for name in users] == [10 * (3 + number) for number in range(6)]
    invoke = {"FunctionName": stack.outputs["RanksFunctionName"], "Payload": b"{}"}
    assert json.loads(stack.client("lambda").invoke(**invoke)["Payload"].read())["counted"] >= len(users)
    deadline = time.monotonic() + BOARD_KNOWN_SECONDS
    while len((board := api.get("/v1/leaderboards/points?region=antarctica&limit=100"))["entries"]) < len(
        users
    ):
        assert time.monotonic() < deadline, "nobody else is there, so all of them are among the first hundred"
        time.sleep(0.5)
    laptop_cloud.up()
    time.sleep(6)  # a function leaves a failed Redis alone for five seconds
    assert {name: api.get(f"/v1/users/{name}") for name in users} == without
    ranks = {row["alias"]: row["rank"] for row in board["entries"]}
    for name in users:
        own = api.get(f"/v1/leaderboards/points/users/{name}?region=antarctica")
        assert own["rank"] == ranks[own["alias"]]
