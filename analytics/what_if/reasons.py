"""Why a user would gain or lose: by event type and cause, with dates."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from analytics.what_if.one_user import EventOutcome, OneUser
from analytics.what_if.timeline import Timeline
from rules.book.book import Book
from rules.book.point_rules import Cap
from rules.engagement.earnings import instant_of


@dataclass(slots=True)
class Reason:
    """What changes the points of some of a user's events. cause: in words. points: the change."""

    cause: str
    events: int
    points: int
    first: date
    last: date

    @property
    def text(self) -> str:
        """The reason as a line."""
        days = str(self.first) if self.first == self.last else f"{self.first} to {self.last}"
        events = "1 event" if self.events == 1 else f"{self.events} events"
        return f"{self.points:+,} points, {events}, {days}: {self.cause}"


def reasons(user: OneUser, timeline: Timeline) -> list[Reason]:
    """Return what changes a user's points, the largest change first."""
    found: dict[str, Reason] = {}
    for each in user.earned:
        change = (each.points or 0) - each.row["points"]
        if not change:
            continue
        cause = ": ".join(_cause(each, timeline))
        known = found.setdefault(cause, Reason(cause, 0, 0, each.day, each.day))
        known.events += 1
        known.points += change
        known.first, known.last = min(known.first, each.day), max(known.last, each.day)
    return sorted(found.values(), key=lambda each: (-abs(each.points), each.cause))


def other_reasons(user: OneUser, expired_before: int, now: datetime) -> Iterator[str]:
    """Yield what changes a user's balance and streak, beside the points of events.

    expired_before: how many points of the user have expired by now.
    """
    if (expired := user.expired(now)) != expired_before:
        yield f"{expired:,} points would have expired by now, in place of {expired_before:,}"
    was, then = user.corrected_before, sum(each.points for each in user.corrected)
    if was != then:
        yield f"{then:+,} points by reversed events and corrections, in place of {was:+,}"
    rows = [each.row for each in user.earned if each.row["event_id"] not in user.reversed]
    was_active = {row["activity_date"] for row in rows if not row["is_passive"]}
    active = set(user.active)
    for days, word in ((was_active - active, "no longer be"), (active - was_active, "be")):
        if days:
            span = str(min(days)) if len(days) == 1 else f"{min(days)} to {max(days)}"
            dates = "1 date" if len(days) == 1 else f"{len(days)} dates"
            yield f"{dates} would {word} active, {span}: which events keep a streak has changed"


def _cause(each: EventOutcome, timeline: Timeline) -> Iterator[str]:
    """Yield how the candidate's terms of an event differ from those that were."""
    row, ruling = each.row, each.ruling
    kind, occurred = row["event_type"], instant_of(row["event_id"])
    number = row["rules_version"]
    yield f"{kind}, judged by version {number}"
    if each.points is None:
        yield "breaks the contract: refused" if row.get("is_broken") else "is not in this book: refused"
        return
    before = next((v.book for v in timeline.real.versions if v.number == number), None)
    was, factor_was = _worth(before, kind, occurred)
    now = ruling.points
    changes = []
    if was is not None and now is not None and was * ruling.factor != now * factor_was:
        changes.append(f"{was // factor_was} -> {now // ruling.factor} points each")
    if factor_was != ruling.factor:
        changes.append(f"boost x{factor_was} -> x{ruling.factor}")
    caps = [cap.text if cap else "none" for cap in (Cap.of(row["cap"]), ruling.cap)]
    if ruling.points is not None and caps[0] != caps[1]:
        changes.append(f"cap {caps[0]} -> {caps[1]}")
    if each.day != row["activity_date"]:
        changes.append("counts for another date")
    yield "; ".join(changes) or "other events leave another part of its cap"


def _worth(book: Book | None, kind: str, occurred: datetime) -> tuple[int | None, int]:
    if book is None or kind not in book.event_types:
        return None, 1
    return book.points(kind, occurred), book.factor(kind, occurred)
