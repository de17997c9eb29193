"""Waiting for answers: while a poll waits, which answers it returns, and when no more will come."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rules.questions.questions import Question, is_done
from rules.questions.responses import Response

# Between two looks at the question: soon at first, less often the longer nothing comes.
POLL_SECONDS_MIN, POLL_SECONDS_MAX = 0.25, 1.0
SLOWER = 1.5


@dataclass(frozen=True, slots=True)
class Page:
    """Answers by number, ascending. cursor: the number to ask after next. is_last: none will follow it."""

    responses: Sequence[Response]
    cursor: int
    is_last: bool


def next_pause(seconds: float) -> float:
    """Return how many seconds to wait after a pause of so many."""
    return min(POLL_SECONDS_MAX, seconds * SLOWER)


def has_newer(question: Question, after: int) -> bool:
    """Whether there are answers with higher numbers than `after`: the counter tells, without reading them."""
    return question.current_responses > after


def is_waiting(question: Question, after: int, now: datetime) -> bool:
    """Whether a poll has to wait: there is nothing newer yet, and there may be."""
    return not has_newer(question, after) and not is_done(question, now)


def page_of(question: Question, responses: Iterable[Response], after: int, limit: int, now: datetime) -> Page:
    """Return at most `limit` of a question's answers with higher numbers than `after`."""
    own = (each for each in responses if each.number > after)
    rows = sorted(own, key=lambda each: each.number)[:limit]
    cursor = rows[-1].number if rows else after
    return Page(rows, cursor, is_done(question, now) and not has_newer(question, cursor))
