"""Questions, answers and stats as the service shows them. Fields that it adds later are left out."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Self

DONE = frozenset({"CLOSED", "EXPIRED"})


@dataclass(frozen=True, slots=True)
class _Shown:
    @classmethod
    def read(cls, shown: Mapping[str, Any]) -> Self:
        """Take this class's fields from a JSON object; lists become tuples, *_at becomes an instant."""
        return cls(
            **{each.name: _value(each.name, shown[each.name]) for each in fields(cls) if each.name in shown}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(_Shown):
    """A question that people answer."""

    question_id: str
    agent_id: str
    type: str  # "multiple_choice" (it has options) or "text"
    prompt: str
    required_responses: int
    current_responses: int
    status: str  # OPEN, PARTIAL, CLOSED or EXPIRED
    created_at: datetime
    closes_at: datetime
    options: tuple[str, ...] = ()
    audience: tuple[str, ...] = ()
    category: str | None = None
    closed_at: datetime | None = None
    duplicate: bool = False  # the question was asked before, with the same idempotency key

    @property
    def is_done(self) -> bool:
        """Whether the question is over, so that no more answers come."""
        return self.status in DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(_Shown):
    """An answer. A choice has selected_option (from 0), a text its answer."""

    question_id: str
    response_id: str
    number: int  # its place among the question's answers, from 1
    created_at: datetime
    confidence: int | None = None  # 1 to 5
    selected_option: int | None = None
    answer: str | None = None
    response_time_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats(_Shown):
    """What a person has earned by answering."""

    fingerprint: str  # the hash that stands for the person
    alias: str
    total_points: int
    total_answers: int
    streak_days: int
    longest_streak_days: int
    streak_status: str
    created_at: datetime | None = None
    badges: tuple[str, ...] = ()
    badges_earned: tuple[Mapping[str, str], ...] = ()
    answers_by_category: Mapping[str, int] = field(default_factory=dict)


def _value(name: str, value: Any) -> Any:
    if name.endswith("_at") and isinstance(value, str):
        return datetime.fromisoformat(value)
    return tuple(value) if isinstance(value, list) else value
