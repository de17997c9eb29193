"""The badges that people earn by answering questions."""

from dataclasses import dataclass
from enum import StrEnum


class BadgeMeasure(StrEnum):
    """What of a person's answers a badge counts."""

    ANSWERS = "answers"
    STREAK_DAYS = "streak_days"  # of the longest streak
    CATEGORIES = "categories"


@dataclass(frozen=True, slots=True)
class Badge:
    """A badge. A person earns it on the date on which what it counts first reaches its threshold."""

    name: str
    title: str  # what people see
    counted: BadgeMeasure
    threshold: int


BADGES = (
    Badge("first_answer", "First answer", BadgeMeasure.ANSWERS, 1),
    Badge("answers_10", "10 answers", BadgeMeasure.ANSWERS, 10),
    Badge("answers_100", "100 answers", BadgeMeasure.ANSWERS, 100),
    Badge("answers_1000", "1,000 answers", BadgeMeasure.ANSWERS, 1_000),
    Badge("streak_7", "A week without a gap", BadgeMeasure.STREAK_DAYS, 7),
    Badge("streak_30", "30 days without a gap", BadgeMeasure.STREAK_DAYS, 30),
    Badge("streak_100", "100 days without a gap", BadgeMeasure.STREAK_DAYS, 100),
    Badge("categories_5", "Answers in 5 categories", BadgeMeasure.CATEGORIES, 5),
)
