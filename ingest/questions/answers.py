"""Answering a question."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters import clock
from adapters.book import BookStore
from adapters.engagement.account_store import AccountStore
from adapters.platform.keyed_hash import Fingerprints
from adapters.questions.answer_line import AnswerLine
from adapters.questions.response_store import AlreadyAnswered, ResponseStore
from ingest.questions.question_views import Questions, refusal_error
from ingest.web.caller import ApiError, Caller
from ingest.web.rate_limit import RateLimit
from rules.book.book import Books
from rules.engagement.events import InputRefused
from rules.key_ring import PersonHashes
from rules.questions.questions import Question, check_answer, check_open, shown_status
from rules.questions.responses import (
    Response,
    Submission,
    event_of_answer,
    new_response,
    points_for,
    public_id,
)


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Answers a minute. own: by person. relayed: by the agent who relays them, whomever they are of."""

    own: RateLimit
    relayed: RateLimit


@dataclass(frozen=True, slots=True)
class Answers:
    """Takes answers: at most two requests to DynamoDB where nobody else answers just now.

    Those of signed-in people take one more if they name no zone, relayed ones one more for every 20, and each
    one more while there are several keys. accounts: for the zones that users have set.
    """

    questions: Questions
    line: AnswerLine
    responses: ResponseStore
    fingerprints: Fingerprints
    limits: AnswerLimits
    books: BookStore
    accounts: AccountStore

    def answer(self, identifier: str, body: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Store an answer.

        Raises 403, 404, 422, 429, and 409: already_answered, question_closed, question_expired.
        """
        now = clock.now()
        person, user_id = self._person(body, caller)
        if user_id is None:
            self.limits.relayed.check(caller.user_id, 1, now)
        else:
            self.limits.own.check(user_id, 1, now)
        question = self.questions.visible(identifier, caller)
        if user_id is None and not caller.is_admin and question.agent_id != caller.user_id:
            raise ApiError(403, "forbidden", "only the agent who asked relays answers to this question")
        try:
            check_open(question, now)
            check_answer(question, body)
            books = self.books.books()
            response = new_response(question, body, person, books, now)
            after, stored = self.line.answer(question, self._submission(response, user_id, books), now)
        except AlreadyAnswered as already:
            raise _already(already.response) from None
        except InputRefused as refused:
            if refused.field == "question" and (mine := self.responses.get(identifier, *person.all)):
                raise _already(mine) from None
            raise refusal_error(refused) from None
        earned = points_for(books.at(now).book.answers, stored.confidence, stored.response_time_ms)
        return _receipt(after, stored, earned, now)

    def _submission(self, response: Response, user_id: str | None, books: Books) -> Submission:
        """Return the answer with the event that it is. Nothing else says whose the answer is."""
        if user_id is None:
            return Submission(response, None)
        profile = None if response.timezone else self.accounts.profiles([user_id]).get(user_id)
        key = self.fingerprints.of_award(user_id, response.question_id)
        zone = profile.timezone if profile else None
        return Submission(response, event_of_answer(response, user_id, key, zone, books))

    def _person(self, body: Mapping[str, Any], caller: Caller) -> tuple[PersonHashes, str | None]:
        """The person's hashes, and the user_id of one who answers for themselves."""
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
    return {
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
