"""Questions: an agent asks, people answer, and the agent reads the answers as they come."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from streakline_client.calls import Calls, in_seconds, path_part, user_part
from streakline_client.shapes import GivenAnswer, OpenQuestions

WAIT_SECONDS_MAX = 20
# The least time between two polls without answers, for a service that answers at once instead of waiting.
POLL_SECONDS_MIN = 0.5
DONE = frozenset({"CLOSED", "EXPIRED"})


@dataclass(frozen=True, slots=True)
class _Shown:
    @classmethod
    def read(cls, shown: Mapping[str, Any]) -> Self:
        """Take this class's fields from a JSON object; lists become tuples, *_at becomes an instant."""
        return cls(
            **{each.name: _value(each.name, shown[each.name]) for each in fields(cls) if each.name in shown}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(_Shown):
    """A question that people answer."""

    question_id: str
    agent_id: str
    type: str  # "multiple_choice" (it has options) or "text"
    prompt: str
    required_responses: int
    current_responses: int
    status: str  # OPEN, PARTIAL, CLOSED or EXPIRED
    created_at: datetime
    closes_at: datetime
    options: tuple[str, ...] = ()
    audience: tuple[str, ...] = ()
    category: str | None = None
    closed_at: datetime | None = None
    duplicate: bool = False  # the question was asked before, with the same idempotency key

    @property
    def is_done(self) -> bool:
        """Whether the question is over, so that no more answers come."""
        return self.status in DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(_Shown):
    """An answer. A choice has selected_option (from 0), a text its answer."""

    question_id: str
    response_id: str
    number: int  # its place among the question's answers, from 1
    created_at: datetime
    confidence: int | None = None  # 1 to 5
    selected_option: int | None = None
    answer: str | None = None
    response_time_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats(_Shown):
    """What a person has earned by answering."""

    fingerprint: str  # the hash that stands for the person
    alias: str
    total_points: int
    total_answers: int
    streak_days: int
    longest_streak_days: int
    streak_status: str
    created_at: datetime | None = None
    badges: tuple[str, ...] = ()
    badges_earned: tuple[Mapping[str, str], ...] = ()
    answers_by_category: Mapping[str, int] = field(default_factory=dict)


def _value(name: str, value: Any) -> Any:
    if name.endswith("_at") and isinstance(value, str):
        return datetime.fromisoformat(value)
    return tuple(value) if isinstance(value, list) else value


class QuestionCalls:
    """The calls of questions."""

    def __init__(self, calls: Calls, timeout: float, sleep: Callable[[float], None]) -> None:
        """timeout: seconds of a request, without `wait`."""
        self._calls, self._timeout, self._sleep = calls, timeout, sleep

    def ask(  # noqa: PLR0913 (a question's own attributes, by name)
        self,
        prompt: str,
        *,
        options: Sequence[str] = (),
        required_responses: int = 1,
        audience: Sequence[str] = (),
        category: str | None = None,
        closes_in: timedelta | float | None = None,
        closes_at: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> Question:
        """Ask people. With options (2 to 10) they choose one; without, they write a text.

        closes_in: a timedelta, or seconds. closes_at: an instant, or its text (RFC 3339). Only one of them.

        Raises Refused; its code is "conflict" if the key was used for another question.
        """
        body = {
            "type": "multiple_choice" if options else "text",
            "prompt": prompt,
            "options": list(options) or None,
            "required_responses": required_responses,
            "audience": list(audience) or None,
            "category": category,
            "closes_at": _closing(closes_in, closes_at),
        }
        sent = {name: value for name, value in body.items() if value is not None}
        # Asked again, closes_in is another instant: the question is known by what the app has given.
        name = sent if closes_in is None else {**sent, "closes_at": in_seconds(closes_in, "closes_in")}
        answer = self._calls.command(
            "/v1/questions", sent, idempotency_key, answer_field="question_id", name=name
        )
        return Question.read(answer)

    def question(self, question_id: str) -> Question:
        """Return a question as it is now; raises Refused (404) if there is none."""
        return Question.read(self._calls.call("GET", f"/v1/questions/{path_part(question_id)}"))

    def questions(self, agent_id: str, *, limit: int = 50) -> Iterator[Question]:
        """Yield an agent's questions, newest first, a page of `limit` at a time."""
        cursor = None
        while True:
            query = {"limit": limit, "cursor": cursor}
            page = self._calls.call("GET", f"/v1/agents/{user_part(agent_id)}/questions", query)
            yield from map(Question.read, page["questions"])
            cursor = page.get("cursor")
            if not cursor:
                return

    def answers(
        self,
        question_id: str,
        *,
        wait: float | timedelta = WAIT_SECONDS_MAX,
        timeout: float | timedelta | None = None,
    ) -> Iterator[Answer]:
        """Yield each answer once, as it comes, until the question is done.

        wait: seconds that one request may stay open; with 0 it yields the answers that are there, and stops.
        timeout: seconds after which it stops in any case; None: never.
        """
        seconds = in_seconds(wait, "wait")
        wait = math.ceil(seconds) if seconds < 1 else int(seconds)  # the service takes whole seconds
        deadline = None if timeout is None else time.monotonic() + in_seconds(timeout, "timeout")
        path, after = f"/v1/questions/{path_part(question_id)}/responses", None
        while True:
            started = time.monotonic()
            poll_wait = wait if deadline is None else max(0, min(wait, int(deadline - started)))
            query = {"wait": poll_wait, "after": after}
            page = self._calls.call("GET", path, query, timeout=self._timeout + poll_wait)
            for each in page["responses"]:
                yield Answer.read({**each, "question_id": question_id})
            after = page["cursor"]
            if page["done"] or (deadline is not None and time.monotonic() >= deadline):
                return
            if not page["responses"]:
                if wait == 0:
                    return
                self._sleep(max(0.0, POLL_SECONDS_MIN - (time.monotonic() - started)))

    def stats(self, fingerprint: str = "me") -> Stats:
        """Return the stats of a person who answers; by default the caller's own."""
        return Stats.read(self._calls.call("GET", f"/v1/stats/{path_part(fingerprint)}"))

    def open_questions(self, *, limit: int = 20, cursor: str | None = None) -> OpenQuestions:
        """Return a page of the questions that this person may answer."""
        found: OpenQuestions = self._calls.call("GET", "/v1/questions", {"limit": limit, "cursor": cursor})
        return found

    def answer(
        self,
        question_id: str,
        *,
        confidence: int,
        selected_option: int | None = None,
        answer: str | None = None,
        timezone: str | None = None,
    ) -> GivenAnswer:
        """Answer a question, once a person: an option (from 0), or a text. confidence: 1 to 5.

        timezone: decides the date on which the answer counts; UTC if it is left out.
        """
        body = {
            "confidence": confidence,
            "selected_option": selected_option,
            "answer": answer,
            "timezone": timezone,
        }
        sent = {name: value for name, value in body.items() if value is not None}
        path = f"/v1/questions/{path_part(question_id)}/responses"
        given: GivenAnswer = self._calls.call("POST", path, body=sent)
        return given


def _closing(closes_in: timedelta | float | None, closes_at: datetime | str | None) -> str | None:
    if closes_in is not None:
        if closes_at is not None:
            raise ValueError("give either closes_in or closes_at")
        closes_at = datetime.now(UTC) + timedelta(seconds=in_seconds(closes_in, "closes_in"))
    if isinstance(closes_at, str):
        closes_at = datetime.fromisoformat(closes_at)
    if closes_at is not None and closes_at.tzinfo is None:
        raise ValueError("closes_at needs a time zone")
    return closes_at.astimezone(UTC).isoformat() if closes_at else None
