"""Answering a question, and waiting for its answers."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters import clock
from adapters.questions.fingerprints import Fingerprints
from adapters.questions.question_store import QuestionStore
from adapters.questions.response_store import AlreadyAnswered, ResponseStore
from ingest.questions.question_views import Questions, refusal_error
from ingest.web.caller import ApiError, Caller
from ingest.web.paging import integer
from ingest.web.rate_limit import RateLimit
from rules.engagement.events import InputRefused
from rules.questions.answer_points import points_for
from rules.questions.former_names import renamed, with_former
from rules.questions.polls import POLL_SECONDS_MIN, has_newer, is_waiting, next_pause, page_of
from rules.questions.questions import Question, check_answer, check_open, shown_status
from rules.questions.responses import Response, new_response, public_id

WAIT_SECONDS_MAX = 20
LIMIT_DEFAULT, LIMIT_MAX = 100, 100


def response_view(response: Response) -> dict[str, Any]:
    """Return an answer as its agent sees it: nothing that leads to the person."""
    view = {
        "response_id": public_id(*response.key),
        "number": response.number,
        "selected_option": response.selected_option,
        "text": response.text,
        "confidence": response.confidence,
        "response_time_ms": response.response_time_ms,
        "created_at": response.created_at,
    }
    return with_former({name: value for name, value in view.items() if value is not None})


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Answers a minute. own: by person. relayed: by the agent who relays them, whomever they are of."""

    own: RateLimit
    relayed: RateLimit


@dataclass(frozen=True, slots=True)
class Answers:
    """Takes answers: at most two requests to DynamoDB where nobody else answers just now.

    Relayed ones take one more for every 20.
    """

    questions: Questions
    store: QuestionStore
    responses: ResponseStore
    fingerprints: Fingerprints
    limits: AnswerLimits

    def answer(self, identifier: str, body: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Store an answer.

        Raises 403, 404, 422, 429, and 409: already_answered, question_closed, question_expired.
        """
        body = renamed(body)
        now = clock.now()
        person, user_id = self._person(body, caller)
        if user_id is None:
            self.limits.relayed.check(caller.user_id, 1, now)
        else:
            self.limits.own.check(user_id, 1, now)
        question = self.questions.find(identifier)
        if user_id is None and not caller.is_admin and question.agent_id != caller.user_id:
            raise ApiError(403, "forbidden", "only the agent who asked relays answers to this question")
        try:
            check_open(question, now)
            check_answer(question, body)
            response = new_response(question, body, person, user_id, now)
            after, stored = self.store.answer(question, response, now)
        except AlreadyAnswered as already:
            raise _already(already.response) from None
        except InputRefused as refused:
            if refused.field == "question" and (mine := self.responses.get(identifier, person)):
                raise _already(mine) from None
            raise refusal_error(refused) from None
        return _receipt(after, stored, points_for(stored.confidence, stored.response_time_ms), now)

    def _person(self, body: Mapping[str, Any], caller: Caller) -> tuple[str, str | None]:
        """The fingerprint_hash, and the user_id of one who answers for themselves."""
        if "fingerprint" not in body:
            return self.fingerprints.of_user(caller.user_id), caller.user_id
        caller.check_agent()
        return self.fingerprints.of_device(body["fingerprint"]), None


def _already(response: Response) -> ApiError:
    details = {"response_id": public_id(*response.key), "created_at": response.created_at}
    return ApiError(409, "already_answered", "this person has answered this question", details)


def _receipt(
    question: Question, response: Response, earned: Mapping[str, int], now: datetime
) -> dict[str, Any]:
    receipt = {
        "question_id": question.question_id,
        "response_id": public_id(*response.key),
        "number": response.number,
        "status": shown_status(question, now).value,
        "current_responses": question.current_responses,
        "points": response.points,
        "points_for": dict(earned),
        "created_at": response.created_at,
        "activity_date": response.activity_date.isoformat(),
        "timezone": response.zone,
    }
    return with_former(receipt)


@dataclass(frozen=True, slots=True)
class Polls:
    """Waits for answers. pause, elapsed: time.sleep and time.monotonic."""

    questions: Questions
    responses: ResponseStore
    pause: Callable[[float], None] = time.sleep
    elapsed: Callable[[], float] = time.monotonic

    def newer(self, identifier: str, query: Mapping[str, str], caller: Caller) -> dict[str, Any]:
        """Return the answers after a number, waiting for one if asked to; for the agent who asked.

        While it waits it reads the question alone; answers are read when the counter says there are any.
        """
        caller.check_agent()
        wait = integer(query, "wait", 0, WAIT_SECONDS_MAX, least=0)
        after = integer(query, "after", 0, 1000, least=0)
        limit = integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX)
        until, pause = self.elapsed() + wait, POLL_SECONDS_MIN
        question = self.questions.find(identifier)
        caller.check(question.agent_id)
        while is_waiting(question, after, clock.now()) and self.elapsed() + pause <= until:
            self.pause(pause)
            pause = next_pause(pause)
            question = self.questions.find(identifier)
        return self._view(question, after, limit)

    def _view(self, question: Question, after: int, limit: int) -> dict[str, Any]:
        found = self.responses.of_question(question.question_id) if has_newer(question, after) else ()
        now = clock.now()
        page = page_of(question, found, after, limit, now)
        shown = {
            "question_id": question.question_id,
            "status": shown_status(question, now).value,
            "current_responses": question.current_responses,
            "required_responses": question.required_responses,
            "responses": [response_view(each) for each in page.responses],
            "cursor": str(page.cursor),
            "done": page.is_last,
        }
        return with_former(shown)
