"""A user's events, days and ledger, newest first, in pages: Histories.

Below it is what the API shows of a date and of an entry. points_api.py shows single entries by it, too.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from adapters.engagement.account_store import AccountStore
from adapters.engagement.event_store import EventStore, PastEvents, PastPage
from ingest.web.caller import ApiError
from ingest.web.json_schema import (
    ANY,
    FLAG,
    INSTANT,
    NEXT_PAGE,
    TEXT,
    closed_object,
    list_of,
    one_of,
    open_object,
    text,
    whole,
)
from ingest.web.paging import (
    FIRST_DATE,
    LAST_DATE,
    LIMIT_DEFAULT,
    LIMIT_MAX,
    PageSpan,
    cursor_at,
    cursor_of,
    day_of,
    integer,
    page,
    span_of,
)
from rules.days import DAY, EPOCH, is_stamp, key_of_stamp, stamp, stamp_of_key
from rules.engagement.account_state import DateReason
from rules.engagement.earnings import points_by_type
from rules.engagement.events import FUTURE_MAX, stamp_of
from rules.engagement.ledger import Draft, Entry, EntryKind, debt_of, entry_id

EVENTS_DAYS_DEFAULT = 30
MARGIN = 2 * DAY  # an event is within a day of its activity date, in any zone
COVERED_DAYS_MAX = 366
END = datetime.combine(LAST_DATE, datetime.min.time(), UTC)


@dataclass(frozen=True, slots=True)
class Histories:
    """Reads a user's events, days and ledger entries, a page at a time."""

    accounts: AccountStore
    event_store: EventStore
    past: PastEvents | None = None  # the events that have left their table
    hot_days: int = 0  # how many days events stay in their table; 0: they expire, and there is no past

    def events(
        self,
        user_id: str,
        query: Mapping[str, str],
        now: datetime,
        count_past: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        """Return events, newest first by when they occurred; by default those of the last 30 days.

        A page that reaches behind hot_days is read from the lake, too, and says so: `"source": "lake"`. It
        may have a cursor and fewer rows than asked for: the lake is searched for some seconds. It is not read
        for a time in which the user has no activity date. count_past is called before it is read.
        """
        since = now - timedelta(days=EVENTS_DAYS_DEFAULT)
        span = span_of(query, since, now + FUTURE_MAX)
        rows = self.event_store.newest(user_id, span.since, span.until, span.limit, now)
        in_lake_before = key_of_stamp(stamp(now - timedelta(days=self.hot_days)))
        is_full = len(rows) == span.limit and rows[-1]["event_id"] >= in_lake_before
        if self.past is None or not self.hot_days or span.since >= in_lake_before or is_full:
            return page("events", list(map(_event_view, rows)), span.limit, "event_id")

        until = min(span.until, in_lake_before)
        day_of({"cursor": until.partition("T")[0]}, "cursor")  # raises for a cursor that is out of bounds
        past = self._past_page(user_id, span, until, count_past)
        by_id = {row["event_id"]: row for row in (*past.rows, *rows)}
        newest = [by_id[event_id] for event_id in sorted(by_id, reverse=True) if event_id >= past.reached]
        view = page("events", list(map(_event_view, newest[: span.limit])), span.limit, "event_id")
        if view["cursor"] is None and past.reached > span.since:
            view["cursor"] = cursor_at(past.reached)
        return view | {"source": "lake"}

    def _past_page(
        self, user_id: str, span: PageSpan, until: str, count_past: Callable[[], None]
    ) -> PastPage:
        """Return events of the lake from the span's beginning until a stamp, near the user's dates alone."""
        assert self.past is not None  # noqa: S101 (the caller has looked)
        since, dates = span.since, self.accounts.first_and_last_day(user_id)
        if dates:  # without any, the tables may be on their way back from the lake (rule 21)
            first, last = dates
            since = max(since, _midnight(first - MARGIN))
            until = min(until, _midnight(last + MARGIN))
            if since >= until:
                return PastPage([], span.since)
        count_past()
        found = self.past.newest(user_id, since, until, span.limit)
        return PastPage(found.rows, span.since) if found.reached <= since else found

    def activity(self, user_id: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Return active dates, newest first."""
        limit = integer(query, "limit", LIMIT_DEFAULT, LIMIT_MAX)
        last = day_of(query, "to") or LAST_DATE
        if before := cursor_of(query):
            last = min(last, (day_of({"cursor": before}, "cursor") or LAST_DATE) - DAY)
        first = day_of(query, "from") or FIRST_DATE
        days = self.accounts.newest_days(user_id, first, last, limit) if first <= last else []
        rows = [
            {
                "activity_date": day.activity_date.isoformat(),
                "events_count": day.events_count,
                "points_earned": day.points_earned,
                "points_by_type": points_by_type(day.points_by_cap),
                "first_event_id": day.first_event_id,
            }
            for day in days
        ]
        return page("activity", rows, limit, "activity_date")

    def ledger(self, user_id: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Return ledger entries, each with the balance after it."""
        # To the end of time: the clock of another machine may have written a later entry than now.
        span = span_of(query, EPOCH, END)
        since, until = stamp_of_key(span.since), stamp_of_key(span.until)
        rows = self.accounts.ledger.page(user_id, since, until, span.limit)
        return page("entries", [entry_view(entry) for entry in rows], span.limit, "created_at")


def _midnight(day: date) -> str:
    return stamp(datetime.combine(day, datetime.min.time(), UTC))


def _event_view(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored event as the API shows it."""
    view = {name: value for name, value in row.items() if name not in {"ttl", "properties"}}
    return view | ({"properties": json.loads(row["properties"])} if "properties" in row else {})


COVER_REASONS = (
    DateReason.FREEZE,
    DateReason.REPAIR,
    DateReason.PAUSE,
    DateReason.REST,
    DateReason.SHORT,
    DateReason.SKIPPED,
    DateReason.AMNESTY,
)
ACTIVITY_VIEW = open_object(
    {
        "activity": list_of(
            open_object(
                {
                    "activity_date": text(format="date"),
                    "events_count": whole("", 1),
                    "points_earned": whole(),
                    "points_by_type?": ANY,
                    "first_event_id?": TEXT,
                }
            )
        ),
        "covered?": list_of(closed_object({"date": text(format="date"), "reason": one_of(COVER_REASONS)})),
        "cursor": NEXT_PAGE,
    }
)


def covered_span(query: Mapping[str, str]) -> tuple[date, date] | None:
    """Return the first and the last date whose cover is asked for; None if no cover is.

    Raises 400 without both dates, and for more than 366 of them; and as day_of.
    """
    if query.get("covered", "false") not in ("true", "false"):
        raise ApiError(400, "invalid_parameter", "covered must be true or false")
    if query.get("covered") != "true":
        return None
    first, last = day_of(query, "from"), day_of(query, "to")
    if first is None or last is None or (last - first).days >= COVERED_DAYS_MAX:
        reason = f"covered needs from and to, at most {COVERED_DAYS_MAX} dates"
        raise ApiError(400, "invalid_parameter", reason)
    return first, last


ENTRY = open_object(
    {
        "entry_id": TEXT,
        "kind": TEXT,
        "points": whole("signed"),
        "balance": whole("after this entry; below 0: a debt"),
        "setting?": text("of a SETTING: what is set, such as zone, pause or hold"),
        "freeze?": text("of a freeze: freeze_granted, freeze_spent, freeze_revoked or freeze_refunded"),
        "debt?": whole("what is owed after this entry", 1),
        "reason?": text("of a CLAWBACK or RERATE, and of an EARN of 0 points"),
        "created_at": TEXT,
        "occurred_at?": INSTANT | {"description": "when its event happened"},
        "duplicate?": FLAG,
    }
)


def entry_view(entry: Entry) -> dict[str, Any]:
    """Return an entry as the API shows it."""
    draft = entry.draft
    view = {
        "entry_id": entry_id(entry.created_at),
        "account_id": entry.account_id,
        "created_at": entry.created_at,
        "occurred_at": draft.event_id and stamp_of(draft.event_id),
        "seq": entry.seq,
        "kind": draft.kind.value,
        "points": draft.points,
        "balance": entry.balance,
        "event_id": draft.event_id,
        "event_type": draft.event_type,
        "activity_date": draft.activity_date,
        "reward_id": draft.reward_id,
        "brand": draft.brand,
        "reverses": draft.reverses and entry_id(draft.reverses),
        "reversed_by": entry.reversed_by and entry_id(entry.reversed_by),
        "freeze": draft.freeze and draft.freeze.value,
        "freeze_date": draft.freeze_date,
        "setting": draft.setting and draft.setting.value,
        "reason": draft.reason or _cap_reason(draft),
        "debt": debt_of(entry.balance) or None,
    }
    return {name: value for name, value in view.items() if value is not None}


def _cap_reason(draft: Draft) -> str | None:
    """Return the cap by which an event has earned nothing, in words; None if there is no such cap."""
    if draft.kind is not EntryKind.EARN or draft.points or draft.cap is None or not draft.cap.points:
        return None
    unit = "point" if draft.cap.points == 1 else "points"
    return f"the limit of {draft.cap.points} {unit} a {draft.cap.per} was reached"


def created_at_of(identifier: str) -> str:
    """Return the created_at of a ledger entry, which its id is made of; raises 404 for what is no such id."""
    try:
        created_at = stamp(datetime.strptime(identifier, "%Y%m%dT%H%M%S%fZ").replace(tzinfo=UTC))
    except ValueError:
        created_at = ""
    if not is_stamp(created_at) or entry_id(created_at) != identifier:
        raise ApiError(404, "not_found", "there is no such entry")
    return created_at
