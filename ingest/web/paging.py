"""Reads numbers, dates, spans and cursors from a query, and makes pages, newest first."""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from ingest.web.caller import ApiError
from rules.days import DAY, parse_moment, stamp, unstamp
from rules.json_values import parse_json

DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
# A cursor names the last row of a page: by its date, its created_at or its event_id.
PLACE = re.compile(r"[0-9TZa-f:.#-]{1,100}", re.ASCII)
LIMIT_DEFAULT = 50
LIMIT_MAX = 500
FIRST_DATE, LAST_DATE = date(1970, 1, 1), date(2999, 12, 31)


@dataclass(frozen=True, slots=True)
class PageSpan:
    """What a query asks for: since <= time < until, at most `limit` rows. `until` may come from a cursor."""

    since: str
    until: str
    limit: int


def integer(query: Mapping[str, str], name: str, default: int, most: int, least: int = 1) -> int:
    """Read a whole number from `least` to `most`; returns `default` if none is given; raises 400."""
    text = query.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise ApiError(400, "invalid_parameter", f"{name} must be a whole number from {least} to {most}")
    return int(text)


def day_of(query: Mapping[str, str], name: str) -> date | None:
    """Read a date; returns None if none is given; raises 400."""
    text = query.get(name)
    if not text:
        return None
    try:
        if not DATE.fullmatch(text):
            raise ValueError
        day = date.fromisoformat(text)
    except ValueError:
        raise ApiError(400, "invalid_parameter", f"{name} must be a date: YYYY-MM-DD") from None
    if not FIRST_DATE <= day <= LAST_DATE:
        raise ApiError(400, "invalid_parameter", f"{name} must lie between {FIRST_DATE} and {LAST_DATE}")
    return day


def moment_of(query: Mapping[str, str], name: str, after: timedelta) -> datetime | None:
    """Read a date or an RFC 3339 instant; returns None if none is given; raises 400.

    A date stands for its beginning in UTC plus `after`: 2026-03-01 with one day is 2026-03-02T00:00:00Z.
    """
    text = query.get(name)
    if not text:
        return None
    try:
        if len(text) == 10 and (day := day_of(query, name)):
            return unstamp(f"{day.isoformat()}T00:00:00.000000Z") + after
        return parse_moment(text).utc
    except ValueError:
        raise ApiError(400, "invalid_parameter", f"{name} must be a date or an RFC 3339 timestamp") from None


def span_of(query: Mapping[str, str], since: datetime, until: datetime) -> PageSpan:
    """Read from, to, limit and cursor; raises 400. A date in `to` includes that whole date.

    since, until: what holds if the query has no `from` or no `to`.
    """
    start = moment_of(query, "from", timedelta()) or since
    end = moment_of(query, "to", DAY) or until
    since_stamp = stamp(start)
    # A span that ends before it begins counts as empty.
    until_stamp = max(since_stamp, cursor_of(query) or stamp(end))
    return PageSpan(since_stamp, until_stamp, integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX))


def cursor_of(query: Mapping[str, str]) -> str | None:
    """Read the place of the last row that the client has; returns None without a cursor; raises 400."""
    text = query.get("cursor")
    if not text:
        return None
    try:
        before = parse_json(base64.urlsafe_b64decode(text.encode()))["before"]
        if not PLACE.fullmatch(before):
            raise ValueError
    except (ValueError, TypeError, KeyError):
        raise ApiError(400, "invalid_parameter", "cursor is not one that a page returned") from None
    return str(before)


def page(name: str, rows: list[dict[str, Any]], limit: int, key: str) -> dict[str, Any]:
    """Return a page. Its cursor is null if the page is not full, for then no row follows."""
    return {name: rows, "cursor": cursor_at(rows[-1][key]) if len(rows) == limit else None}


def cursor_at(place: str) -> str:
    """Return the cursor of a page whose next row is before a place."""
    return base64.urlsafe_b64encode(json.dumps({"before": place}).encode()).decode()
