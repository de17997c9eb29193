"""Says why a user would gain or lose, by event type and cause, with dates."""

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
    """One cause by which the points of some of a user's events change."""

    cause: str  # in words
    events: int  # the number of these events
    points: int  # the sum of their changes
    first: date  # the earliest date of these events
    last: date  # the latest one

    @property
    def text(self) -> str:
        """The reason as a line."""
        days = str(self.first) if self.first == self.last else f"{self.first} to {self.last}"
        events = "1 event" if self.events == 1 else f"{self.events} events"
        return f"{self.points:+,} points, {events}, {days}: {self.cause}"


def reasons(user: UserFold, timeline: Timeline) -> list[Reason]:
    """Return the causes that change a user's points, the largest change first."""
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


def other_reasons(
    actual: World, hypothetical: World, corrected_before: int, corrected_after: int
) -> Iterator[str]:
    """Yield what else changes a user's balance and streak, beside the points of events.

    corrected_before, corrected_after: the points of reversed events and corrections.
    """
    if hypothetical.expired != actual.expired:
        yield f"{hypothetical.expired:,} points would have expired by now, in place of {actual.expired:,}"
    if corrected_before != corrected_after:
        yield (
            f"{corrected_after:+,} points by reversed events and corrections, in place of "
            f"{corrected_before:+,}"
        )
    lost_days, won_days = actual.active - hypothetical.active, hypothetical.active - actual.active
    for days, word in ((lost_days, "no longer be"), (won_days, "be")):
        if days:
            span = str(min(days)) if len(days) == 1 else f"{min(days)} to {max(days)}"
            dates = "1 date" if len(days) == 1 else f"{len(days)} dates"
            yield f"{dates} would {word} active, {span}: which events keep a streak has changed"


def _cause(outcome: Outcome, timeline: Timeline) -> Iterator[str]:
    """Yield, in words, the version that has judged the event, then in what the candidate differs from it."""
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
    cap_before, cap_after = (cap.text if cap else "none" for cap in (Cap.of(row.cap), ruling.cap))
    if ruling.points is not None and cap_before != cap_after:
        changes.append(f"cap {cap_before} -> {cap_after}")
    if outcome.day != row.day:
        changes.append("counts for another date")
    yield "; ".join(changes) or "other events have used more or less of its cap"


def _worth(book: Book | None, kind: str, occurred: datetime) -> tuple[int | None, int]:
    """Return an event's points, boosted, and the boost's factor; (None, 1) if no book has its type."""
    if book is None or kind not in book.event_types:
        return None, 1
    return book.points(kind, occurred), book.factor(kind, occurred)
