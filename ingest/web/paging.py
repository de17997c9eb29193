"""Reads numbers, dates, spans and cursors from a query, and makes pages, newest first."""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from ingest.web.caller import ApiError, invalid_field, invalid_fields
from rules.days import DAY, EPOCH, LAST_CLOCK, key_of_stamp, parse_moment, stamp
from rules.json_values import parse_json

DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
# A cursor names the last row of a page: by its date, its created_at, its event_id or its number.
CURSOR_PATTERN = re.compile(r"[0-9TZa-f:.#-]{1,100}", re.ASCII)
LIMIT_DEFAULT = 50
LIMIT_MAX = 500
FIRST_DATE, LAST_DATE = date(1970, 1, 1), date(2999, 12, 31)
# What a streak will be is shown for a year: so an answer costs what the account has done, and no more.
AHEAD_MAX = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class PageSpan:
    """What a query asks for: since <= sort key < until, at most `limit` rows. `until` may come from a cursor.

    Both are as the sort keys of the table begin (key_of_stamp).
    """

    since: str
    until: str
    limit: int


def integer(query: Mapping[str, str], name: str, default: int, most: int, least: int = 1) -> int:
    """Read a whole number from `least` to `most`; returns `default` if none is given; raises 400."""
    text = query.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise ApiError(400, "invalid_parameter", f"{name} must be a whole number from {least} to {most}")
    return int(text)


def last_date(now: datetime) -> date:
    """Return the last date that a streak may be asked about."""
    return now.date() + AHEAD_MAX


def day_of(query: Mapping[str, str], name: str, last: date = LAST_DATE) -> date | None:
    """Read a date from 1970-01-01 to `last`; None if none is given; raises 400, and 422 beyond that."""
    text = query.get(name)
    if not text:
        return None
    try:
        if not DATE.fullmatch(text):
            raise ValueError
        day = date.fromisoformat(text)
    except ValueError:
        raise ApiError(400, "invalid_parameter", f"{name} must be a date: YYYY-MM-DD") from None
    _check_bounds(name, day, last)
    return day


def days_in(body: Mapping[str, Any], last: date, *names: str) -> list[date | None]:
    """Read dates of a body as day_of does, None where there is none; raises 422 with all that are wrong."""
    days, problems = [], []
    for name in names:
        try:
            days.append(day_of(body, name, last))
        except ApiError as refused:
            problems.append((name, str(refused).removeprefix(f"{name} ")))
    if problems:
        raise invalid_fields(problems)
    return days


def _check_bounds(name: str, day: date, last: date) -> None:
    """Raise 422 for a date that nobody may ask about."""
    if not FIRST_DATE <= day <= last:
        raise invalid_field(name, f"must lie between {FIRST_DATE} and {last}")


def instant_of(query: Mapping[str, str], name: str) -> datetime | None:
    """Read an RFC 3339 instant, of any year; returns None if none is given; raises 400."""
    text = query.get(name)
    if not text:
        return None
    try:
        return parse_moment(text.replace(" ", "+")).utc  # a plus sign in a query means a blank
    except ValueError as error:
        details = [{"field": name, "reason": str(error)}]
        raise ApiError(400, "invalid_parameter", f"{name} {error}", details) from None


def instant_in(body: Mapping[str, Any], name: str) -> datetime:
    """Read an RFC 3339 instant of a body; raises 422, also for a year that no clock shows."""
    try:
        instant = parse_moment(body[name]).utc
    except ValueError as error:
        raise invalid_field(name, str(error)) from None
    if not EPOCH <= instant < LAST_CLOCK:
        raise invalid_field(name, "must be of the years 1970 to 2999")
    return instant


def moment_of(query: Mapping[str, str], name: str, after: timedelta) -> datetime | None:
    """Read a date or an RFC 3339 instant; returns None if none is given; raises as day_of.

    A date stands for its beginning in UTC plus `after`: 2026-03-01 with one day is 2026-03-02T00:00:00Z.
    """
    if DATE.fullmatch(query.get(name, "")) and (day := day_of(query, name)):
        return datetime(day.year, day.month, day.day, tzinfo=UTC) + after
    if instant := instant_of(query, name):
        _check_bounds(name, instant.date(), LAST_DATE)
    return instant


def span_of(query: Mapping[str, str], since: datetime, until: datetime) -> PageSpan:
    """Read from, to, limit and cursor; raises 400 and 422. A date in `to` includes that whole date.

    since, until: what holds if the query has no `from` or no `to`.
    """
    start = moment_of(query, "from", timedelta()) or since
    end = moment_of(query, "to", DAY) or until
    since_key = key_of_stamp(stamp(start))
    # A span that ends before it begins counts as empty.
    until_key = max(since_key, key_of_stamp(cursor_of(query) or stamp(end)))
    return PageSpan(since_key, until_key, integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX))


def cursor_of(query: Mapping[str, str]) -> str | None:
    """Read the place of the last row that the client has; returns None without a cursor; raises 400."""
    text = query.get("cursor")
    if not text:
        return None
    try:
        before = parse_json(base64.urlsafe_b64decode(text.encode()))["before"]
        if not CURSOR_PATTERN.fullmatch(before):
            raise ValueError
    except (ValueError, TypeError, KeyError):
        raise cursor_refusal() from None
    return str(before)


def cursor_refusal() -> ApiError:
    """Return the refusal of a cursor that no page of this list returned."""
    return ApiError(400, "invalid_parameter", "cursor is not one that a page returned")


def page(name: str, rows: list[dict[str, Any]], limit: int, key: str) -> dict[str, Any]:
    """Return a page. Its cursor is null if the page is not full, for then no row follows."""
    return {name: rows, "cursor": cursor_at(str(rows[-1][key])) if len(rows) == limit else None}


def cursor_at(place: str) -> str:
    """Return the cursor of a page whose next row is before a place."""
    return base64.urlsafe_b64encode(json.dumps({"before": place}).encode()).decode()
