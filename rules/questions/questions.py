"""Questions that people answer: what an agent may ask, which status they show at an instant, and which
answers they take.
"""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import count
from typing import Any

from rules.days import parse_moment, stamp, unstamp
from rules.engagement.events import FUTURE_MAX, InputRefused

OPEN_MAX = timedelta(days=30)
# No request lives longer. So an answer that is accepted just before the closing is stored within this time.
STORED_WITHIN = timedelta(seconds=30)
# In place of the key and of a digest of what was asked, of a question that was restored (rule 21): nobody
# knows them.
UNKNOWN = ""
NAMESPACE = uuid.UUID("0b7c6f0e-6d2b-5a5e-9a43-3c1f5d2f7a10")
OPEN_DEFAULT = timedelta(hours=24)
# For this long after a question closes, its agent can read the results.
KEPT = timedelta(days=90)
CATEGORY_DEFAULT = "general"


class QuestionType(StrEnum):
    """What an answer is: free text, or one of the options."""

    TEXT = "text"
    MULTIPLE_CHOICE = "multiple_choice"


class QuestionStatus(StrEnum):
    """The status that a question shows. PARTIAL is never stored."""

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
    type: QuestionType
    prompt: str
    options: tuple[str, ...]
    audience: tuple[str, ...]
    category: str
    required_responses: int
    current_responses: int
    status: QuestionStatus
    created_at: str
    closes_at: str
    expires_at: int
    body_hash: str
    idempotency_key: str
    closed_at: str | None = None


def shown_status(question: Question, now: datetime) -> QuestionStatus:
    """Return the status that shows at an instant."""
    if question.status in (QuestionStatus.CLOSED, QuestionStatus.EXPIRED):
        return question.status
    if now >= unstamp(question.closes_at) or now.timestamp() >= question.expires_at:
        return QuestionStatus.EXPIRED
    return QuestionStatus.PARTIAL if question.current_responses else QuestionStatus.OPEN


def is_done(question: Question, now: datetime) -> bool:
    """Whether no answer will be counted any more.

    That is later than EXPIRED shows, because an answer may still be on its way.
    """
    if question.status in (QuestionStatus.CLOSED, QuestionStatus.EXPIRED):
        return True
    return now >= unstamp(question.closes_at) + STORED_WITHIN or now.timestamp() >= question.expires_at


def is_listed(status: QuestionStatus, asked: QuestionStatus) -> bool:
    """Whether a question that shows `status` is in the list asked for; the list OPEN has PARTIAL ones too."""
    return status in ANSWERABLE if asked is QuestionStatus.OPEN else status is asked


def statuses_to_read(asked: QuestionStatus) -> tuple[QuestionStatus, ...]:
    """Return the stored statuses that all questions of a list have.

    A question that has just expired is stored as OPEN still, until a job comes by.
    """
    if asked is QuestionStatus.EXPIRED:
        return QuestionStatus.OPEN, QuestionStatus.EXPIRED
    return (QuestionStatus.CLOSED if asked is QuestionStatus.CLOSED else QuestionStatus.OPEN,)


def is_in_audience(audience: Collection[str], tags: Collection[str]) -> bool:
    """Whether a question with this audience is for a person with these tags; no audience means everybody."""
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
        ("selected_option", "answer")
        if question.type is QuestionType.MULTIPLE_CHOICE
        else ("answer", "selected_option")
    )
    if other in body:
        raise InputRefused("invalid_field", other, f"does not answer a {question.type.value} question")
    if wanted not in body:
        raise InputRefused("invalid_field", wanted, "is missing")
    if question.type is QuestionType.MULTIPLE_CHOICE and not 0 <= body[wanted] < len(question.options):
        raise InputRefused("invalid_field", wanted, f"must be from 0 to {len(question.options) - 1}")
    if question.type is QuestionType.TEXT and not body[wanted].strip():
        raise InputRefused("invalid_field", wanted, "is blank")


def to_item(question: Question) -> dict[str, Any]:
    """Return the question as table attributes."""
    return {
        "question_id": question.question_id,
        "agent_id": question.agent_id,
        "type": question.type.value,
        "prompt": question.prompt,
        "options": list(question.options),
        "audience": list(question.audience),
        "category": question.category,
        "required_responses": question.required_responses,
        "current_responses": question.current_responses,
        "status": question.status.value,
        "created_at": question.created_at,
        "closes_at": question.closes_at,
        "closed_at": question.closed_at,
        "expires_at": question.expires_at,
        "body_hash": question.body_hash,
        "idempotency_key": question.idempotency_key or None,
    }


def from_item(item: Mapping[str, Any]) -> Question:
    """Read a stored question."""
    texts = ("question_id", "agent_id", "prompt", "category", "created_at", "closes_at", "body_hash")
    numbers = ("required_responses", "current_responses", "expires_at")
    return Question(
        **{name: item[name] for name in (*texts, *numbers)},
        type=QuestionType(item["type"]),
        status=QuestionStatus(item["status"]),
        options=tuple(item["options"]),
        audience=tuple(item["audience"]),
        idempotency_key=item.get("idempotency_key", UNKNOWN),
        closed_at=item.get("closed_at"),
    )


def question_ids(agent_id: str, idempotency_key: str) -> Iterator[str]:
    """Yield the ids of an agent's questions under a key, one after the other: all compute the same ones.

    A later one is for when the question before has come and gone, and has left its answers.
    """
    name = f"{agent_id}\x00{idempotency_key}"
    yield str(uuid.uuid5(NAMESPACE, name))
    yield from (str(uuid.uuid5(NAMESPACE, f"{name}\x00{before}")) for before in count(1))


def new_question(
    body: Mapping[str, Any], identifier: str, agent_id: str, digest: str, now: datetime
) -> Question:
    """Return the question that an agent asks for.

    body: as ingest's schema lets it in. identifier: its id (`question_ids`). digest: shows whether two bodies
    under one idempotency key are the same.
    Raises InputRefused (invalid_field), naming the field.
    """
    kind = QuestionType(body["type"])
    closes = _closing_time(body, now)
    if not body["prompt"].strip():
        raise InputRefused("invalid_field", "prompt", "is blank")
    return Question(
        question_id=identifier,
        agent_id=agent_id,
        type=kind,
        prompt=body["prompt"],
        options=_options(kind, body.get("options")),
        audience=tuple(sorted(set(body.get("audience", ())))),
        category=body.get("category", CATEGORY_DEFAULT),
        required_responses=body["required_responses"],
        current_responses=0,
        status=QuestionStatus.OPEN,
        created_at=stamp(now),
        closes_at=stamp(closes),
        expires_at=int((closes + KEPT).timestamp()),
        body_hash=digest,
        idempotency_key=body["idempotency_key"],
    )


def _options(kind: QuestionType, options: Sequence[str] | None) -> tuple[str, ...]:
    """Return a question's options: multiple_choice must have some, and text must have none."""
    if kind is QuestionType.TEXT:
        if options is not None:
            raise InputRefused("invalid_field", "options", "are for multiple_choice questions")
        return ()
    if options is None:
        raise InputRefused("invalid_field", "options", "is missing")
    seen = [" ".join(option.split()).casefold() for option in options]
    if not all(seen):
        raise InputRefused("invalid_field", f"options.{seen.index('')}", "is blank")
    if len(set(seen)) != len(seen):
        raise InputRefused("invalid_field", "options", "must differ in more than case and spaces")
    return tuple(options)


def _closing_time(body: Mapping[str, Any], now: datetime) -> datetime:
    if "closes_at" not in body:
        return now + OPEN_DEFAULT
    try:
        closes = parse_moment(body["closes_at"]).utc
    except ValueError as error:
        raise InputRefused("invalid_field", "closes_at", str(error)) from None
    if not now < closes <= now + OPEN_MAX + FUTURE_MAX:  # The agent's clock may be ahead.
        raise InputRefused("invalid_field", "closes_at", f"must lie at most {OPEN_MAX.days} days ahead")
    return closes
