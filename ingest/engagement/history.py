"""A user's events, days and ledger, newest first, in pages."""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from adapters.engagement.account_store import AccountStore
from adapters.engagement.event_store import EventStore
from ingest.web.caller import ApiError
from ingest.web.validate import parse_json
from rules.days import DAY, parse_moment, stamp, unstamp
from rules.engagement.events import FUTURE_MAX
from rules.engagement.ledger import OPENED_AT, Entry

DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
# A date, an entry's created_at, or an event_id: what pages end with.
PLACE = re.compile(r"[0-9TZa-f:.#-]{1,100}", re.ASCII)
LIMIT_DEFAULT = 50
LIMIT_MAX = 500
EVENTS_DAYS_DEFAULT = 30
FIRST_DATE, LAST_DATE = date(1970, 1, 1), date(2999, 12, 31)


@dataclass(frozen=True, slots=True)
class Span:
    """What is asked for: since <= time < until, at most `limit`; until may come from a cursor."""

    since: str
    until: str
    limit: int


def integer(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    """Read a whole number from 1; raises 400."""
    text = query.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most):
        raise ApiError(400, "invalid_parameter", f"{name} must be a whole number from 1 to {most}")
    return int(text)


def day_of(query: Mapping[str, str], name: str) -> date | None:
    """Read a date, None if it was not given; raises 400."""
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
    """Read a date (its beginning in UTC, and `after`) or an RFC 3339 instant; raises 400."""
    text = query.get(name)
    if not text:
        return None
    try:
        if len(text) == 10 and (day := day_of(query, name)):
            return unstamp(f"{day.isoformat()}T00:00:00.000000Z") + after
        return parse_moment(text).utc
    except ValueError:
        raise ApiError(400, "invalid_parameter", f"{name} must be a date or an RFC 3339 timestamp") from None


def span_of(query: Mapping[str, str], since: datetime, until: datetime) -> Span:
    """Read from, to (a date includes its whole day), limit and cursor."""
    start = moment_of(query, "from", timedelta()) or since
    end = moment_of(query, "to", DAY) or until
    since_stamp = stamp(start)
    # A span that ends before it begins is an empty one.
    until_stamp = max(since_stamp, _cursor(query) or stamp(end))
    return Span(since_stamp, until_stamp, integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX))


def _cursor(query: Mapping[str, str]) -> str | None:
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
    """Return a page; its cursor is there when it is full."""
    cursor = None
    if len(rows) == limit:
        cursor = base64.urlsafe_b64encode(json.dumps({"before": rows[-1][key]}).encode()).decode()
    return {name: rows, "cursor": cursor}


def entry_id(created_at: str) -> str:
    """Return an entry's place as an id fit for a path: digits and two letters."""
    return created_at.translate(str.maketrans("", "", "-:."))


def created_at(entry: str) -> str:
    """Undo entry_id; raises 404 for what is none."""
    try:
        return stamp(datetime.strptime(entry, "%Y%m%dT%H%M%S%fZ").replace(tzinfo=unstamp(OPENED_AT).tzinfo))
    except ValueError:
        raise ApiError(404, "not_found", "there is no such entry") from None


def entry_view(entry: Entry) -> dict[str, Any]:
    """Return an entry as the API shows it."""
    draft = entry.draft
    view = {
        "entry_id": entry_id(entry.created_at),
        "account_id": entry.account_id,
        "created_at": entry.created_at,
        "seq": entry.seq,
        "kind": draft.kind.value,
        "points": draft.points,
        "balance": entry.balance,
        "event_id": draft.event_id,
        "event_type": draft.event_type,
        "activity_date": draft.activity_date,
        "reward_id": draft.reward_id,
        "reverses": draft.reverses and entry_id(draft.reverses),
        "reversed_by": entry.reversed_by and entry_id(entry.reversed_by),
        "freeze": draft.freeze and draft.freeze.value,
        "freeze_date": draft.freeze_date,
    }
    return {name: value for name, value in view.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Histories:
    """Reads pages."""

    accounts: AccountStore
    event_store: EventStore

    def events(self, user_id: str, query: Mapping[str, str], now: datetime) -> dict[str, Any]:
        """Return events by when they occurred; by default the last 30 days."""
        since = now - timedelta(days=EVENTS_DAYS_DEFAULT)
        span = span_of(query, since, now + FUTURE_MAX)
        rows = self.event_store.newest(user_id, span.since, span.until, span.limit, now)
        hidden = ("ttl", "client_key", "properties")
        views = [
            {name: value for name, value in row.items() if name not in hidden}
            | {"idempotency_key": row["client_key"]}
            | ({"properties": json.loads(row["properties"])} if "properties" in row else {})
            for row in rows
        ]
        return page("events", views, span.limit, "event_id")

    def activity(self, user_id: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Return active dates."""
        limit = integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX)
        last = day_of(query, "to") or LAST_DATE
        if before := _cursor(query):
            last = min(last, (day_of({"cursor": before}, "cursor") or LAST_DATE) - DAY)
        first = day_of(query, "from") or FIRST_DATE
        days = self.accounts.all_days(user_id, first, last) if first <= last else []
        rows = [
            {
                "activity_date": day.activity_date.isoformat(),
                "events_count": day.events_count,
                "points_earned": day.points_earned,
                "points_by_type": dict(day.by_type),
                "first_event_id": day.first_event_id,
            }
            for day in days[::-1][:limit]
        ]
        return page("activity", rows, limit, "activity_date")

    def ledger(self, user_id: str, query: Mapping[str, str], now: datetime) -> dict[str, Any]:
        """Return ledger entries, each with the balance after it."""
        span = span_of(query, unstamp(OPENED_AT), now + timedelta(days=1))
        rows = self.accounts.ledger.page(user_id, span.since, span.until, span.limit)
        return page("entries", [entry_view(entry) for entry in rows], span.limit, "created_at")
