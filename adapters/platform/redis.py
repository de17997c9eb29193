"""A small Redis client: RESP2 over one socket, pipelined.

We wrote it because importing redis-py takes longer than importing botocore does, and a function that uses
Redis would start too slowly (bench/cold_start.py). We use a dozen commands.

It speaks to one endpoint, alone or in cluster mode (ElastiCache Serverless). In cluster mode all keys of a
command or of a script must be in one slot. It does not follow a cluster of several nodes.
"""

import logging
import socket
import ssl
import threading
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

TIMEOUT_SECONDS = 0.25
ELSEWHERE = ("MOVED ", "ASK ")
Command = Sequence[str | int | float]

logger = logging.getLogger(__name__)


class RedisError(Exception):
    """Redis cannot be reached, or refused a command."""


class Redis:
    """One connection, opened when first needed and again after a failure. Threads take turns."""

    def __init__(self, url: str) -> None:
        """url: redis://[:password@]host[:port][/db], or rediss:// for TLS. Cluster mode has db 0 only."""
        self._url = urlsplit(url)
        if self._url.scheme not in ("redis", "rediss") or not self._url.hostname:
            raise ValueError("REDIS_URL must be redis://host:port or rediss://host:port")
        self._turn = threading.RLock()  # answers come in the order of commands, whichever thread asked
        self._socket: socket.socket | None = None
        self._file: Any = None
        self._unsupported = ""
        self._has_warned = False

    @property
    def is_unsupported(self) -> bool:
        """Whether Redis is a cluster of several nodes, which this client does not follow."""
        return bool(self._unsupported)

    def call(self, *command: str | float) -> Any:
        """Run one command; raises RedisError."""
        return self.pipeline([command])[0]

    def pipeline(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands in one round trip; returns their answers.

        Raises RedisError if any of them fails; the others may have run all the same. Raises it at every later
        call, too, once a command has been sent to another node: a part of a cache would give old values.
        """
        with self._turn:
            if self._unsupported:
                raise RedisError(self._unsupported)
            try:
                if self._socket is None:
                    self._connect()
                return self._exchange(commands)
            except (OSError, ValueError) as error:
                self.close()
                raise RedisError(str(error)) from error

    def close(self) -> None:
        """Drop the connection."""
        with self._turn:
            if self._socket is not None:
                self._file.close()
                self._socket.close()
            self._socket = None

    def _connect(self) -> None:
        host, port = self._url.hostname, self._url.port or 6379
        raw = socket.create_connection((host, port), timeout=TIMEOUT_SECONDS)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._url.scheme == "rediss":
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
        self._socket, self._file = raw, raw.makefile("rb")
        hello: list[Command] = []
        if self._url.password:
            user = [unquote(self._url.username)] if self._url.username else []
            hello.append(["AUTH", *user, unquote(self._url.password)])
        database = self._url.path.strip("/")
        if database not in ("", "0"):
            hello.append(["SELECT", database])
        try:
            self._exchange(hello)
        except RedisError as error:
            self.close()
            self._warn(f"Redis refuses the login or the database of REDIS_URL: {error}")
            raise

    def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        if self._socket is None:
            raise OSError("not connected")
        self._socket.sendall(b"".join(map(_encode, commands)))
        answers = [self._read() for _ in commands]
        errors = [answer for answer in answers if isinstance(answer, RedisError)]
        for error in errors:
            if str(error).startswith(ELSEWHERE):
                self._unsupported = f"Redis is a cluster of several nodes, which is not supported: {error}"
                self._warn(f"{self._unsupported}. This process goes on without a cache.")
                self.close()
                raise RedisError(self._unsupported)
        if errors:
            raise errors[0]
        return answers

    def _warn(self, text: str) -> None:
        """Log it once."""
        if not self._has_warned:
            logger.warning(text)
        self._has_warned = True

    def _read(self) -> Any:
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("connection closed")
        kind, text = line[:1], line[1:-2].decode()
        if kind == b"+":
            return text
        if kind == b"-":
            return RedisError(text)
        if kind == b":":
            return int(text)
        if kind == b"$":
            return None if text == "-1" else self._bulk(int(text))
        if kind == b"*":
            return None if text == "-1" else [self._read() for _ in range(int(text))]
        raise OSError(f"unknown reply {line[:20]!r}")

    def _bulk(self, size: int) -> str:
        data = self._file.read(size + 2)
        if len(data) != size + 2 or not data.endswith(b"\r\n"):
            raise OSError("connection closed inside a reply")
        text: str = data[:-2].decode()
        return text


def _encode(command: Command) -> bytes:
    parts = [str(part).encode() for part in command]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
