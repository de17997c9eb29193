"""Sends a notification to an endpoint: as a signed webhook, or as an event on an EventBridge bus.

A webhook must never reach a private address. So each attempt resolves the host's name once, checks that every
address is public, and connects to one of these addresses. A name that changes between check and connect has
no effect. Redirects are not followed. The certificate is checked against the name.
"""

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from adapters.hook_store import HookStore, NoHook
from rules.days import unstamp
from rules.hooks import Hook
from rules.outgoing.notices import BUS, Endpoint, Notification
from rules.outgoing.webhooks import Target, UrlRefused, is_public, signed_headers, target_of

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 15.0  # as Standard Webhooks advise
INTERIM = frozenset({*range(100, 200)} - {http.client.SWITCHING_PROTOCOLS})  # answers before the answer
ADDRESSES_TRIED = 3  # of one host in one attempt
Resolver = Callable[[str, int], Iterable[str]]  # (host, port) -> addresses
SECRETS_KEPT_SECONDS = 60.0  # how long a process uses an endpoint's secrets before it reads them again
SOURCE = "streakline"  # of events on the bus


@dataclass(frozen=True, slots=True)
class SendAnswer:
    """The result of an attempt."""

    status: int  # of HTTP; 0: there was no answer, and reason says why
    reason: str = ""

    @property
    def is_delivered(self) -> bool:
        """Whether the endpoint has taken the message."""
        return 200 <= self.status < 300

    @property
    def is_gone(self) -> bool:
        """Whether the endpoint says that it wants no more messages."""
        return self.status == http.client.GONE


def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses of a host; raises OSError."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address) for _, _, _, _, (address, *_) in entries))


class _Connection:
    """An open socket that another thread may cut.

    A socket's own timeout is not enough: an endpoint may send one byte after another for ever.
    """

    def __init__(self, open_socket: socket.socket) -> None:
        self.socket, self.is_cut = open_socket, False

    def secure(self, context: ssl.SSLContext, host: str) -> None:
        """Speak TLS from now on; raises OSError."""
        wrapped = context.wrap_socket(self.socket, server_hostname=host, do_handshake_on_connect=False)
        self.socket = wrapped  # before the handshake, so that it can be cut too
        wrapped.do_handshake()

    def cut(self) -> None:
        """End the connection. A thread that reads from it gets an error, or the end."""
        self.is_cut = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True)
class HookSender:
    """Posts requests to public addresses."""

    resolve: Resolver = resolve_host
    # Returns whether a request may go to an address. On a laptop it may go to private ones.
    is_allowed: Callable[[str], bool] = is_public
    context: ssl.SSLContext | None = None  # None: the system's authorities
    answer_seconds: float = ANSWER_SECONDS

    def post(self, target: Target, headers: Mapping[str, str], body: bytes) -> SendAnswer:
        """Post a body. A fault of the endpoint or its network is not raised. It is the answer's reason."""
        try:
            connection = _Connection(self._open_socket(target))
        except (OSError, UnicodeError, ValueError) as error:
            return SendAnswer(0, _error_text(error))
        too_late = SendAnswer(0, f"no answer in {self.answer_seconds:g} seconds")
        timer = threading.Timer(self.answer_seconds, connection.cut)
        timer.daemon = True
        timer.start()
        try:
            if target.is_secure:
                connection.secure(self.context or _tls_context(), target.host)
            answer = _post_request(connection.socket, target, headers, body)
            # Where a connection was cut among the headers, http.client takes the headers for complete.
            return too_late if connection.is_cut else answer
        except (OSError, http.client.HTTPException, ValueError) as error:
            is_late = connection.is_cut or isinstance(error, TimeoutError)
            return too_late if is_late else SendAnswer(0, _error_text(error))
        finally:
            timer.cancel()
            connection.socket.close()

    def _open_socket(self, target: Target) -> socket.socket:
        """Open a socket to one of the host's addresses, all of which were checked; raises OSError."""
        addresses = list(self.resolve(target.host, target.port))
        if not all(map(self.is_allowed, addresses)):
            raise ConnectionError("the host leads to a private or reserved address")
        refusal: OSError = ConnectionError("the host has no address")
        for address in addresses[:ADDRESSES_TRIED]:
            try:
                open_socket = socket.create_connection((address, target.port), CONNECT_SECONDS)
            except OSError as error:
                refusal = error
                continue
            open_socket.settimeout(self.answer_seconds)
            return open_socket
        raise refusal


@dataclass(frozen=True, slots=True)
class Transport:
    """Sends to any endpoint."""

    secrets: HookStore  # an endpoint's secrets are stored like a hook's
    sender: HookSender
    events: Callable[[], Any]  # returns the client of EventBridge
    may_be_private: bool = False  # whether URLs may have private hosts: only on a laptop
    # Endpoint's id -> when its hook was read, and the hook
    _cache: dict[str, tuple[float, Hook]] = field(default_factory=dict)

    def send(self, endpoint: Endpoint, notification: Notification, now: datetime) -> SendAnswer:
        """Send a notification to an endpoint; raises what EventBridge and Secrets Manager raise."""
        if endpoint.endpoint_id == BUS:
            return self._put_on_bus(endpoint, notification)
        try:
            target = target_of(endpoint.url, may_be_private=self.may_be_private)
            valid = self._hook(endpoint).valid(now)
        except UrlRefused as refused:
            return SendAnswer(0, f"the URL {refused}")
        except NoHook:
            return SendAnswer(0, "the endpoint has no secret")
        body = notification.body
        return self.sender.post(target, signed_headers(valid, notification.message_id, now, body), body)

    def _hook(self, endpoint: Endpoint) -> Hook:
        """Return an endpoint's secrets as they were at most a minute ago."""
        read_at, hook = self._cache.get(endpoint.endpoint_id, (0.0, None))
        if hook is None or time.monotonic() - read_at > SECRETS_KEPT_SECONDS:
            hook = self.secrets.get(endpoint.organization_id, endpoint.endpoint_id)
            self._cache[endpoint.endpoint_id] = time.monotonic(), hook
        return hook

    def _put_on_bus(self, endpoint: Endpoint, notification: Notification) -> SendAnswer:
        content = notification.content
        entry = {
            "Source": SOURCE,
            "DetailType": content["type"],
            "Detail": json.dumps({"id": notification.message_id, **content["data"]}),
            "EventBusName": endpoint.url,
            "Time": unstamp(notification.at),
        }
        answer = self.events().put_events(Entries=[entry])
        if answer.get("FailedEntryCount"):
            return SendAnswer(0, str(answer["Entries"][0].get("ErrorCode", "refused")))
        return SendAnswer(200)


@cache
def _tls_context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _post_request(
    open_socket: socket.socket, target: Target, headers: Mapping[str, str], body: bytes
) -> SendAnswer:
    """Send a request over an open socket; raises OSError and http.client.HTTPException."""
    connection = http.client.HTTPConnection(target.host, target.port)
    connection.sock = open_socket
    connection.auto_open = 0  # without this, http.client would resolve the host and connect by itself
    common = {"host": target.host_header, "content-type": "application/json", "user-agent": "Streakline"}
    connection.request("POST", target.path, body, {**common, **headers, "connection": "close"})
    with connection.getresponse() as answer:
        # http.client skips 100 alone. Other interim answers may come first, too (RFC 9110, 15.2).
        while answer.status in INTERIM:
            # With headers, begin() takes the answer for read.
            answer.headers = None  # type: ignore[assignment]
            answer.begin()
        return SendAnswer(answer.status, f"HTTP {answer.status}")


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
