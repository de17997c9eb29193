"""Why a user would gain or lose: by event type and cause, with dates."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from analytics.what_if.timeline import Timeline
from analytics.what_if.user_fold import Outcome, UserFold
from analytics.what_if.user_history import World
from rules.book.book import Book
from rules.book.point_rules import Cap
from rules.engagement.events import instant_of


@dataclass(slots=True)
class Reason:
    """Why the points of some of a user's events change."""

    cause: str  # in words
    events: int  # how many
    points: int  # the change of all of them
    first: date  # first, last: of the dates of these events
    last: date

    @property
    def text(self) -> str:
        """The reason as a line."""
        days = str(self.first) if self.first == self.last else f"{self.first} to {self.last}"
        events = "1 event" if self.events == 1 else f"{self.events} events"
        return f"{self.points:+,} points, {events}, {days}: {self.cause}"


def reasons(user: UserFold, timeline: Timeline) -> list[Reason]:
    """Return what changes a user's points, the largest change first."""
    by_cause: dict[str, Reason] = {}
    for outcome in user.outcomes:
        change = (outcome.points or 0) - outcome.row.points
        if not change:
            continue
        cause = ": ".join(_cause(outcome, timeline))
        reason = by_cause.setdefault(cause, Reason(cause, 0, 0, outcome.day, outcome.day))
        reason.events += 1
        reason.points += change
        reason.first, reason.last = min(reason.first, outcome.day), max(reason.last, outcome.day)
    return sorted(by_cause.values(), key=lambda reason: (-abs(reason.points), reason.cause))


def other_reasons(actual: World, hypothetical: World, corrected: tuple[int, int]) -> Iterator[str]:
    """Yield what changes a user's balance and streak, beside the points of events.

    corrected: points of reversed events and corrections, as they are and as they would be.
    """
    if hypothetical.expired != actual.expired:
        yield f"{hypothetical.expired:,} points would have expired by now, in place of {actual.expired:,}"
    if corrected[0] != corrected[1]:
        yield f"{corrected[1]:+,} points by reversed events and corrections, in place of {corrected[0]:+,}"
    lost_days, won_days = actual.active - hypothetical.active, hypothetical.active - actual.active
    for days, word in ((lost_days, "no longer be"), (won_days, "be")):
        if days:
            span = str(min(days)) if len(days) == 1 else f"{min(days)} to {max(days)}"
            dates = "1 date" if len(days) == 1 else f"{len(days)} dates"
            yield f"{dates} would {word} active, {span}: which events keep a streak has changed"


def _cause(outcome: Outcome, timeline: Timeline) -> Iterator[str]:
    """Yield, in words, which version judged the event, then in what the candidate book differs."""
    row, ruling = outcome.row, outcome.terms.ruling
    kind, occurred, number = row.event_type, instant_of(row.event_id), row.version or None
    yield f"{kind}, judged by version {number}"
    if outcome.points is None:
        yield "breaks the contract: refused" if row.is_broken else "is not in this book: refused"
        return
    before = next((version.book for version in timeline.real.versions if version.number == number), None)
    boosted_before, factor_before = _worth(before, kind, occurred)
    boosted_after, factor_after = ruling.points, ruling.factor
    changes = []
    if boosted_before is not None and boosted_after is not None:
        points_before, points_after = boosted_before // factor_before, boosted_after // factor_after
        if points_before != points_after:
            changes.append(f"{points_before} -> {points_after} points each")
    if factor_before != factor_after:
        changes.append(f"boost x{factor_before} -> x{factor_after}")
    caps = [cap.text if cap else "none" for cap in (Cap.of(row.cap), ruling.cap)]
    if ruling.points is not None and caps[0] != caps[1]:
        changes.append(f"cap {caps[0]} -> {caps[1]}")
    if outcome.day != row.day:
        changes.append("counts for another date")
    yield "; ".join(changes) or "other events have used more or less of its cap"


def _worth(book: Book | None, kind: str, occurred: datetime) -> tuple[int | None, int]:
    """Return the points of an event, boosted, and the factor of the boost; (None, 1) if no book says them."""
    if book is None or kind not in book.event_types:
        return None, 1
    return book.points(kind, occurred), book.factor(kind, occurred)
