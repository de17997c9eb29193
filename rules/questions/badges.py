"""Badges: which there are, and on which date a person earned each.

A badge follows from the stats alone: whatever order responses come in, it is earned on the same date.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING

from rules.engagement import streaks

if TYPE_CHECKING:  # the stats settle old dates by this table
    from rules.questions.answer_stats import Stats

NO_COVER = streaks.Cover()


class BadgeMeasure(StrEnum):
    """What a badge counts."""

    ANSWERS = "answers"
    STREAK_DAYS = "streak_days"
    CATEGORIES = "categories"


@dataclass(frozen=True, slots=True)
class Badge:
    """A person earns it on the date on which `counted` first reaches `threshold`."""

    name: str
    title: str
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


@dataclass(frozen=True, slots=True)
class EarnedBadge:
    """A badge that a person has."""

    badge: Badge
    earned_on: date


Progress = Iterator[tuple[date, int]]


def earned_badges(stats: "Stats", badges: Sequence[Badge] = BADGES) -> list[EarnedBadge]:
    """Return the badges earned, in the table's order."""
    progress = {
        BadgeMeasure.ANSWERS: list(_answers(stats)),
        BadgeMeasure.STREAK_DAYS: list(_longest(stats)),
        BadgeMeasure.CATEGORIES: list(_categories(stats)),
    }
    return [
        EarnedBadge(badge, day)
        for badge in badges
        if (
            day := stats.settled.earned.get(badge.name)
            or next((when for when, n in progress[badge.counted] if n >= badge.threshold), None)
        )
    ]


def _answers(stats: "Stats") -> Progress:
    days = sorted(stats.days)
    counts = accumulate((stats.days[day].answers for day in days), initial=stats.settled.answers)
    next(counts)
    return zip(days, counts, strict=True)


def _longest(stats: "Stats") -> Progress:
    state = stats.settled.streak
    for day in sorted(stats.days):
        state = streaks.advance(state, day, NO_COVER)
        yield day, state.longest


def _categories(stats: "Stats") -> Progress:
    firsts = sorted(each.first for each in stats.categories.values())
    return ((first, number) for number, first in enumerate(firsts, 1))
