"""Dates as short texts, as profiles have them: `2026-05-01 2 14` is 1, 3 and 17 May.

A number counts the days since the date before. A suffix belongs to its date. `2026-05-01/2 14` is 1, 2, 3 and
15 May: two dates follow the first. `2026-05-01+1 2-1` are changes of freezes, `2026-05-01/3 30/0` pauses of
four dates and of one. `2026-11-01/29+460 1+340 7+120+5` are points of a month and of two weeks, 5 of the last
ones late: where no number of dates follows the first, six do.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any

from rules.days import DAY

ISO_LENGTH = len("2026-05-01")
LATER_DATE = re.compile(r"(\d+)(.*)", re.ASCII)  # days since the date before, and the suffix
FOLLOWERS = re.compile(r"/(\d+)", re.ASCII)  # a suffix
COUNTS = re.compile(r"(/\d+)?([+-]\d+)([+-]\d+)?", re.ASCII)  # a suffix
A_WEEK = "/6"  # most points are of weeks, so a text leaves it out
Changes = tuple[tuple[date, int], ...]
Spans = tuple[tuple[date, date], ...]
Counts = tuple[tuple[date, date, int, int], ...]  # first and last date, points, those of them that are late


def _pack(dated: Iterable[tuple[date, str]]) -> str:
    """Return ascending dates, each with a suffix, as a text."""
    words: list[str] = []
    before = None
    for day, suffix in dated:
        words.append(f"{(day - before).days if before else day.isoformat()}{suffix}")
        before = day
    return " ".join(words)


def _unpack(text: str) -> list[tuple[date, str]]:
    """Return the dates of a text, each with its suffix; raises ValueError."""
    dated: list[tuple[date, str]] = []
    day = date.min
    for word in text.split():
        if not dated:
            day, suffix = date.fromisoformat(word[:ISO_LENGTH]), word[ISO_LENGTH:]
        elif match := LATER_DATE.fullmatch(word):
            day, suffix = _days_after(day, match[1]), match[2]
        else:
            raise ValueError(f"no number of days: {word!r}")
        dated.append((day, suffix))
    return dated


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
    return tuple(
        first + number * DAY
        for first, followers in _unpack(text)
        for number in range((_last_of(first, followers or "/0") - first).days + 1)
    )


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
    return tuple((first, _last_of(first, followers)) for first, followers in _unpack(text))


def pack_counts(counts: Iterable[tuple[date, date, int, int]]) -> str:
    """Return points of periods, ascending by their first date, as a text."""
    return _pack(
        (first, f"{_followers(first, last)}{points:+d}" + (f"{late:+d}" if late else ""))
        for first, last, points, late in counts
    )


def _followers(first: date, last: date) -> str:
    followers = f"/{(last - first).days}"
    return "" if followers == A_WEEK else followers


def unpack_counts(text: str) -> Counts:
    """Read what pack_counts wrote; raises ValueError for another text."""
    counts = []
    for first, suffix in _unpack(text):
        if not (match := COUNTS.fullmatch(suffix)):
            raise ValueError(f"no points of a period: {suffix!r}")
        last = _last_of(first, match[1]) if match[1] else _days_after(first, A_WEEK[1:])
        counts.append((first, last, int(match[2]), int(match[3] or 0)))
    return tuple(counts)


def _last_of(first: date, followers: str) -> date:
    """Return the last date of a run. followers: how many dates follow the first: `/4`. Raises ValueError."""
    match = FOLLOWERS.fullmatch(followers)
    if match is None:
        raise ValueError(f"no number of dates: {followers!r}")
    return _days_after(first, match[1])


def _days_after(day: date, days: str) -> date:
    try:
        return day + timedelta(days=int(days))
    except OverflowError:
        raise ValueError(f"no date: {days} days after {day}") from None


def listed_dates(attributes: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the packed attributes of a profile, each as a list of texts.

    Examples: freezes_spent `2026-05-01`, freezes `2026-05-01+1`, pauses `2026-05-01/2026-05-04`.
    """
    lists: dict[str, list[str]] = {}
    if isinstance(dates := attributes.get("freezes_spent"), str):
        lists["freezes_spent"] = [day.isoformat() for day in unpack_dates(dates)]
    if isinstance(changes := attributes.get("freezes"), str):
        lists["freezes"] = [f"{day.isoformat()}{change:+d}" for day, change in unpack_changes(changes)]
    if isinstance(spans := attributes.get("pauses"), str):
        lists["pauses"] = [f"{first.isoformat()}/{last.isoformat()}" for first, last in unpack_spans(spans)]
    return lists
