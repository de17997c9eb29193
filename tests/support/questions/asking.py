"""A question's body, and the question that it becomes."""

from datetime import UTC, datetime
from typing import Any

import pytest

from rules.engagement.events import InputRefused
from rules.questions.questions import Question, new_question, question_ids

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
BODY = {
    "idempotency_key": "k",
    "type": "multiple_choice",
    "prompt": "Which?",
    "options": ["a", "b"],
    "required_responses": 5,
}


def asked(**changes: Any) -> Question:
    body = {name: value for name, value in {**BODY, **changes}.items() if value is not None}
    return new_question(body, next(question_ids("agent", body["idempotency_key"])), "agent", "digest", NOW)


def refusal(call: Any, *arguments: Any) -> tuple[str, str]:
    with pytest.raises(InputRefused) as refused:
        call(*arguments)
    return refused.value.code, refused.value.field
