"""Rows of the lake with users' goals: the streaks of the book, and achievements.

A night folds them from the ledgers that it reads, and writes them as raw objects. The next one curates these.
The marts of goals select from the rows, so `rules/` alone knows what a goal is.
"""

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.objects import Objects
from analytics.lake.layout import raw_prefix
from analytics.lake.run_notes import note_odd_object
from analytics.reconcile.stored_profiles import UNREADABLE
from rules.book.book import Books
from rules.days import stamp
from rules.engagement.account import profile_with_entries
from rules.engagement.account_state import Profile
from rules.engagement.achievements import (
    StreakHistory,
    UserHistory,
    achievement_positions,
    measured_days,
    ordered_history,
)
from rules.engagement.goals import (
    PERIOD_MAX,
    KnownPeriods,
    PastPeriods,
    PeriodOutcome,
    declared_achievements,
    fold_periods,
    unsettled_goals,
)
from rules.engagement.ledger import Entry
from rules.engagement.rest_days import RestDays
from rules.engagement.streak import Cover
from rules.lake.entities import USER_GOALS, row_of

Row = dict[str, Any]
# A date begins at another instant in each zone, and a clock may be late.
ZONES_SPAN = timedelta(days=2)


def goal_row(user_id: str, entries: Sequence[Entry], books: Books, at: datetime) -> Row:
    """Return a user's row of `user_goals`, in the form of a publisher's row.

    entries: the whole ledger. at: when the night began. Raises one of UNREADABLE for a ledger that cannot be
    folded.
    """
    blank = Profile(user_id, cover=Cover(rest=RestDays(books.daily_terms)))
    history, cover = ordered_history(entries), profile_with_entries(blank, entries).cover
    known = KnownPeriods(unsettled_goals(books), books, measured_days(history))
    period_of = {name: rule.per for version in books.versions for name, rule in version.book.streaks.items()}
    end = at.date() + PERIOD_MAX + ZONES_SPAN
    periods = {name: _up_to_reached(known.before(name, per, end)) for name, per in sorted(period_of.items())}
    streaks = StreakHistory(periods, cover, books)
    positions = achievement_positions(declared_achievements(books, at), UserHistory(history), streaks)
    achievements = (f"{name} {day} {event_id}" for name, (day, event_id) in sorted(positions.items()))
    attributes = {
        "user_id": user_id,
        "version": int(at.timestamp()),
        "folded_at": stamp(at),
        "streaks": ",".join(_streak_texts(periods, cover)) or None,
        "achievements": ",".join(achievements) or None,
    }
    return row_of(USER_GOALS, attributes, at)


def _up_to_reached(past: PastPeriods) -> PastPeriods:
    return replace(past, letters=past.letters[: past.letters.rfind(PeriodOutcome.REACHED) + 1])


def _streak_texts(periods: dict[str, PastPeriods], cover: Cover) -> Iterator[str]:
    for name, past in periods.items():
        streak = fold_periods(past, cover)
        if streak.reached:
            numbers = (streak.length, streak.longest, streak.reached, len(streak.spent))
            yield " ".join(map(str, (name, past.per, streak.last, *numbers)))


@dataclass(slots=True)
class GoalRows:
    """Folds ledgers that a night has read, and writes their users' goals to the lake.

    Where no version of the book has a goal, nothing is folded or written.
    """

    objects: Objects
    run_id: str
    at: datetime  # when the night began
    books: Callable[[], Books]
    _rows: dict[str, Row] = field(default_factory=dict)  # by user

    def fold(self, user_id: str, entries: Sequence[Entry]) -> None:
        """Fold a user's goals. The report names a ledger that cannot be folded."""
        books = self.books()
        if not entries or not any(
            version.book.streaks or version.book.achievements for version in books.versions
        ):
            return
        try:
            self._rows[user_id] = goal_row(user_id, entries, books, self.at)
        except UNREADABLE as error:
            reason = f"its goals cannot be folded: {type(error).__name__}: {error}"
            note_odd_object(self.objects, self.run_id, f"ledger of {user_id}", reason)

    def write(self, now: datetime) -> None:
        """Write the rows of the users that were folded since the last call, as one raw object."""
        rows, self._rows = self._rows, {}
        if rows:
            first_user = min(rows)  # names the object; all rows of a night are of one hour
            row = rows[first_user]
            prefix = raw_prefix(USER_GOALS.name, f"{now:%Y-%m-%d}", row["dt"], row["hour"])
            name = f"{self.run_id}-{hashlib.sha256(first_user.encode()).hexdigest()[:16]}.gz"
            lines = (json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows.values())
            self.objects.put(prefix + name, gzip.compress(b"".join(lines), mtime=0))
