"""Items of questions' entities, as full as they get (tests/unit/lake/test_writers.py)."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from adapters.questions.stats_items import stats_attributes
from adapters.questions.subscription_store import KEY, claim_key
from rules.days import stamp
from rules.questions.answer_stats import fold_responses as answered
from rules.questions.lake_entities import ANSWER_STATS, NOTIFICATIONS, QUESTIONS, RESPONSES
from rules.questions.questions import Question, QuestionStatus, QuestionType
from rules.questions.questions import to_item as question_item
from rules.questions.responses import to_item as to_response_item
from tests.support.engagement_strategies import NOW
from tests.support.questions.answers import NOON, answer

AT = stamp(NOW)
# Where an item of each entity gets its attributes.
WRITERS = {
    "questions": "rules/questions/questions.py (to_item)",
    "responses": "rules/questions/responses.py (to_item)",
    "answer_stats": "adapters/questions/stats_items.py (stats_attributes)",
    "notifications": "adapters/questions/message_claims.py (MessageClaims.settle)",
}


def questions() -> Iterator[dict[str, Any]]:
    at, later = stamp(NOON), stamp(NOON + timedelta(hours=1))
    expires = int(NOON.timestamp())
    closed = Question(
        *("q", "agent", QuestionType.MULTIPLE_CHOICE, "Which?", ("this", "that"), ("it",), "general", 5, 5),
        *(QuestionStatus.CLOSED, at, later, expires, "digest", "key", later),
    )
    yield question_item(closed)


def responses() -> Iterator[dict[str, Any]]:
    chosen = replace(answer(1), confidence=3, response_time_ms=1500, day_points_max=150)
    yield to_response_item(chosen)
    yield to_response_item(replace(chosen, selected_option=None, answer="words"))


def answer_stats() -> Iterator[dict[str, Any]]:
    stats = answered([answer(number, day=number) for number in range(30)])
    yield stats_attributes("f" * 32, stats) | {"version": 3, "updated_at": AT}
    yield {"fingerprint_hash": "f" * 32, "moved_to": "e" * 32, "version": 4, "updated_at": AT}


def notifications() -> Iterator[dict[str, Any]]:
    place = claim_key("subscription", "question=q")
    yield {KEY: place, "claimed_at": AT, "expires_at": 5, "outcome": "sent", "settled_at": AT}


ITEMS = {
    QUESTIONS.name: questions,
    RESPONSES.name: responses,
    ANSWER_STATS.name: answer_stats,
    NOTIFICATIONS.name: notifications,
}
