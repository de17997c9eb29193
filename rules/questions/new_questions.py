"""Checks what an agent asks, and makes the question."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from rules.days import parse_moment, stamp
from rules.engagement.events import FUTURE_MAX, InputRefused
from rules.questions.questions import OPEN_MAX, Question, QuestionStatus, QuestionType

NAMESPACE = uuid.UUID("0b7c6f0e-6d2b-5a5e-9a43-3c1f5d2f7a10")
OPEN_DEFAULT = timedelta(hours=24)
# For this long after a question closes, its agent can read the results.
KEPT = timedelta(days=90)
CATEGORY_DEFAULT = "general"


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

    body: as ingest's schema lets it in. identifier: its id (`question_ids`). digest: tells whether two bodies
    under one idempotency key are the same.
    Raises InputRefused (invalid_field), naming the field.
    """
    kind = QuestionType(body["type"])
    closes = _closes(body, now)
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


def _closes(body: Mapping[str, Any], now: datetime) -> datetime:
    if "closes_at" not in body:
        return now + OPEN_DEFAULT
    try:
        closes = parse_moment(body["closes_at"]).utc
    except ValueError as error:
        raise InputRefused("invalid_field", "closes_at", str(error)) from None
    if not now < closes <= now + OPEN_MAX + FUTURE_MAX:  # The agent's clock may be ahead.
        raise InputRefused("invalid_field", "closes_at", f"must lie at most {OPEN_MAX.days} days ahead")
    return closes
