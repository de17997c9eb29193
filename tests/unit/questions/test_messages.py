"""What phones show, and until when."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.days import DAY, start_of, today, unstamp
from rules.questions.notifications import (
    STREAK_SECONDS_MAX,
    claim_expires_at,
    message_of_question,
    message_of_streak,
)
from rules.questions.questions import QuestionType
from tests.support.asking import NOW, asked
from tests.support.engagement_strategies import instants, zones
from tests.support.examples import examples

SMALL = settings(max_examples=examples(60))


@SMALL
@given(st.integers(-100, 10**6), st.text(min_size=1, max_size=30), st.sampled_from(QuestionType))
def test_a_question_is_shown_for_as_long_as_it_takes_answers(
    seconds: int, prompt: str, kind: QuestionType
) -> None:
    question = replace(asked(), prompt=prompt, type=kind)
    message = message_of_question(question, unstamp(question.closes_at) - timedelta(seconds=seconds))
    assert message.ttl_seconds == seconds
    assert (message.title, message.body) == ("A new question", prompt)
    assert message.data == {
        "type": "question",
        "question_id": question.question_id,
        "question_type": kind.value,
    }


@SMALL
@given(st.integers(1, 9), instants, zones)
def test_a_reminder_is_gone_when_its_date_is(length: int, now: datetime, zone: str) -> None:
    message = message_of_streak(length, now, zone)
    assert message.ttl_seconds <= STREAK_SECONDS_MAX
    gone = now + timedelta(seconds=message.ttl_seconds)
    ends = start_of(today(now, zone) + DAY, zone)
    assert gone <= ends
    assert message.ttl_seconds == STREAK_SECONDS_MAX or ends - gone < timedelta(seconds=1)
    assert message.data == {"type": "streak", "length": str(length)}


@pytest.mark.parametrize(
    ("length", "body"), [(1, "Keep your 1 day going today."), (2, "Keep your 2 days going today.")]
)
def test_a_reminder_counts_days(length: int, body: str) -> None:
    assert message_of_streak(length, NOW, "UTC").body == body


@given(instants)
def test_a_claim_is_kept_a_week_after_its_message_may_go_out(last: datetime) -> None:
    assert claim_expires_at(last) == int(last.timestamp()) + 7 * 86400
