"""Which dates later loads have touched, as SQL: only the rows of these are read and made anew."""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta
from itertools import pairwise

from analytics.warehouse.models import Model
from analytics.warehouse.statements import literal

DAY = timedelta(days=1)
SPANS_MAX = 16  # in a condition: a statement may repeat it for each table and test, and has 100 KB
Span = tuple[date, date]  # both included


def starts(days: Iterable[date], periods: Collection[str], window: int = 0, around: int = 0) -> list[Span]:
    """Return the first dates of the periods that a change of these dates changes.

    window: a period follows from so many dates before it too; around: from so many on both sides. Example:
    with the window 1 and days, a change of 2026-01-31 changes 2026-01-31 and 2026-02-01.
    """
    reached = {day + number * DAY for day in days for number in range(-around, max(window, around) + 1)}
    return joined_days(_start(day, period) for day in reached for period in periods)


def sources(anew: Iterable[Span], periods: Collection[str], window: int = 0, around: int = 0) -> list[Span]:
    """Return the dates that all periods follow from whose first dates are in these spans."""
    return joined(
        (first - max(window, around) * DAY, _end(last, period) + around * DAY)
        for first, last in anew
        for period in periods
        if first <= _start(last, period)
    )


def joined(found: Iterable[Span]) -> list[Span]:
    """Return spans with these dates that neither overlap nor touch, sorted.

    If there are more than SPANS_MAX, the narrowest gaps between them are filled: to read dates that nothing
    has touched, and to make them anew, changes nothing.
    """
    merged: list[Span] = []
    for first, last in sorted(found):
        if merged and first <= merged[-1][1] + DAY:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    by_gap = sorted(range(1, len(merged)), key=lambda place: merged[place][0] - merged[place - 1][1])
    begins = [0, *sorted(by_gap[1 - SPANS_MAX :]), len(merged)]
    return [(merged[begin][0], merged[end - 1][1]) for begin, end in pairwise(begins)] if merged else []


def joined_days(days: Iterable[date]) -> list[Span]:
    """Return `joined` of single dates."""
    return joined((day, day) for day in days)


def within(column: str, found: Iterable[Span]) -> str:
    """Return the condition that a date, or a timestamp, is in one of the spans."""
    return " OR ".join(
        f"({column} >= {literal(first)} AND {column} < {literal(last + DAY)})" for first, last in found
    )


def narrowed(model: Model, found: Collection[Span], also: str = "") -> str:
    """Return the model's SQL, which then reads only these dates of the tables in reads_by.

    also: a further condition of their rows.
    """
    sql = model.sql
    for table, column in model.reads_by.items():
        where = f"({within(column, found)})" + (f" AND {also}" if also else "")
        sql = _replaced(sql, table, f"(SELECT * FROM {table} WHERE {where})")  # noqa: S608
    return sql


def since(query: str, loads: Mapping[str, int]) -> str:
    """Return a query in which `{entity}` stands for the newest load of that entity."""
    return re.sub(r"\{(\w+)\}", lambda found: str(loads.get(found[1], 0)), query)


def _replaced(sql: str, table: str, rows: str) -> str:
    def with_alias(found: re.Match[str]) -> str:
        alias = found["alias"] or table.partition(".")[2]
        return f"{found['word']} {rows} AS {alias}"

    pattern = rf"\b(?P<word>FROM|JOIN)\s+{re.escape(table)}\b(?:\s+AS\s+(?P<alias>\w+))?"
    return re.sub(pattern, with_alias, sql)


def _start(day: date, period: str) -> date:
    if period == "month":
        return day.replace(day=1)
    return day - day.weekday() * DAY if period == "week" else day


def _end(day: date, period: str) -> date:
    first = _start(day, period)
    if period == "month":
        return (first + 31 * DAY).replace(day=1) - DAY
    return first + 6 * DAY if period == "week" else first
