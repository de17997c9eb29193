"""GET /v1/questions/{question_id}/responses: an agent reads the answers to a question, and may wait for one.

It is a Lambda function of its own: however many agents wait, they take no room from people who answer.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.platform.limits import OwnerSemaphore
from adapters.questions.question_store import QuestionStore
from adapters.questions.response_store import ResponseStore
from ingest.questions.question_schemas import RESPONSES_VIEW, UUID
from ingest.questions.questions import Questions, answer_view
from ingest.web.api import Allowance, Api
from ingest.web.caller import ApiError, Caller
from ingest.web.json_schema import text, whole
from ingest.web.paging import integer
from ingest.web.routes import in_query, limit_to
from rules.parts import Part
from rules.questions.questions import Question, is_done, shown_status
from rules.questions.responses import Response

WAIT_SECONDS_MAX = 20
# The pause of a poll between two reads of the question. Each pause is longer than the one before.
POLL_SECONDS_MIN, POLL_SECONDS_MAX = 0.25, 1.0
LIMIT_DEFAULT, LIMIT_MAX = 100, 100
RETRY_SECONDS = 5  # Retry-After of 429
# Polls of one agent that wait at once. The slot of a poll that died is free again after a lease, which is
# longer than any poll waits.
POLLS_MAX, LEASE_SECONDS = 5, 30
NUMBER_MAX = 1000  # of an answer: a question has no more
POLL = [
    in_query("wait", whole("seconds", 0, WAIT_SECONDS_MAX)),
    in_query("after", whole("a cursor", 0, NUMBER_MAX)),
    limit_to(LIMIT_MAX),
]


@dataclass(frozen=True, slots=True)
class PollsApiSettings(Allowance):
    """Settings of this function. It counts waiting polls in limits_table."""

    questions_table: str
    responses_table: str


def poll_key(agent_id: str) -> str:
    """Return the name of the semaphore of an agent's waiting polls."""
    return f"poll#{agent_id}"


def is_waiting(question: Question, after: int, now: datetime) -> bool:
    """Whether a poll has to wait: the question has no answer after a number, and may still get one."""
    return question.current_responses <= after and not is_done(question, now)


def poll_view(
    question: Question, responses: Iterable[Response], after: int, limit: int, now: datetime
) -> dict[str, Any]:
    """Return at most `limit` of a question's answers with higher numbers than `after`."""
    newer = (response for response in responses if response.number > after)
    page = sorted(newer, key=lambda response: response.number)[:limit]
    cursor = page[-1].number if page else after
    return {
        "question_id": question.question_id,
        "status": shown_status(question, now).value,
        "current_responses": question.current_responses,
        "required_responses": question.required_responses,
        "responses": [answer_view(response, "number") for response in page],
        "cursor": str(cursor),
        "done": question.current_responses <= cursor and is_done(question, now),
    }


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
        after = integer(query, "after", 0, NUMBER_MAX, least=0)
        limit = integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX)
        deadline = self.elapsed() + wait
        question = self.questions.find(identifier)
        caller.check(question.agent_id)
        if wait and is_waiting(question, after, clock.now()):
            with self.semaphore.held(poll_key(caller.user_id), clock.now()) as has_slot:
                if not has_slot:
                    message = f"{POLLS_MAX} polls of this agent wait already"
                    raise ApiError(
                        429, "too_many_polls", message, headers={"Retry-After": str(RETRY_SECONDS)}
                    )
                question = self._wait(question, after, deadline)
        has_newer = question.current_responses > after
        responses = self.responses.of_question(question.question_id) if has_newer else ()
        return poll_view(question, responses, after, limit, clock.now())

    def _wait(self, question: Question, after: int, deadline: float) -> Question:
        """Return the question as soon as there is a newer answer, none can come, or the time is over."""
        pause = POLL_SECONDS_MIN
        while is_waiting(question, after, clock.now()) and self.elapsed() + pause <= deadline:
            self.pause(pause)
            pause = min(POLL_SECONDS_MAX, pause * 1.5)
            question = self.questions.find(question.question_id)
        return question


app = Api("PollsApi", {"question_id": text(pattern=UUID)}, part=Part.QUESTIONS)
handler = app.handler


@bootstrap(PollsApiSettings)
def _parts(config: PollsApiSettings, client: ClientOf) -> Polls:
    dynamodb = client("dynamodb")
    responses = ResponseStore(dynamodb, config.responses_table)
    questions = Questions(QuestionStore(dynamodb, config.questions_table))
    return Polls(
        questions, responses, OwnerSemaphore(dynamodb, config.limits_table, POLLS_MAX, LEASE_SECONDS)
    )


@app.route("GET /v1/questions/{question_id}/responses", POLL, answer=RESPONSES_VIEW)
def get_responses(question_id: str) -> dict[str, Any]:
    """Answers, in order (the agent who asked)."""
    return _parts().newer(question_id, app.query, app.caller())
