"""The client: one agent asks questions, and reads the answers as they come."""

import json
import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from streakline_client.errors import Refused, StreaklineError, Unreachable
from streakline_client.model import Answer, Question, Stats
from streakline_client.transport import Reply, Request, Transport, over_http

ATTEMPTS_MAX = 5
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.25, 20.0
AGAIN = frozenset({429, 503})
WAIT_SECONDS_MAX = 20
# The least time between two polls without answers, for a service that answers at once instead of waiting.
POLL_SECONDS_MIN = 0.5


class Streakline:
    """The service at a URL, for one agent."""

    def __init__(
        self,
        url: str,
        token: str | Callable[[], str],
        *,
        transport: Transport | None = None,
        timeout: float = 10.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """token: a bearer token, or a function that returns a fresh one. timeout: seconds, without `wait`."""
        self._token = token if callable(token) else lambda: token
        self._send = transport or over_http(url)
        self._timeout, self._sleep = timeout, sleep

    def ask(  # noqa: PLR0913 (a question's own attributes, by name)
        self,
        prompt: str,
        *,
        options: Sequence[str] = (),
        required_responses: int = 1,
        audience: Sequence[str] = (),
        category: str | None = None,
        closes_in: timedelta | None = None,
        closes_at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Question:
        """Ask people. With options (2 to 10) they choose one; without, they write a text.

        Raises Refused; its code is "conflict" if the key was used for another question.
        """
        body = {
            "idempotency_key": idempotency_key or str(uuid.uuid4()),
            "type": "multiple_choice" if options else "text",
            "prompt": prompt,
            "options": list(options) or None,
            "required_responses": required_responses,
            "audience": list(audience) or None,
            "category": category,
            "closes_at": _closing(closes_in, closes_at),
        }
        sent = {name: value for name, value in body.items() if value is not None}
        return Question.read(self._call("POST", "/v1/questions", body=sent))

    def question(self, question_id: str) -> Question:
        """Return a question as it is now; raises Refused (404) if there is none."""
        return Question.read(self._call("GET", f"/v1/questions/{_part(question_id)}"))

    def questions(self, agent_id: str, *, limit: int = 50) -> Iterator[Question]:
        """Yield an agent's questions, newest first, a page of `limit` at a time."""
        cursor = None
        while True:
            query = {"limit": limit, "cursor": cursor}
            page = self._call("GET", f"/v1/agents/{_part(agent_id)}/questions", query)
            yield from map(Question.read, page["questions"])
            cursor = page.get("cursor")
            if not cursor:
                return

    def answers(
        self, question_id: str, *, wait: int = WAIT_SECONDS_MAX, timeout: float | None = None
    ) -> Iterator[Answer]:
        """Yield each answer once, as it comes, until the question is done.

        wait: seconds that one request may stay open; with 0 it yields the answers that are there, and stops.
        timeout: seconds after which it stops in any case; None: never.
        """
        until = None if timeout is None else time.monotonic() + timeout
        path, after = f"/v1/questions/{_part(question_id)}/responses", None
        while True:
            left = wait if until is None else max(0, min(wait, int(until - time.monotonic())))
            started = time.monotonic()
            page = self._call("GET", path, {"wait": left, "after": after}, timeout=self._timeout + left)
            for each in page["responses"]:
                yield Answer.read({**each, "question_id": question_id})
            after = page["cursor"]
            if page["done"] or (until is not None and time.monotonic() >= until):
                return
            if not page["responses"]:
                if wait == 0:
                    return
                self._sleep(max(0.0, POLL_SECONDS_MIN - (time.monotonic() - started)))

    def stats(self, fingerprint: str = "me") -> Stats:
        """Return the stats of a person who answers; by default the caller's own."""
        return Stats.read(self._call("GET", f"/v1/stats/{_part(fingerprint)}"))

    def _call(
        self, method: str, path: str, query: Any = None, body: Any = None, timeout: float | None = None
    ) -> Any:
        """Send a request, and repeat it while that may help. Each one only reads or has a key, so it may."""
        asked = urlencode({name: value for name, value in (query or {}).items() if value is not None})
        target, data = (
            path + (f"?{asked}" if asked else ""),
            None if body is None else json.dumps(body).encode(),
        )
        for attempt in range(ATTEMPTS_MAX - 1):
            try:
                reply = self._send(self._request(method, target, data, timeout))
            except Unreachable:
                self._sleep(_pause(attempt, None))
                continue
            if reply.status not in AGAIN:
                return _content(reply)
            self._sleep(_pause(attempt, reply.headers.get("retry-after")))
        return _content(self._send(self._request(method, target, data, timeout)))

    def _request(self, method: str, target: str, data: bytes | None, timeout: float | None) -> Request:
        headers = {"Authorization": f"Bearer {self._token()}", "Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        return Request(method, target, headers, data, timeout or self._timeout)


def _part(text: str) -> str:
    return quote(text, safe="")


def _pause(attempt: int, retry_after: str | None) -> float:
    """Return the seconds to wait: what the service says, else a random time that grows by attempt."""
    if retry_after and retry_after.isascii() and retry_after.isdigit():
        return min(PAUSE_SECONDS_MAX, float(retry_after))
    return random.uniform(0, min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * 2**attempt))  # noqa: S311 (no secret)


def _content(reply: Reply) -> Any:
    try:
        content = json.loads(reply.body)
    except ValueError:
        content = None
    if 200 <= reply.status < 300:
        if not isinstance(content, dict):
            raise StreaklineError(f"the service answered {reply.status} without a JSON object")
        return content
    # A refusal by the gateway itself is {"message"}, without {"error"} around it.
    told = content if isinstance(content, dict) else {}
    error = told["error"] if isinstance(told.get("error"), dict) else told
    message = str(error.get("message", "no reason given"))
    raise Refused(reply.status, str(error.get("code", "unknown")), message, error.get("details"))


def _closing(closes_in: timedelta | None, closes_at: datetime | None) -> str | None:
    if closes_in is not None:
        closes_at = datetime.now(UTC) + closes_in
    if closes_at is not None and closes_at.tzinfo is None:
        raise ValueError("closes_at needs a time zone")
    return closes_at.astimezone(UTC).isoformat() if closes_at else None
