"""Polls: an agent asks for the responses with higher numbers than one, and waits until there are some."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rules.questions.questions import Question, is_done
from rules.questions.responses import Response

# The pause of a poll between two reads of the question. Each pause is longer than the one before.
POLL_SECONDS_MIN, POLL_SECONDS_MAX = 0.25, 1.0
PAUSE_FACTOR = 1.5


@dataclass(frozen=True, slots=True)
class Page:
    """The answer to a poll."""

    responses: Sequence[Response]  # by number, ascending
    cursor: int  # the number that the next poll asks after
    is_last: bool  # whether the question will get no further responses


def next_pause(seconds: float) -> float:
    """Return the seconds of the pause that follows a pause of so many seconds."""
    return min(POLL_SECONDS_MAX, seconds * PAUSE_FACTOR)


def has_newer(question: Question, after: int) -> bool:
    """Whether the question has responses with higher numbers than `after`."""
    return question.current_responses > after


def is_waiting(question: Question, after: int, now: datetime) -> bool:
    """Whether a poll has to wait: the question has no newer response, and may still get one."""
    return not has_newer(question, after) and not is_done(question, now)


def page_of(question: Question, responses: Iterable[Response], after: int, limit: int, now: datetime) -> Page:
    """Return at most `limit` of a question's responses with higher numbers than `after`."""
    newer = (response for response in responses if response.number > after)
    rows = sorted(newer, key=lambda response: response.number)[:limit]
    cursor = rows[-1].number if rows else after
    return Page(rows, cursor, is_done(question, now) and not has_newer(question, cursor))
