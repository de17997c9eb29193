"""Questions that people answer: what they look like at an instant, and which answers they take.

Stored is OPEN until the last answer makes it CLOSED; what is shown follows from the counter and
the clock (`shown_status`), so that a question is expired at the very moment, before anything has run.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from rules.days import parse_moment, stamp, unstamp
from rules.engagement.events import FUTURE_MAX, InputRefused

NAMESPACE = uuid.UUID("0b7c6f0e-6d2b-5a5e-9a43-3c1f5d2f7a10")
OPEN_DEFAULT = timedelta(hours=24)
OPEN_MAX = timedelta(days=30)
# An agent keeps reading the results that long.
KEPT = timedelta(days=90)
CATEGORY_DEFAULT = "general"
# No request lives longer: so long may an answer accepted just before the closing take to be stored.
STORED_WITHIN = timedelta(seconds=30)


class QuestionKind(StrEnum):
    """What an answer is: free text, or one of the options."""

    TEXT = "text"
    CHOICE = "choice"


class QuestionStatus(StrEnum):
    """What a question shows. Stored are only OPEN and CLOSED."""

    OPEN = "OPEN"
    PARTIAL = "PARTIAL"
    CLOSED = "CLOSED"
    EXPIRED = "EXPIRED"


ANSWERABLE = frozenset({QuestionStatus.OPEN, QuestionStatus.PARTIAL})


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it is stored. Times are stamps (rules.days); expires_at is epoch seconds."""

    question_id: str
    agent_id: str
    kind: QuestionKind
    prompt: str
    options: tuple[str, ...]
    audience: tuple[str, ...]
    category: str
    required_responses: int
    answers_count: int
    status: QuestionStatus
    created_at: str
    closes_at: str
    expires_at: int
    body_hash: str
    closed_at: str | None = None


def question_id(agent_id: str, idempotency_key: str) -> str:
    """Return the id that every attempt to create this question arrives at."""
    return str(uuid.uuid5(NAMESPACE, f"{agent_id}\x00{idempotency_key}"))


def shown_status(question: Question, now: datetime) -> QuestionStatus:
    """Return the status that shows at an instant."""
    if question.status is QuestionStatus.CLOSED:
        return QuestionStatus.CLOSED
    if now >= unstamp(question.closes_at) or now.timestamp() >= question.expires_at:
        return QuestionStatus.EXPIRED
    return QuestionStatus.PARTIAL if question.answers_count else QuestionStatus.OPEN


def is_done(question: Question, now: datetime) -> bool:
    """Whether no answer will be counted any more: later than EXPIRED shows, by an answer under way."""
    if question.status is QuestionStatus.CLOSED:
        return True
    return now >= unstamp(question.closes_at) + STORED_WITHIN or now.timestamp() >= question.expires_at


def is_listed(status: QuestionStatus, asked: QuestionStatus) -> bool:
    """Whether a shown status is among those asked for: OPEN asks for all that can be answered."""
    return status in ANSWERABLE if asked is QuestionStatus.OPEN else status is asked


def is_for(audience: Sequence[str], tags: Sequence[str]) -> bool:
    """Whether a question with this audience is for a person with these tags; none: for everybody."""
    return not audience or not set(audience).isdisjoint(tags)


def check_open(question: Question, now: datetime) -> None:
    """Raise InputRefused (question_closed, question_expired) unless the question takes answers."""
    status = shown_status(question, now)
    if status is QuestionStatus.CLOSED:
        raise InputRefused("question_closed", "question", "has all the answers it asked for")
    if status is QuestionStatus.EXPIRED:
        raise InputRefused("question_expired", "question", f"closed for answers at {question.closes_at}")


def check_answer(question: Question, body: Mapping[str, Any]) -> None:
    """Raise InputRefused (invalid_field) unless the answer is of the question's kind and in its range."""
    wanted, other = (
        ("option_index", "text") if question.kind is QuestionKind.CHOICE else ("text", "option_index")
    )
    if other in body:
        raise InputRefused("invalid_field", other, f"does not answer a {question.kind.value} question")
    if wanted not in body:
        raise InputRefused("invalid_field", wanted, "is missing")
    if question.kind is QuestionKind.CHOICE and not 0 <= body[wanted] < len(question.options):
        raise InputRefused("invalid_field", wanted, f"must be from 0 to {len(question.options) - 1}")
    if question.kind is QuestionKind.TEXT and not body[wanted].strip():
        raise InputRefused("invalid_field", wanted, "is blank")


def new_question(body: Mapping[str, Any], agent_id: str, digest: str, now: datetime) -> Question:
    """Return the question that an agent asks for; raises InputRefused (invalid_field), naming the field.

    body: as ingest's schema lets it in. digest: tells bodies under one idempotency key apart.
    """
    kind = QuestionKind(body["kind"])
    closes = _closes(body, now)
    if not body["prompt"].strip():
        raise InputRefused("invalid_field", "prompt", "is blank")
    return Question(
        question_id=question_id(agent_id, body["idempotency_key"]),
        agent_id=agent_id,
        kind=kind,
        prompt=body["prompt"],
        options=_options(kind, body.get("options")),
        audience=tuple(sorted(set(body.get("audience", ())))),
        category=body.get("category", CATEGORY_DEFAULT),
        required_responses=body["required_responses"],
        answers_count=0,
        status=QuestionStatus.OPEN,
        created_at=stamp(now),
        closes_at=stamp(closes),
        expires_at=int((closes + KEPT).timestamp()),
        body_hash=digest,
    )


def _options(kind: QuestionKind, options: Sequence[str] | None) -> tuple[str, ...]:
    """The options, which a choice must have and a text must not."""
    if kind is QuestionKind.TEXT:
        if options is not None:
            raise InputRefused("invalid_field", "options", "are for choice questions")
        return ()
    if options is None:
        raise InputRefused("invalid_field", "options", "is missing")
    seen = [" ".join(option.split()).casefold() for option in options]
    if not all(seen):
        raise InputRefused("invalid_field", f"options.{seen.index('')}", "is blank")
    if len(set(seen)) != len(seen):
        raise InputRefused("invalid_field", "options", "must differ in more than case and spaces")
    return tuple(options)


def _closes(body: Mapping[str, Any], now: datetime) -> datetime:
    if "closes_at" not in body:
        return now + OPEN_DEFAULT
    try:
        closes = parse_moment(body["closes_at"]).utc
    except ValueError as error:
        raise InputRefused("invalid_field", "closes_at", str(error)) from None
    if not now < closes <= now + OPEN_MAX + FUTURE_MAX:  # A clock may be ahead.
        raise InputRefused("invalid_field", "closes_at", f"must lie at most {OPEN_MAX.days} days ahead")
    return closes


def to_item(question: Question) -> dict[str, Any]:
    """Return the question as table attributes."""
    return {
        "question_id": question.question_id,
        "agent_id": question.agent_id,
        "kind": question.kind.value,
        "prompt": question.prompt,
        "options": list(question.options),
        "audience": list(question.audience),
        "category": question.category,
        "required_responses": question.required_responses,
        "answers_count": question.answers_count,
        "status": question.status.value,
        "created_at": question.created_at,
        "closes_at": question.closes_at,
        "closed_at": question.closed_at,
        "expires_at": question.expires_at,
        "body_hash": question.body_hash,
    }


def from_item(item: Mapping[str, Any]) -> Question:
    """Read a stored question."""
    texts = ("question_id", "agent_id", "prompt", "category", "created_at", "closes_at", "body_hash")
    numbers = ("required_responses", "answers_count", "expires_at")
    return Question(
        **{name: item[name] for name in (*texts, *numbers)},
        kind=QuestionKind(item["kind"]),
        status=QuestionStatus(item["status"]),
        options=tuple(item["options"]),
        audience=tuple(item["audience"]),
        closed_at=item.get("closed_at"),
    )
