"""Questions at the API: shows them, finds and lists them, and creates them, once for each idempotency key.

questions_api.py has the routes. answers.py and polls_api.py find questions and show answers by it, too.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.platform.limits import OwnerQuota, QuotaSlot
from adapters.questions.question_store import ListPosition, QuestionPage, QuestionStore
from adapters.questions.response_store import ResponseStore
from ingest.questions.question_schemas import TAG, TAGS_MAX, UUID
from ingest.web.caller import ApiError, Caller
from ingest.web.paging import cursor_refusal, integer
from rules.days import STAMP_KEY, unstamp
from rules.engagement.events import InputRefused, body_hash
from rules.json_values import parse_json
from rules.questions import responses
from rules.questions.questions import (
    ANSWERABLE,
    UNKNOWN,
    Question,
    QuestionStatus,
    is_in_audience,
    is_listed,
    new_question,
    open_questions_counter,
    question_ids,
    shown_status,
    to_item,
)
from rules.questions.responses import Response, public_id

LIMIT_DEFAULT, LIMIT_MAX = 20, 100
# The attributes that the API does not show
HIDDEN = frozenset({"body_hash", "expires_at", "idempotency_key"})


def question_view(question: Question, now: datetime) -> dict[str, Any]:
    """Return a question as the API shows it, without `closed_at` while it is not closed."""
    times = {"created_at": question.created_at, "closes_at": question.closes_at}
    item = to_item(question) | times | {"status": shown_status(question, now).value}
    return {name: value for name, value in item.items() if name not in HIDDEN and value is not None}


def answer_view(response: Response, *more: str) -> dict[str, Any]:
    """Return an answer as the API shows it: nothing that leads to the person. Absent values are left out.

    more: further attributes to show.
    """
    names = ("selected_option", "answer", "confidence", "response_time_ms", *more)
    item = responses.to_item(response)
    view = {"response_id": public_id(*response.key), "created_at": response.created_at}
    view |= {name: item[name] for name in names}
    return {name: value for name, value in view.items() if value is not None}


def refusal_error(refused: InputRefused) -> ApiError:
    """Return the API's answer to a refusal by a rule: 422 for a field, 409 for a state."""
    if refused.code != "invalid_field":
        return ApiError(409, refused.code, str(refused))
    details = [{"field": refused.field, "reason": refused.reason}]
    return ApiError(422, "invalid_field", str(refused), details)


@dataclass(frozen=True, slots=True)
class Questions:
    """Finds and lists questions."""

    store: QuestionStore

    def find(self, identifier: str) -> Question:
        """Return a question; raises 404 if there is none."""
        question = self.store.get(identifier) if re.fullmatch(UUID, identifier, re.ASCII) else None
        if question is None:
            raise _question_not_found()
        return question

    def find_visible(self, identifier: str, caller: Caller) -> Question:
        """Return a question; raises 404 if there is none, or it is not for the caller."""
        question = self.find(identifier)
        if not _is_visible(question, caller):
            raise _question_not_found()
        return question

    def page_by_status(self, query: Mapping[str, str], caller: Caller, now: datetime) -> dict[str, Any]:
        """Return a page of the questions that the caller may see, of a status (default: OPEN) and of tags."""
        status, tags = _status_in(query) or QuestionStatus.OPEN, _tags_in(query)

        def matches(question: Question) -> bool:
            return (
                (tags is None or is_in_audience(question.audience, tags))
                and _is_visible(question, caller)
                and is_listed(shown_status(question, now), status)
            )

        position, limit = _position_in(query), integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX)
        return _page_view(self.store.of_status(status, position, limit, matches), now)

    def page_of_agent(
        self, agent_id: str, query: Mapping[str, str], caller: Caller, now: datetime
    ) -> dict[str, Any]:
        """Return a page of an agent's own questions, all or by status; raises 403."""
        caller.check(agent_id)
        caller.check_agent()
        status = _status_in(query)

        def matches(question: Question) -> bool:
            return status is None or is_listed(shown_status(question, now), status)

        position, limit = _position_in(query), integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX)
        return _page_view(self.store.of_agent(agent_id, position, limit, matches), now)


def _question_not_found() -> ApiError:
    return ApiError(404, "not_found", "there is no such question")


def _is_visible(question: Question, caller: Caller) -> bool:
    """Whether a caller may know of a question: its audience is a claim of the token."""
    is_own = caller.is_agent and question.agent_id == caller.user_id
    return is_own or caller.is_admin or is_in_audience(question.audience, caller.tags)


def _status_in(query: Mapping[str, str]) -> QuestionStatus | None:
    text = query.get("status")
    if not text:
        return None
    if text not in QuestionStatus.__members__:
        raise ApiError(400, "invalid_parameter", f"status must be one of {', '.join(QuestionStatus)}")
    return QuestionStatus(text)


def _tags_in(query: Mapping[str, str]) -> list[str] | None:
    """Return the tags that are asked for; None: every audience. Raises 400."""
    text = query.get("audience")
    if not text:
        return None
    tags = text.split(",")
    if len(tags) > TAGS_MAX or not all(re.fullmatch(TAG[1:-1], tag, re.ASCII) for tag in tags):
        reason = f"must be up to {TAGS_MAX} tags of small letters, digits, - and _, divided by commas"
        raise ApiError(400, "invalid_parameter", f"audience {reason}")
    return tags


def _page_view(page: QuestionPage, now: datetime) -> dict[str, Any]:
    """Return a page as the API shows it. Its cursor, null on the last one, says where the next one begins."""
    cursor = None
    if page.next is not None:
        text = json.dumps({"after": page.next}, separators=(",", ":"))
        cursor = base64.urlsafe_b64encode(text.encode()).decode()
    return {"questions": [question_view(question, now) for question in page.questions], "cursor": cursor}


def _position_in(query: Mapping[str, str]) -> ListPosition:
    """Return where the cursor says that a list goes on; raises 400. Without a cursor it is the beginning."""
    text = query.get("cursor")
    if not text:
        return {}
    position: dict[str, tuple[str, str]] = {}
    try:
        after = parse_json(base64.urlsafe_b64decode(text.encode()))["after"]
        for partition, (created_at, identifier) in after.items():
            if not (STAMP_KEY.fullmatch(created_at) and re.fullmatch(UUID, identifier)):
                raise ValueError
            position[partition] = (created_at, identifier)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise cursor_refusal() from None
    return position


@dataclass(frozen=True, slots=True)
class QuestionCreator:
    """Creates questions."""

    store: QuestionStore
    responses: ResponseStore
    quota: OwnerQuota
    open_max: int  # how many an agent may have open

    def create(self, body: Mapping[str, Any], agent_id: str, now: datetime) -> tuple[int, dict[str, Any]]:
        """Create an agent's question; returns (status, view).

        The status is 201. If this body was sent before, it is 200, and the view has `duplicate`. Raises 409
        if the key was used with another body or too many questions are open, and 422 that names the field.
        """
        digest = body_hash(body)
        identifier = self._question_id(agent_id, body["idempotency_key"], now)
        try:
            question = new_question(body, identifier, agent_id, digest, now)
        except InputRefused as refused:
            # The same body may come again after its closes_at. It still gets the stored question.
            existing = self.store.get(identifier)
            if existing is None or existing.body_hash not in (digest, UNKNOWN):
                raise refusal_error(refused) from None
            return 200, question_view(existing, now) | {"duplicate": True}
        self._check_quota(question, now)
        stored = self.store.create(question, now)
        if stored.body_hash not in (digest, UNKNOWN):
            raise ApiError(409, "conflict", "idempotency_key was used for another body")
        view = question_view(stored, now)
        return (201, view) if stored is question else (200, view | {"duplicate": True})

    def _question_id(self, agent_id: str, key: str, now: datetime) -> str:
        """Return the id of the question under a key: the first one that is usable."""

        def is_usable(identifier: str) -> bool:
            """Whether no answers of a deleted question have this id: a new question would get them."""
            if not self.responses.has_any(identifier):
                return True
            stored = self.store.get(identifier)
            return stored is not None and now.timestamp() < stored.expires_at

        return next(filter(is_usable, question_ids(agent_id, key)))

    def _check_quota(self, question: Question, now: datetime) -> None:
        def are_open(identifiers: Iterable[str]) -> dict[str, bool]:
            stored = filter(None, map(self.store.get, identifiers))
            return {each.question_id: shown_status(each, now) in ANSWERABLE for each in stored}

        owner = open_questions_counter(question.agent_id)
        slot = QuotaSlot(owner, question.question_id, unstamp(question.closes_at))
        has_slot = self.quota.take(slot, self.open_max, now, are_open)
        # A question that is stored already was counted before, and its request is repeated.
        if not has_slot and self.store.get(question.question_id) is None:
            raise ApiError(409, "open_questions_max", f"{self.open_max} questions are open already")
