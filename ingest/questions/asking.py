"""Takes new questions: each key once, and so many open ones an agent."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.platform.limits import HeldPlaces, WantedPlace
from adapters.questions.response_store import ResponseStore
from ingest.questions.question_views import Questions, question_view, refusal_error
from ingest.web.caller import ApiError, Caller
from rules.days import unstamp
from rules.engagement.events import InputRefused, body_hash
from rules.questions.questions import (
    UNKNOWN,
    Question,
    QuestionStatus,
    new_question,
    question_ids,
    shown_status,
)


def open_questions(agent_id: str) -> str:
    """Return the name under which the places of an agent's open questions are kept."""
    return f"open-questions#{agent_id}"


@dataclass(frozen=True, slots=True)
class Asking:
    """Creates questions. open_max: how many an agent may have open."""

    questions: Questions
    responses: ResponseStore
    places: HeldPlaces
    open_max: int

    def create(self, body: Mapping[str, Any], caller: Caller, now: datetime) -> tuple[int, dict[str, Any]]:
        """Ask a question; returns 201 and the question, or 200 and `duplicate` if this body was sent before.

        Raises 409 if the key was used with another body or too many are open, 422 that names the field.
        """
        caller.check_agent()
        digest, identifier = body_hash(body), self._question_id(caller.user_id, body["idempotency_key"], now)
        try:
            question = new_question(body, identifier, caller.user_id, digest, now)
            self._check_places(question, now)
            held = self.questions.store.create(question, now)
        except InputRefused as refused:
            # The same body may come again after its closes_at. It still gets the stored question.
            known = self.questions.store.get(identifier)
            if known is None or known.body_hash not in (digest, UNKNOWN):
                raise refusal_error(refused) from None
            return 200, question_view(known, now) | {"duplicate": True}
        if held.body_hash not in (digest, UNKNOWN):
            raise ApiError(409, "conflict", "idempotency_key was used for another body")
        if held is question:
            return 201, question_view(held, now)
        return 200, question_view(held, now) | {"duplicate": True}

    def _question_id(self, agent_id: str, key: str, now: datetime) -> str:
        """Return the id of the question under a key: not that of one that is gone and has answers."""

        def is_gone(identifier: str) -> bool:
            if not self.responses.has_any(identifier):
                return False
            stored = self.questions.store.get(identifier)
            return stored is None or now.timestamp() >= stored.expires_at

        return next(each for each in question_ids(agent_id, key) if not is_gone(each))

    def _check_places(self, question: Question, now: datetime) -> None:
        """Raise 409 if the agent has as many open questions as are allowed, and this is a new one."""

        def are_open(identifiers: Iterable[str]) -> dict[str, bool]:
            known = map(self.questions.store.get, identifiers)
            answerable = (QuestionStatus.OPEN, QuestionStatus.PARTIAL)
            return {each.question_id: shown_status(each, now) in answerable for each in known if each}

        wanted = WantedPlace(
            open_questions(question.agent_id), question.question_id, unstamp(question.closes_at)
        )
        taken = self.places.take(wanted, self.open_max, now, are_open)
        if not taken and self.questions.store.get(question.question_id) is None:
            raise ApiError(409, "open_questions_max", f"{self.open_max} questions are open already")
