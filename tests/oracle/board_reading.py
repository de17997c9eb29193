"""Rule 25, read again: what boards of weeks and of months count of a ledger. Imports nothing of the product.

An entry is a mapping as the API shows it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from tests.oracle.calendar_dates import DAY, Starts, instant, start_of

BOARDS = {"weekly": {"per": "week"}, "monthly": {"per": "month"}}  # what each round's book declares
WORD = re.compile(r"(\d{4}-\d\d-\d\d|\d+)(?:/(\d+))?([+-]\d+)([+-]\d+)?")
Counted = dict[tuple[date, date], tuple[int, int]]  # by first and last date: points, and those that are late


def spans_of(day: date) -> list[tuple[date, date]]:
    """The week and the month of a date, each by its first and its last date."""
    monday = day - (day.isoweekday() - 1) * DAY
    next_month = date(day.year + day.month // 12, day.month % 12 + 1, 1)
    return [(monday, monday + 6 * DAY), (day.replace(day=1), next_month - DAY)]


def over_everywhere(last: date, starts: Starts) -> datetime:
    """When a date is over in the zone where dates end last: twelve hours behind UTC."""
    start = start_of(last + DAY, starts)
    return datetime.combine(last + DAY, time(12), UTC) + timedelta(hours=start.hour, minutes=start.minute)


def counted(entries: Sequence[Mapping[str, Any]], starts: Starts) -> Counted:
    """What the boards count of a whole ledger, as of its newest entry."""
    points, late = Counter[tuple[date, date]](), Counter[tuple[date, date]]()
    for entry in entries:
        if entry["kind"] not in ("EARN", "CLAWBACK", "RERATE") or not entry.get("activity_date"):
            continue
        written = instant(entry["created_at"])
        for span in spans_of(date.fromisoformat(entry["activity_date"])):
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
