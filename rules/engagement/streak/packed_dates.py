"""Dates as one short text: `2026-05-01 2 14` is 1, 3 and 17 May. A number is the days since the one before.

What belongs to a date stands behind it. `2026-05-01/2 14` is 1, 2, 3 and 15 May: two dates follow the first.
`2026-05-01+1 2-1` are changes of freezes, `2026-05-01/3 30/0` pauses of four dates and of one.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any

from rules.days import DAY

ISO_LENGTH = len("2026-05-01")
LATER = re.compile(r"(\d+)(.*)", re.ASCII)
Changes = tuple[tuple[date, int], ...]
Spans = tuple[tuple[date, date], ...]


def pack_dates(dates: Iterable[date]) -> str:
    """Return ascending dates as a text; an empty one for none."""
    runs: list[list[date]] = []
    for day in dates:
        if runs and day == runs[-1][-1] + DAY:
            runs[-1].append(day)
        else:
            runs.append([day])
    return _pack((run[0], f"/{len(run) - 1}" if run[1:] else "") for run in runs)


def unpack_dates(text: str) -> tuple[date, ...]:
    """Read what pack_dates wrote; raises ValueError for another text."""
    return tuple(first + n * DAY for first, more in _unpack(text) for n in range(int(more[1:] or 0) + 1))


def pack_changes(changes: Iterable[tuple[date, int]]) -> str:
    """Return changes of freezes, ascending by date, as a text."""
    return _pack((day, f"{change:+d}") for day, change in changes)


def unpack_changes(text: str) -> Changes:
    """Read what pack_changes wrote; raises ValueError for another text."""
    return tuple((day, int(change)) for day, change in _unpack(text))


def pack_spans(spans: Iterable[tuple[date, date]]) -> str:
    """Return pauses, ascending by their first date, as a text: each with how many dates follow the first."""
    return _pack((first, f"/{(last - first).days}") for first, last in spans)


def unpack_spans(text: str) -> Spans:
    """Read what pack_spans wrote; raises ValueError for another text."""
    return tuple((first, first + timedelta(days=int(more[1:]))) for first, more in _unpack(text))


def listed(texts: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return those of a profile's attributes that are packed as lists.

    Examples: freezes_spent `2026-05-01`, freezes `2026-05-01+1`, pauses `2026-05-01/2026-05-04`.
    """
    found: dict[str, list[str]] = {}
    if isinstance(dates := texts.get("freezes_spent"), str):
        found["freezes_spent"] = [day.isoformat() for day in unpack_dates(dates)]
    if isinstance(changes := texts.get("freezes"), str):
        found["freezes"] = [f"{day.isoformat()}{change:+d}" for day, change in unpack_changes(changes)]
    if isinstance(spans := texts.get("pauses"), str):
        found["pauses"] = [f"{first.isoformat()}/{last.isoformat()}" for first, last in unpack_spans(spans)]
    return found


def _pack(dated: Iterable[tuple[date, str]]) -> str:
    texts: list[str] = []
    before = None
    for day, more in dated:
        texts.append(f"{(day - before).days if before else day.isoformat()}{more}")
        before = day
    return " ".join(texts)


def _unpack(text: str) -> list[tuple[date, str]]:
    found: list[tuple[date, str]] = []
    for each in text.split():
        if not found:
            found.append((date.fromisoformat(each[:ISO_LENGTH]), each[ISO_LENGTH:]))
            continue
        parts = LATER.fullmatch(each)
        if parts is None:
            raise ValueError(f"no number of days: {each!r}")
        found.append((found[-1][0] + timedelta(days=int(parts[1])), parts[2]))
    return found
