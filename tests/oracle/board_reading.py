"""Rule 25, read again: what boards count of a ledger, and who is where. Imports nothing of the product.

An entry is a mapping as the API shows it. A board is a section of a book's document.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from tests.oracle.calendar_dates import DAY, Starts, instant, start_of

Section = Mapping[str, Any]
Sections = tuple[
    tuple[date, Mapping[str, Section]], ...
]  # a book's boards, each from a date on that it judges
Span = tuple[date, date]  # a period's first and last date
BOARDS: Mapping[str, Section] = {
    "weekly": {"per": "week"},
    "monthly": {"per": "month"},
}  # of each round's book
ALWAYS: Sections = ((date.min, BOARDS),)
WORD = re.compile(r"(\d{4}-\d\d-\d\d|\d+)(?:/(\d+))?([+-]\d+)([+-]\d+)?")
Counted = dict[Span, tuple[int, int]]  # points, and those that are late


def span_of(board: Section, day: date) -> Span | None:
    """A board's period that has a date."""
    if board.get("per") == "week":
        monday = day - (day.isoweekday() - 1) * DAY
        return monday, monday + 6 * DAY
    if board.get("per") == "month":
        next_month = date(day.year + day.month // 12, day.month % 12 + 1, 1)
        return day.replace(day=1), next_month - DAY
    first, last = date.fromisoformat(board["from"]), date.fromisoformat(board["until"])
    return (first, last) if first <= day <= last else None


def declared(sections: Sections, span: Span) -> dict[str, Section]:
    """The boards that count in a period: those of the book that judges the date before it."""
    judging = [boards for since, boards in sections if since < span[0]][-1]
    return {name: board for name, board in judging.items() if span_of(board, span[0]) == span}


def spans_of(day: date, sections: Sections) -> set[Span]:
    """The periods that have a date, and in which a board counts."""
    all_boards = [board for _, boards in sections for board in boards.values()]
    found = {span for board in all_boards if (span := span_of(board, day))}
    return {span for span in found if declared(sections, span)}


def name_of(span: Span) -> str:
    """The name of a period."""
    first, last = span
    if first.isoweekday() == 1 and last - first == 6 * DAY:
        return "{}-W{:02}".format(*first.isocalendar())
    if first.day == 1 and span == span_of({"per": "month"}, first):
        return first.isoformat()[:7]
    return f"{first}--{last}"


def over_everywhere(last: date, starts: Starts) -> datetime:
    """When a date is over in the zone where dates end last: twelve hours behind UTC."""
    start = start_of(last + DAY, starts)
    return datetime.combine(last + DAY, time(12), UTC) + timedelta(hours=start.hour, minutes=start.minute)


def final_from(span: Span, starts: Starts) -> datetime:
    """The instant from which on nothing changes a period's standing."""
    return over_everywhere(span[1], starts) + 3 * DAY


def is_counted(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is of events."""
    return entry["kind"] in ("EARN", "CLAWBACK", "RERATE") and bool(entry.get("activity_date"))


def points_of(entries: Sequence[Mapping[str, Any]], span: Span, until: datetime) -> int:
    """A period's points of a ledger before an instant."""
    return sum(
        entry["points"]
        for entry in entries
        if is_counted(entry)
        and span[0] <= date.fromisoformat(entry["activity_date"]) <= span[1]
        and instant(entry["created_at"]) < until
    )


def standing(points: Mapping[str, int]) -> list[tuple[int, str, int]]:
    """Rank, user and score of all who have points: before each are those with more."""
    on = {user: score for user, score in points.items() if score > 0}
    ranked = [(1 + sum(other > score for other in on.values()), user, score) for user, score in on.items()]
    return sorted(ranked)


def counted(entries: Sequence[Mapping[str, Any]], starts: Starts, sections: Sections = ALWAYS) -> Counted:
    """What the boards count of a whole ledger, as of its newest entry."""
    points, late = Counter[Span](), Counter[Span]()
    for entry in entries:
        if not is_counted(entry):
            continue
        written = instant(entry["created_at"])
        for span in spans_of(date.fromisoformat(entry["activity_date"]), sections):
            over = over_everywhere(span[1], starts)
            if written < over + 3 * DAY:
                points[span] += entry["points"]
                late[span] += entry["points"] if written >= over + timedelta(hours=6) else 0
    newest = max((instant(entry["created_at"]) for entry in entries), default=None)
    return {
        span: (points[span], late[span])
        for span in points
        if (points[span] or late[span]) and newest and newest < over_everywhere(span[1], starts) + 18 * DAY
    }


def as_stored(text: str) -> Counted:
    """What a profile says that it has counted."""
    found, before = Counted(), date.min
    for word in text.split():
        match = WORD.fullmatch(word)
        assert match, text
        first = date.fromisoformat(match[1]) if "-" in match[1] else before + int(match[1]) * DAY
        found[first, first + int(match[2] or 6) * DAY] = int(match[3]), int(match[4] or 0)
        before = first
    return found
