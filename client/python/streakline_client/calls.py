"""Calls of the API: sent again while that may help, refused with the service's reason."""

import json
import random
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlencode

from streakline_client.errors import Refused, StreaklineError, Unreachable
from streakline_client.transport import Reply, Request, Transport

ATTEMPTS_MAX = 5
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.25, 20.0
AGAIN = frozenset({429, 503})
# The code of a refusal that has none of the service's.
UNKNOWN = "unknown"


class Calls:
    """The service, reached by a transport."""

    def __init__(
        self,
        transport: Transport,
        token: Callable[[], str],
        timeout: float,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """timeout: seconds for one attempt."""
        self._send, self._token, self._timeout, self._sleep = transport, token, timeout, sleep
        # What the device is called ("": it gets no receipts). Who is told of a receipt: path, device, text.
        self.device: Callable[[], str] = str
        self.received: Callable[[str, str, str], None] = lambda *_: None

    def call(
        self, method: str, path: str, query: Any = None, body: Any = None, timeout: float | None = None
    ) -> Any:
        """Send a request, and repeat it while that may help. It only reads or has a key, so it may be.

        Raises Refused, Unreachable.
        """
        target = with_query(path, query or {})
        for attempt in range(ATTEMPTS_MAX - 1):
            try:
                reply = self.once(method, target, body, timeout)
            except Unreachable:
                self._sleep(pause(attempt, None))
                continue
            if reply.status not in AGAIN:
                return _content(reply)
            self._sleep(pause(attempt, asked(reply.headers)))
        return _content(self.once(method, target, body, timeout))

    def once(
        self, method: str, target: str, body: Any = None, timeout: float | None = None, device: str = ""
    ) -> Reply:
        """Send a request once; returns a reply of any status. Raises Unreachable."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token()}", "Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        if device := device or self.device():
            headers["Streakline-Device"] = device
        reply = self._send(Request(method, target, headers, data, timeout or self._timeout))
        if 200 <= reply.status < 300 and (receipt := reply.headers.get("streakline-time-receipt")):
            self.received(target, device, receipt)
        return reply


def part(text: str) -> str:
    """Return a text as one part of a path."""
    return quote(text, safe="")


def with_query(path: str, query: Any) -> str:
    """Return a path with its query. What is None is left out."""
    asked = urlencode({name: value for name, value in query.items() if value is not None})
    return path + (f"?{asked}" if asked else "")


def asked(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that Retry-After asks for, as a number or as a date; None: it says nothing."""
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
    """Return the seconds to wait: what the service says, else a random time that grows (full jitter)."""
    if retry_after is not None:
        return min(most, retry_after)
    return random.uniform(0, min(most, first * 2.0 ** min(attempt, 30)))  # noqa: S311 (no secret)


def refusal_of(reply: Reply) -> Refused:
    """Return the error that a reply tells. A gateway's own is {"message"}, without {"error"} around it."""
    content = _json(reply)
    told = content if isinstance(content, dict) else {}
    error = told["error"] if isinstance(told.get("error"), dict) else told
    message = str(error.get("message", "no reason given"))
    return Refused(reply.status, str(error.get("code", UNKNOWN)), message, error.get("details"))


def _content(reply: Reply) -> Any:
    if not 200 <= reply.status < 300:
        raise refusal_of(reply)
    content = _json(reply)
    if not isinstance(content, dict):
        raise StreaklineError(f"the service answered {reply.status} without a JSON object")
    return content


def _json(reply: Reply) -> Any:
    try:
        return json.loads(reply.body)
    except ValueError:
        return None
