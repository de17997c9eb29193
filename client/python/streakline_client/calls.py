"""Calls of the API. A call is repeated while that may help, and raises the service's reason for a refusal."""

import json
import math
import os
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from streakline_client.transport import Refused, Reply, Request, Transport, Unreachable

ATTEMPTS_MAX = 5
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.25, 20.0
REPEATED = frozenset({429, 503})
UNAUTHORIZED = 401
# After these a command may have taken effect, or may yet: nobody says that it was refused.
UNCERTAIN = frozenset({UNAUTHORIZED, 408, 425, 429})
OPEN_SECONDS_MAX = 86_400.0
# Redirects are not followed: the token would go to another address.
REDIRECTS = range(300, 400)
# A gateway refuses a token in words of its own. A pattern of these words -> the code for the refusal.
TOKEN_CODES = (
    ("expired", "token_expired"),
    ("audience", "wrong_audience"),
    ("issuer", "unknown_issuer"),
    ("decode|malformed|parse|segment", "malformed_token"),
)
DESCRIPTION = re.compile(r'error_description="([^"]*)"')
UNKNOWN = "unknown"  # the code of a refusal without a code of the service


class OpenCommands(Protocol):
    """Commands whose answer is missing: (body with its key, when it was last sent, in seconds since 1970).

    A dict will do.
    """

    def get(self, name: str, /) -> tuple[dict[str, Any], float] | None:
        """Return a command; None: its answer is not missing."""

    def __setitem__(self, name: str, value: tuple[dict[str, Any], float], /) -> None:
        """Keep a command."""

    def pop(self, name: str, default: None, /) -> Any:
        """Forget a command."""


class Calls:
    """The service, reached by a transport."""

    def __init__(
        self,
        transport: Transport,
        token: str | Callable[[], str],
        timeout: float,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """timeout: seconds for one attempt."""
        self._send, self._token, self._timeout, self._sleep = transport, token, timeout, sleep
        # A tracker sets these two, once its queue's file is open.
        # Returns the device's id in requests; "": the service gives no time receipts.
        self.device_id: Callable[[], str] = str
        # Is called with each receipt: the request's path, the device, and the receipt.
        self.on_receipt: Callable[[str, str, str], None] = lambda *_: None
        # Keeps commands whose answer is missing, by a text that names the command.
        self.open_commands: OpenCommands = {}
        self._under_way: dict[tuple[int, str], object] = {}

    def call(  # noqa: PLR0913, PLR0917 (what is said of a request)
        self,
        method: str,
        path: str,
        query: Any = None,
        body: Any = None,
        timeout: float | None = None,
        prefer: str = "",
    ) -> Any:
        """Send a request, and repeat it while that may help; returns the answer's JSON object.

        A repetition does no harm: every request only reads, or has a key. prefer: the header of this name.
        Raises Refused, Unreachable.
        """
        target = with_query(path, query or {})
        for attempt in range(ATTEMPTS_MAX - 1):
            try:
                reply = self.once(method, target, body, timeout, prefer=prefer)
            except Unreachable:
                self._sleep(pause(attempt, None))
                continue
            if reply.status not in REPEATED:
                return _content(reply)
            self._sleep(pause(attempt, retry_after_seconds(reply.headers)))
        return _content(self.once(method, target, body, timeout, prefer=prefer))

    def command(
        self, path: str, body: dict[str, Any], key: str | None, *, answer_field: str, name: Any = None
    ) -> Any:
        """Send a command that has an effect, once. key: the app's own; None: one is made.

        If its answer is lost, the next command of the same name is the same one, for a day: it has the same
        body and key, so it takes effect once. name: JSON; None: the body is its own name. answer_field: a
        field of each answer, which an answer of somebody on the way lacks. Raises Refused, Unreachable.
        """
        if key is not None:
            return self._take_effect(path, {**body, "idempotency_key": key}, answer_field)
        with self._own_name(f"{path} {json.dumps(name or body, sort_keys=True)}") as own_name:
            kept, now = self.open_commands.get(own_name), time.time()
            is_open = kept is not None and abs(now - kept[1]) < OPEN_SECONDS_MAX
            sent = kept[0] if kept and is_open else {**body, "idempotency_key": str(uuid.uuid4())}
            self.open_commands[own_name] = (sent, now)
            try:
                answer = self._take_effect(path, sent, answer_field)
            except Refused as refused:
                # An attempt before may have taken effect. Only the service itself says that none has.
                is_certain = 400 <= refused.status < 500 and refused.status not in UNCERTAIN
                if is_certain and refused.code != UNKNOWN:
                    self.open_commands.pop(own_name, None)
                raise
            self.open_commands.pop(own_name, None)
            return answer

    def _take_effect(self, path: str, body: dict[str, Any], answer_field: str) -> Any:
        answer = self.call("POST", path, body=body)
        if answer_field not in answer:
            raise Unreachable(f"POST {path}: the answer is not the service's")
        return answer

    @contextmanager
    def _own_name(self, command: str) -> Iterator[str]:
        """Open a block with a name for a command. Of the same command sent twice at once each has its own."""
        number, mine = 0, object()
        while self._under_way.setdefault(slot := (os.getpid(), f"{command} {number}"), mine) is not mine:
            number += 1
        try:
            yield slot[1]
        finally:
            del self._under_way[slot]

    def once(  # noqa: PLR0913, PLR0917 (what is said of a request)
        self,
        method: str,
        target: str,
        body: Any = None,
        timeout: float | None = None,
        device: str = "",
        prefer: str = "",
    ) -> Reply:
        """Send a request once; returns the reply, of any status.

        If the token is refused and the app has a newer one, the request is sent again with that one. device:
        the device of an earlier time; "": this one. prefer: the header of this name. Raises Unreachable.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "Cache-Control": "no-cache"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        if device := device or self.device_id():
            headers["Streakline-Device"] = device
        if prefer:
            headers["Prefer"] = prefer

        def send(token: str) -> Reply:
            with_token = {**headers, "Authorization": f"Bearer {token}"}
            return self._send(Request(method, target, with_token, data, timeout or self._timeout))

        token = self._fresh_token()
        reply = send(token)
        if reply.status == UNAUTHORIZED and callable(self._token) and (newer := self._fresh_token()) != token:
            reply = send(newer)
        if reply.status in REDIRECTS:
            location = reply.headers.get("location", "another address")
            raise Unreachable(f"{method} {target.partition('?')[0]}: redirected to {location}")
        receipt = reply.headers.get("streakline-time-receipt")
        if 200 <= reply.status < 300 and receipt and is_fresh(reply.headers):
            self.on_receipt(target, device, receipt)
        return reply

    def _fresh_token(self) -> str:
        try:
            token: Any = self._token() if callable(self._token) else self._token
        except Exception as error:
            raise Unreachable(f"the function `token` has failed: {error!r}") from error
        if not isinstance(token, str) or not token.strip():
            raise Unreachable("the function `token` returned no token")
        return token.strip()


def in_seconds(value: float | timedelta, name: str) -> float:
    """Return a duration in seconds; raises ValueError, with its name, for any other value."""
    try:
        seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{name} must be seconds or a timedelta, and not {value!r}")
    return seconds


def path_part(text: str) -> str:
    """Return a text as it is written in one part of a path."""
    return quote(text, safe="")


def user_part(user_id: str) -> str:
    """Return a user's or an agent's id as it is written in one part of a path.

    A slash is encoded twice: an HTTP API of AWS decodes a path before it looks for the route.
    """
    return path_part(user_id).replace("%2F", "%252F")


def with_query(path: str, query: Any) -> str:
    """Return a path with its query. A parameter whose value is None is left out."""
    text = urlencode({name: value for name, value in query.items() if value is not None})
    return path + (f"?{text}" if text else "")


def is_fresh(headers: Mapping[str, str]) -> bool:
    """Whether an answer is new, and not one that a cache has kept."""
    return headers.get("age", "0").strip() == "0"


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the header Retry-After asks for, by a number or a date; None without it."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        until, now = parsedate_to_datetime(text), parsedate_to_datetime(headers["date"])
        return max(0.0, (until - now).total_seconds())
    except (KeyError, TypeError, ValueError):
        return None


def pause(
    attempt: int, retry_after: float | None, first: float = PAUSE_SECONDS, most: float = PAUSE_SECONDS_MAX
) -> float:
    """Return the seconds to wait before the next attempt, at most `most`.

    They are those of the service's answer. Without any it is a random time up to `first` seconds, which
    doubles with each attempt (full jitter).
    """
    if retry_after is not None:
        return min(most, retry_after)
    return random.uniform(0, min(most, first * 2.0 ** min(attempt, 30)))  # noqa: S311 (no secret)


def refusal_of(reply: Reply) -> Refused:
    """Return the error that a reply contains.

    The service answers {"error": {"code", "message", "details"}}, a gateway {"message"}. If a gateway refuses
    a token, the header www-authenticate has the reason (RFC 6750).
    """
    content = read_json(reply)
    body = content if isinstance(content, dict) else {}
    error = body["error"] if isinstance(body.get("error"), dict) else {"message": body.get("message")}
    code, message = error.get("code"), error.get("message")
    words = str(message or ("no reason given" if reply.status >= 300 else "the answer is not the service's"))
    if reply.status == UNAUTHORIZED and not code:
        described = DESCRIPTION.search(reply.headers.get("www-authenticate", ""))
        words = (described and described[1]) or words
        codes = (code for pattern, code in TOKEN_CODES if re.search(pattern, words, re.IGNORECASE))
        code = next(codes, "unauthorized")
    return Refused(reply.status, str(code or UNKNOWN), words, error.get("details"))


def _content(reply: Reply) -> Any:
    """Return the JSON object of an answer. Raises Refused, and Unreachable if the answer has none.

    Then it is the login page of a network, for example, or half an answer.
    """
    if not 200 <= reply.status < 300:
        raise refusal_of(reply)
    content = read_json(reply)
    if not isinstance(content, dict):
        raise Unreachable(f"the service answered {reply.status} without a JSON object")
    return content


def read_json(reply: Reply) -> Any:
    """Return the JSON value of an answer's body; None if it is no JSON."""
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
