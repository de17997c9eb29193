"""What reversed events, and versions that took effect in the past, make of one user's points (rule 12).

CLAWBACK and RERATE entries follow from the events that count and from the book. Under another book they are
worked out anew, by the functions that wrote them, when they were written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from analytics.what_if.timeline import FIRST_INSTANT, Ruling, Timeline
from rules.book.book import Books, Version
from rules.days import MICROSECOND
from rules.engagement.account_state import Day
from rules.engagement.events import Event
from rules.engagement.ledger import Draft, EntryKind
from rules.engagement.points import balancing_entries, clawback, is_earning, monday_of, shortfalls

CANDIDATE = 0  # its number: lower than that of any version
Row = Mapping[str, Any]


class PredictedBooks(Books):
    """The versions that are in force with the candidate in the place of some, as published by an instant.

    Those that it replaces still tell what they said of the events that they have judged.
    """

    def __init__(self, timeline: Timeline, now: datetime) -> None:
        known = [_with_expiry(each, timeline) for each in timeline.real.versions if each.published_at <= now]
        in_force = [each for each in known if not timeline.is_candidates(each.effective_at)]
        if (candidate := timeline.candidate) is not None:
            in_force.append(Version(CANDIDATE, timeline.since or FIRST_INSTANT, lambda: candidate))
        if (until := timeline.until) and known:
            last = Books(known).at(until)
            in_force = [each for each in in_force if each.number != last.number]
            in_force.append(replace(last, effective_at=until))
        super().__init__(in_force or known)
        self._numbered = {each.number: each for each in (*known, *self.versions)}


def _with_expiry(version: Version, timeline: Timeline) -> Version:
    """Return a version with the rule of expiry that its events name; the lake's books have none."""
    rule = timeline.expiries.get(version.number)
    return replace(version, read=lambda: replace(version.book, expiry=rule)) if rule else version


@dataclass(slots=True)
class Corrections:
    """drafts: what the user's events earn, with the corrections, in the order in which it is written."""

    timeline: Timeline
    drafts: list[Draft] = field(default_factory=list)

    def count(self, event: Event, points: int, expires: str | None, row: Row, ruling: Ruling) -> None:
        """Note what an event has earned. expires: when its points do."""
        number = row["rules_version"] if ruling.points is None else ruling.version
        self.drafts.append(
            Draft(
                *(EntryKind.EARN, points, event.event_id, event.event_type, event.activity_date.isoformat()),
                rules_version=CANDIDATE if ruling.is_new and number is None else number,
                cap=event.cap,
                is_passive=event.is_passive,
                expires_on=expires,
            )
        )

    def reversed(self, event_id: str, now: datetime) -> list[Draft]:
        """Return what is written when an event is reversed: nothing if it has not counted."""
        named = [each for each in self.drafts if each.event_id == event_id]
        if len(named) != 1:
            return []
        books = PredictedBooks(self.timeline, now)
        return self._noted(clawback(named[0], "", self.drafts, books, ""))

    def rated(self, first: date, now: datetime) -> list[Draft]:
        """Return what is lacking by the versions that are known, from a date's week on."""
        since, books = monday_of(first), PredictedBooks(self.timeline, now)
        entries = [each for each in self.drafts if is_earning(each) and monday_of(_date_of(each)) >= since]
        return self._noted(balancing_entries(shortfalls(entries, books), books.newest.number, ""))

    def _noted(self, drafts: list[Draft]) -> list[Draft]:
        self.drafts += drafts
        return drafts


def without(day: Day, reversal: Draft) -> Day:
    """Return a day without an event that was reversed."""
    is_passive = reversal.is_passive
    return replace(
        day,
        events_count=day.events_count - 1,
        passive_events=day.passive_events - is_passive,
        reversed_events=day.reversed_events + (not is_passive),
    )


def _date_of(draft: Draft) -> date:
    return date.fromisoformat(draft.activity_date or "")


def rerated_since(rows: Iterable[Row]) -> dict[datetime, date]:
    """Return when a ledger was rated anew, with the earliest of the dates of which it was, by place.

    rows: in the order of the ledger. The RERATE entries of a CLAWBACK's transaction belong to that.
    """
    found: dict[datetime, date] = {}
    rerated: list[Row] = []
    for row in (*rows, None):
        if row is not None and row["kind"] == EntryKind.RERATE:
            rerated.append(row)
            continue
        if row is not None and row["kind"] == EntryKind.CLAWBACK:
            at = row["created_at"]
            while rerated and rerated[-1]["created_at"] == at - MICROSECOND:
                at = rerated.pop()["created_at"]
        if rerated:
            found[rerated[0]["created_at"]] = min(each["activity_date"] for each in rerated)
        rerated.clear()
    return found
