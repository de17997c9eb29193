"""Points of an answer (rule 5): by the book of rules alone, and fixed when the answer is stored.

The points of a person and date add up to min(the date's cap, sum of the answers' points), in any order of
arrival: all answers of a date have one cap.
"""

from datetime import UTC, date, datetime, time, timedelta

from rules.book.book import AnswerRules, Books
from rules.days import GREATEST_OFFSET

# Every process knows a version so long after it was published (adapters/book/book_store.py: twice a minute).
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


def begins(day: date) -> datetime:
    """Return the first instant at which it is this date anywhere: 10:00 UTC of the date before."""
    return datetime.combine(day, time(), UTC) - GREATEST_OFFSET


def day_points_max(books: Books, day: date) -> int:
    """Return the most that a person's answers of a date earn, the same whoever asks once the date has begun.

    It is what the version in force said when the date began. A version that was published later, or within
    the minute before, changes nothing of it, also one that takes effect in the past.
    """
    begin = begins(day)
    return books.at_as_known(begin, begin - KNOWN_AFTER).book.answers.day_points_max
