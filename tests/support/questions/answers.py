"""Answers to questions, for the tests of what follows from them."""

from datetime import UTC, date, datetime, timedelta

from rules.days import stamp
from rules.questions.questions import QuestionType
from rules.questions.responses import Response

DAY0 = date(2026, 3, 1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def answer(
    number: int, day: int = 0, points: int = 10, category: str = "general", zone: str = "UTC"
) -> Response:
    return Response(
        question_id=f"q{number}",
        fingerprint_hash="f" * 32,
        agent_id="agent",
        type=QuestionType.MULTIPLE_CHOICE,
        category=category,
        number=1,
        points=points,
        day_points_max=150,
        created_at=stamp(NOON + timedelta(days=day, seconds=number)),
        activity_date=DAY0 + timedelta(days=day),
        zone=zone,
        is_signed_in=True,
        selected_option=0,
    )
