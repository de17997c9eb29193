"""What answers earn in the stats of the person who answers (rule 5)."""

from datetime import UTC, date, datetime, time, timedelta

from rules.book.book import AnswerRules, Books
from rules.days import GREATEST_OFFSET

# Every process knows a version at latest this long after its publication. It looks twice a minute
# (adapters/book.py).
KNOWN_AFTER = timedelta(minutes=1)


def points_for(rules: AnswerRules, confidence: int | None, response_time_ms: int | None) -> dict[str, int]:
    """Return what an answer earns before the daily cap, by reason. Example: {"answer": 10, "timing": 2}."""
    earned = {"answer": rules.points}
    if rules.confidence_points and confidence is not None:
        earned["confidence"] = rules.confidence_points
    timing = rules.timing
    if timing and response_time_ms is not None and timing.from_ms <= response_time_ms <= timing.to_ms:
        earned["timing"] = timing.points
    return earned


def first_instant_of(day: date) -> datetime:
    """Return the first instant at which it is this date anywhere: 10:00 UTC of the date before."""
    return datetime.combine(day, time(), UTC) - GREATEST_OFFSET


def day_points_max(books: Books, day: date) -> int:
    """Return the most points that a person's answers of a date earn.

    It is the cap of the version that was in force when the date began, and that was published at least a
    minute before. A version that is published later does not change it, even if it takes effect in the past.
    So once the date has begun, every process returns the same.
    """
    begin = first_instant_of(day)
    return books.at_as_known(begin, begin - KNOWN_AFTER).book.answers.day_points_max
