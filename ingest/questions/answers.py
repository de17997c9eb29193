"""Takes answers to questions.

An answer is what a person sends. Stored, with its number and points, it is a response
(rules.questions.responses).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters import clock
from adapters.book import BookStore
from adapters.engagement.event_store import ZoneStore
from adapters.platform.keyed_hash import Fingerprints
from adapters.questions.answer_writer import AnswerWriter
from adapters.questions.response_store import AlreadyAnswered, ResponseStore
from ingest.questions.questions import Questions, refusal_error
from ingest.web.caller import ApiError, Caller
from ingest.web.rate_limit import RateLimit
from rules.book.book import Books
from rules.engagement.events import InputRefused
from rules.key_ring import PersonHashes
from rules.questions.answer_events import Submission, event_of_answer
from rules.questions.answer_points import points_for
from rules.questions.questions import Question, check_answer, check_open, shown_status
from rules.questions.responses import Response, new_response, public_id


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """How many answers a minute are taken."""

    own: RateLimit  # of each person who answers for themselves
    relayed: RateLimit  # of each agent who relays answers, for all people together


@dataclass(frozen=True, slots=True)
class Answers:
    """Takes answers.

    An answer makes at most two requests to DynamoDB while nobody else answers the question. The answer of a
    signed-in person makes one more if it names no zone. Relayed answers make one more for every 20. Each
    answer makes one more while several keys are in use.
    """

    questions: Questions
    writer: AnswerWriter
    responses: ResponseStore
    fingerprints: Fingerprints
    limits: AnswerLimits
    books: BookStore
    zones: ZoneStore

    def answer(self, identifier: str, body: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """Store an answer, and return its receipt.

        Raises 403, 404, 422, 429, and 409 (already_answered, question_closed, question_expired).
        """
        now = clock.now()
        person, user_id = self._person(body, caller)
        if user_id is None:
            self.limits.relayed.check(caller.user_id, 1, now)
        else:
            self.limits.own.check(user_id, 1, now)
        question = self.questions.find_visible(identifier, caller)
        if user_id is None and not caller.is_admin and question.agent_id != caller.user_id:
            raise ApiError(403, "forbidden", "only the agent who asked relays answers to this question")
        try:
            check_open(question, now)
            check_answer(question, body)
            books = self.books.books()
            response = new_response(question, body, person, books, now)
            submission = self._submission(response, user_id, books)
            question_after, stored = self.writer.store(question, submission, now)
        except AlreadyAnswered as already:
            raise _already_answered(already.response) from None
        except InputRefused as refused:
            # A closed question refuses a second answer, too. Its sender is told of the first one.
            if refused.field == "question" and (earlier := self.responses.get(identifier, *person.all)):
                raise _already_answered(earlier) from None
            raise refusal_error(refused) from None
        reasons = points_for(books.at(now).book.answers, stored.confidence, stored.response_time_ms)
        return _answer_receipt(question_after, stored, reasons, now)

    def _submission(self, response: Response, user_id: str | None, books: Books) -> Submission:
        """Return an answer with its event. The event alone names the user who answered."""
        if user_id is None:
            return Submission(response, None)
        zone = None if response.timezone else self.zones.chosen([user_id])[user_id]
        key = self.fingerprints.answer_key(user_id, response.question_id)
        return Submission(response, event_of_answer(response, user_id, key, zone, books))

    def _person(self, body: Mapping[str, Any], caller: Caller) -> tuple[PersonHashes, str | None]:
        """Return the person's hashes, and their user_id; None if an agent relays the answer."""
        if "fingerprint" not in body:
            return self.fingerprints.of_user(caller.user_id), caller.user_id
        caller.check_agent()
        return self.fingerprints.of_device(body["fingerprint"]), None


def _already_answered(response: Response) -> ApiError:
    details = {"response_id": public_id(*response.key), "created_at": response.created_at}
    return ApiError(409, "already_answered", "this person has answered this question", details)


def _answer_receipt(
    question: Question, response: Response, reasons: Mapping[str, int], now: datetime
) -> dict[str, Any]:
    return {
        "question_id": question.question_id,
        "response_id": public_id(*response.key),
        "number": response.number,
        "status": shown_status(question, now).value,
        "current_responses": question.current_responses,
        "points": response.points,
        "points_for": dict(reasons),
        "created_at": response.created_at,
        "activity_date": response.activity_date.isoformat(),
        "timezone": response.zone,
    }
