"""Whether the parts of the laptop cloud run. Each must answer itself: a process may run and do nothing."""

import contextlib
import json
import time
import urllib.request
from collections.abc import Callable

from adapters.platform.redis import Redis, RedisError
from local.cloud import embedded_postgres, processes
from local.cloud.poller import HEARTBEAT
from local.paths import LOCAL
from local.stack import Stack

PORTS = LOCAL / "ports.json"
PORTS_END = 65_536
UNKNOWN_PORT = 0  # nobody answers there
# The poller writes HEARTBEAT each time it has looked at a shard without records, which is every second.
SILENT_SECONDS_MAX = 30
REDIS_ATTEMPTS = 8  # each waits a quarter of a second
STOPPED, SILENT = "does not run", "does not answer"


def troubles(stack: Stack) -> dict[str, str]:
    """Return why each process does not do its work, "" if it does; by its name."""
    ports = known_ports()
    emulator = _trouble(
        "ministack", lambda: "" if is_healthy(ports.get("ministack", UNKNOWN_PORT)) else SILENT
    )
    return {
        "ministack": emulator,
        # Without the emulator it has nothing to do.
        "poller": _trouble("poller", (lambda: "") if emulator else _poller),
        "redis": _trouble("redis", lambda: _redis(stack.redis_url)),
        "postgres": _trouble(
            "postgres", lambda: "" if embedded_postgres.is_up(ports.get("postgres", UNKNOWN_PORT)) else SILENT
        ),
    }


def known_ports() -> dict[str, int]:
    """Return each process's port, by its name; empty before the first `up`, or if the file is damaged."""
    try:
        found = dict(json.loads(PORTS.read_text()))
    except (OSError, TypeError, ValueError):
        return {}
    return {name: port for name, port in found.items() if type(port) is int and 0 < port < PORTS_END}


def is_healthy(port: int) -> bool:
    """Whether the emulator answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _trouble(process: str, ask: Callable[[], str]) -> str:
    return STOPPED if processes.pid_of(process) is None else ask()


def _poller() -> str:
    try:
        silent = time.time() - HEARTBEAT.stat().st_mtime
    except OSError:
        return "has not begun"
    return "" if silent < SILENT_SECONDS_MAX else f"has done nothing for {silent:.0f} s"


def _redis(url: str) -> str:
    for _ in range(REDIS_ATTEMPTS):
        with contextlib.suppress(RedisError):
            Redis(url).call("PING")
            return ""
    return SILENT
