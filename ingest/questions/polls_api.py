"""GET /v1/questions/{question_id}/responses: an agent reads the answers to a question, and may wait for one.

It is a Lambda function of its own: however many agents wait, they take no room from people who answer.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from adapters import clock, settings
from adapters.platform.aws import client
from adapters.platform.fence import fence_writer
from adapters.platform.limits import OwnerSemaphore
from adapters.questions.question_store import QuestionLists, QuestionStore
from adapters.questions.response_store import ResponseStore
from ingest.questions.question_schemas import RESPONSES_VIEW, UUID
from ingest.questions.questions import Questions
from ingest.web.api import Allowance, Api
from ingest.web.caller import ApiError, Caller
from ingest.web.paging import integer
from ingest.web.routes import in_query, limit_to, text_matching
from rules.questions.polls import POLL_SECONDS_MIN, has_newer, is_waiting, next_pause, page_of
from rules.questions.questions import Question, shown_status
from rules.questions.responses import Response, public_id

WAIT_SECONDS_MAX = 20
LIMIT_DEFAULT, LIMIT_MAX = 100, 100
RETRY_SECONDS = 5  # Retry-After of 429
# Polls of one agent that wait at once. The slot of a poll that died is free again after a lease, which is
# longer than any poll waits.
POLLS_MAX, LEASE_SECONDS = 5, 30
POLL = [
    in_query("wait", {"type": "integer", "minimum": 0, "maximum": 20, "description": "seconds"}),
    in_query("after", {"type": "integer", "minimum": 0, "maximum": 1000, "description": "a cursor"}),
    limit_to(100),
]


@dataclass(frozen=True, slots=True)
class PollsApiSettings(Allowance):
    """Settings of this function. It counts waiting polls in limits_table."""

    questions_table: str
    responses_table: str


def response_view(response: Response) -> dict[str, Any]:
    """Return an answer as its agent sees it: nothing that leads to the person."""
    view = {
        "response_id": public_id(*response.key),
        "number": response.number,
        "selected_option": response.selected_option,
        "answer": response.answer,
        "confidence": response.confidence,
        "response_time_ms": response.response_time_ms,
        "created_at": response.created_at,
    }
    return {name: value for name, value in view.items() if value is not None}


def poll_key(agent_id: str) -> str:
    """Return the name of the semaphore of an agent's waiting polls."""
    return f"poll#{agent_id}"


@dataclass(frozen=True, slots=True)
class Polls:
    """Waits for answers."""

    questions: Questions
    responses: ResponseStore
    semaphore: OwnerSemaphore
    pause: Callable[[float], None] = time.sleep  # waits so many seconds
    elapsed: Callable[[], float] = time.monotonic  # seconds since some instant

    def newer(self, identifier: str, query: Mapping[str, str], caller: Caller) -> dict[str, Any]:
        """Return the answers after a number, to the agent who asked. If there is none yet, wait for it.

        A waiting poll reads the question alone. It reads answers when the question's counter shows new ones.
        Raises 400, 403, 404, and 429 if the agent has as many polls waiting as are allowed.
        """
        caller.check_agent()
        wait = integer(query, "wait", 0, WAIT_SECONDS_MAX, least=0)
        after = integer(query, "after", 0, 1000, least=0)
        limit = integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX)
        deadline = self.elapsed() + wait
        question = self.questions.find(identifier)
        caller.check(question.agent_id)
        if wait and is_waiting(question, after, clock.now()):
            with self.semaphore.held(poll_key(caller.user_id), clock.now()) as has_slot:
                if not has_slot:
                    raise _too_many_polls()
                question = self._wait(question, after, deadline)
        return self._view(question, after, limit)

    def _wait(self, question: Question, after: int, deadline: float) -> Question:
        """Return the question as soon as there is a newer answer, none can come, or the time is over."""
        pause = POLL_SECONDS_MIN
        while is_waiting(question, after, clock.now()) and self.elapsed() + pause <= deadline:
            self.pause(pause)
            pause = next_pause(pause)
            question = self.questions.find(question.question_id)
        return question

    def _view(self, question: Question, after: int, limit: int) -> dict[str, Any]:
        responses = self.responses.of_question(question.question_id) if has_newer(question, after) else ()
        now = clock.now()
        page = page_of(question, responses, after, limit, now)
        return {
            "question_id": question.question_id,
            "status": shown_status(question, now).value,
            "current_responses": question.current_responses,
            "required_responses": question.required_responses,
            "responses": [response_view(response) for response in page.responses],
            "cursor": str(page.cursor),
            "done": page.is_last,
        }


def _too_many_polls() -> ApiError:
    headers = {"Retry-After": str(RETRY_SECONDS)}
    return ApiError(429, "too_many_polls", f"{POLLS_MAX} polls of this agent wait already", headers=headers)


app = Api("PollsApi", {"question_id": text_matching(UUID)})
handler = app.handler


@cache
def _parts() -> Polls:
    config, dynamodb = settings.read_settings(PollsApiSettings), fence_writer(client("dynamodb"))
    responses = ResponseStore(dynamodb, config.responses_table)
    store = QuestionStore(dynamodb, config.questions_table)
    questions = Questions(store, QuestionLists(dynamodb, config.questions_table))
    return Polls(
        questions, responses, OwnerSemaphore(dynamodb, config.limits_table, POLLS_MAX, LEASE_SECONDS)
    )


@app.route("GET /v1/questions/{question_id}/responses", POLL, answer=RESPONSES_VIEW)
def get_responses(question_id: str) -> dict[str, Any]:
    """Answers, in order (the agent who asked)."""
    return _parts().newer(question_id, app.query, app.caller())
