"""What a phone shows of a question or of a streak, and for how long: the words and the seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from rules.days import DAY, start_of, today, unstamp
from rules.questions.questions import Question

QUESTION_TITLE = "A new question"
STREAK_TITLE = "Your streak ends tonight"
# A phone that is off may get a reminder late in the evening, but never on the next day.
STREAK_SECONDS_MAX = 3 * 3600
# A claim is kept for so long after the last instant at which its message may go out, for an operator to see.
CLAIM_KEPT = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class PushMessage:
    """What a phone shows, and what its app reads.

    data: flat, texts only. ttl_seconds: how long it is kept for a phone that is off.
    """

    title: str
    body: str
    data: Mapping[str, str]
    ttl_seconds: int


def of_question(question: Question, now: datetime) -> PushMessage:
    """Return what a phone shows of a question, for as long as it takes answers."""
    seconds = int((unstamp(question.closes_at) - now).total_seconds())
    data = {
        "type": "question",
        "question_id": question.question_id,
        "question_type": question.type.value,
    }
    return PushMessage(QUESTION_TITLE, question.prompt, data, seconds)


def of_streak(length: int, now: datetime, zone_name: str) -> PushMessage:
    """Return what a phone shows of a streak of so many days: until the local date ends, 3 hours at most."""
    days = "1 day" if length == 1 else f"{length} days"
    seconds = int((start_of(today(now, zone_name) + DAY, zone_name) - now).total_seconds())
    data = {"type": "streak", "length": str(length)}
    return PushMessage(STREAK_TITLE, f"Keep your {days} going today.", data, min(STREAK_SECONDS_MAX, seconds))


def claim_expires_at(last: datetime) -> int:
    """Return when a claim on a message is forgotten, in epoch seconds.

    last: the last instant at which the message may go out.
    """
    return int((last + CLAIM_KEPT).timestamp())
