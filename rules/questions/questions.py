"""Questions that people answer: what an agent may ask, which status they show at an instant, and which
answers they take.
"""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import count
from typing import Any

from rules.days import key_of_stamp, parse_moment, stamp, stamp_of_key, unstamp
from rules.engagement.events import FUTURE_MAX, InputRefused

# For how long a question takes answers.
OPEN_DEFAULT, OPEN_MAX = timedelta(hours=24), timedelta(days=30)
# No request takes longer. So an answer that is accepted just before the closing is stored within this time.
STORED_WITHIN = timedelta(seconds=30)
# For this long after a question closes, its agent can read the results.
KEPT = timedelta(days=90)
CATEGORY_DEFAULT = "general"
# Stands for the idempotency key and the body's digest of a restored question (rule 21), which the lake lacks.
UNKNOWN = ""
# Question ids are computed from it. With another value, a repeated request would make a second question.
NAMESPACE = uuid.UUID("0b7c6f0e-6d2b-5a5e-9a43-3c1f5d2f7a10")


class QuestionType(StrEnum):
    """What an answer is: free text, or one of the options."""

    TEXT = "text"
    MULTIPLE_CHOICE = "multiple_choice"


class QuestionStatus(StrEnum):
    """The status that a question shows."""

    OPEN = "OPEN"  # takes answers, and has none
    PARTIAL = "PARTIAL"  # takes answers, and has some
    CLOSED = "CLOSED"  # has all the answers that it asked for
    EXPIRED = "EXPIRED"  # its closes_at came before it had all the answers


ANSWERABLE = (QuestionStatus.OPEN, QuestionStatus.PARTIAL)


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it is stored. Times are stamps (rules.days) if nothing else is said."""

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
    closes_at: str  # from then on it takes no answers
    expires_at: int  # epoch seconds; from then on the table may drop it
    body_hash: str  # or UNKNOWN
    idempotency_key: str  # or UNKNOWN
    closed_at: str | None = None  # when it got its last required answer


def open_status(responses: int) -> QuestionStatus:
    """Return the status of a question that takes answers. responses: how many it has."""
    return QuestionStatus.PARTIAL if responses else QuestionStatus.OPEN


def shown_status(question: Question, now: datetime) -> QuestionStatus:
    """Return the status that shows at an instant."""
    if question.status not in ANSWERABLE:
        return question.status
    if now >= unstamp(question.closes_at) or now.timestamp() >= question.expires_at:
        return QuestionStatus.EXPIRED
    return open_status(question.current_responses)


def is_done(question: Question, now: datetime) -> bool:
    """Whether no answer will be counted any more.

    A question that shows EXPIRED is done a little later, because an answer may still be on its way.
    """
    if question.status not in ANSWERABLE:
        return True
    return now >= unstamp(question.closes_at) + STORED_WITHIN or now.timestamp() >= question.expires_at


def is_listed(shown: QuestionStatus, listed: QuestionStatus) -> bool:
    """Whether a question that shows one status is in the list of another; OPEN lists PARTIAL ones too."""
    return shown in ANSWERABLE if listed is QuestionStatus.OPEN else shown is listed


def statuses_to_read(listed: QuestionStatus) -> tuple[QuestionStatus, ...]:
    """Return the statuses under which the questions of a list are stored.

    A question that has just expired is stored as OPEN or PARTIAL until a job changes that. An answered one
    that release 0.9.0 stored is OPEN until its next answer.
    """
    if listed is QuestionStatus.CLOSED:
        return (listed,)
    return ANSWERABLE if listed in ANSWERABLE else (*ANSWERABLE, listed)


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
    return asdict(question) | {
        "type": question.type.value,
        "options": list(question.options),
        "audience": list(question.audience),
        "status": question.status.value,
        "created_at": key_of_stamp(question.created_at),
        "closes_at": key_of_stamp(question.closes_at),
        "idempotency_key": question.idempotency_key or None,
    }


def from_item(item: Mapping[str, Any]) -> Question:
    """Read a stored question."""
    texts = ("question_id", "agent_id", "prompt", "category", "body_hash")
    numbers = ("required_responses", "current_responses", "expires_at")
    return Question(
        **{name: item[name] for name in (*texts, *numbers)},
        type=QuestionType(item["type"]),
        status=QuestionStatus(item["status"]),
        options=tuple(item["options"]),
        audience=tuple(item["audience"]),
        created_at=stamp_of_key(item["created_at"]),
        closes_at=stamp_of_key(item["closes_at"]),
        idempotency_key=item.get("idempotency_key", UNKNOWN),
        closed_at=item.get("closed_at"),
    )


def question_ids(agent_id: str, idempotency_key: str) -> Iterator[str]:
    """Yield the ids that an agent's questions under one key get, in turn, without end.

    A question gets the second id if the question with the first was deleted and its answers remain, and so
    on. Every process computes the same ids.
    """
    name = f"{agent_id}\x00{idempotency_key}"
    yield str(uuid.uuid5(NAMESPACE, name))
    for earlier_questions in count(1):
        yield str(uuid.uuid5(NAMESPACE, f"{name}\x00{earlier_questions}"))


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
    folded = [" ".join(option.split()).casefold() for option in options]
    if not all(folded):
        raise InputRefused("invalid_field", f"options.{folded.index('')}", "is blank")
    if len(set(folded)) != len(folded):
        raise InputRefused("invalid_field", "options", "must differ in more than case and spaces")
    return tuple(options)


def _closing_time(body: Mapping[str, Any], now: datetime) -> datetime:
    if "closes_at" not in body:
        return now + OPEN_DEFAULT
    try:
        closes = parse_moment(body["closes_at"]).utc
    except ValueError as error:
        raise InputRefused("invalid_field", "closes_at", str(error)) from None
    if closes <= now:
        raise InputRefused("invalid_field", "closes_at", "must be in the future")
    if closes > now + OPEN_MAX + FUTURE_MAX:  # the agent's clock may be ahead
        raise InputRefused("invalid_field", "closes_at", f"must lie at most {OPEN_MAX.days} days ahead")
    return closes


def open_questions_counter(agent_id: str) -> str:
    """Return the name of the quota of an agent's open questions."""
    return f"open-questions#{agent_id}"
