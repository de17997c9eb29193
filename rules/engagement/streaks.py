"""The streak (docs/rules.md, rules 2 and 3): a pure function of active dates, freezes, pauses and a date.

It is written once, as a left fold over sorted dates: `fold` runs it over a history, `advance` adds
one later date, and both give the same state. Dates that are neutral (paused, or skipped by the
user's zone) are no misses; a missed date costs a freeze, in date order, or ends the run.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

DAY = timedelta(days=1)


class StreakStatus(StrEnum):
    """What a streak looks like on a given date."""

    ACTIVE = "active"
    AT_RISK = "at_risk"
    BROKEN = "broken"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Cover:
    """What protects a run.

    freezes: (date, change) pairs: +1 from the date a freeze was granted on, -1 from the date a
    grant was reversed on. The sum may fall below the freezes spent: a debt that the next grant pays.
    pauses: (first, last) dates, both included. skipped: dates that did not exist for the user.
    """

    freezes: tuple[tuple[date, int], ...] = ()
    pauses: tuple[tuple[date, date], ...] = ()
    skipped: frozenset[date] = frozenset()

    def is_neutral(self, day: date) -> bool:
        """Whether a date without activity is no miss."""
        return day in self.skipped or any(first <= day <= last for first, last in self.pauses)

    def granted(self, day: date) -> int:
        """Freezes granted, less those reversed, up to a date."""
        return sum(change for since, change in self.freezes if since <= day)


@dataclass(frozen=True, slots=True)
class Streak:
    """The fold's state after an active date. `spent`: dates that a freeze covered, ascending."""

    last: date
    length: int
    longest: int
    active_days: int
    spent: tuple[date, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownStreak:
    """A streak as it shows on a date, with the freezes that would have been used by then."""

    current: int
    longest: int
    status: StreakStatus
    last: date | None
    active_days: int
    freezes_available: int
    spent: tuple[date, ...] = ()


def _walk(spent: tuple[date, ...], after: date, until: date, cover: Cover) -> tuple[bool, tuple[date, ...]]:
    """Cover the dates strictly between; returns whether the run lives, and the freezes' dates."""
    day = after + DAY
    while day < until:
        if not cover.is_neutral(day):
            if cover.granted(day) <= len(spent):
                return False, spent
            spent = (*spent, day)
        day += DAY
    return True, spent


def advance(state: Streak | None, day: date, cover: Cover) -> Streak:
    """Add an active date that is not before the last one; the last one again changes nothing."""
    if state is None:
        return Streak(last=day, length=1, longest=1, active_days=1)
    if day == state.last:
        return state
    if day < state.last:
        raise ValueError(f"{day} is before {state.last}: fold the whole history")
    alive, spent = _walk(state.spent, state.last, day, cover)
    length = state.length + 1 if alive else 1
    return Streak(day, length, max(state.longest, length), state.active_days + 1, spent)


def fold(days: Iterable[date], cover: Cover) -> Streak | None:
    """Run the rule over a history, in any order, with any repetition; None without a date."""
    state: Streak | None = None
    for day in sorted(set(days)):
        state = advance(state, day, cover)
    return state


def effective(state: Streak | None, cover: Cover, as_of: date) -> ShownStreak:
    """Return what shows on a date that is not before the last active one.

    After a missed date it is 0 at once. The date itself is not missed before it is over.
    """
    if state is None:
        return ShownStreak(0, 0, StreakStatus.NONE, None, 0, cover.granted(as_of))
    if as_of < state.last:
        raise ValueError(f"{as_of} is before {state.last}: fold the history up to it")
    alive, spent = _walk(state.spent, state.last, as_of, cover)
    status = StreakStatus.BROKEN
    if alive:
        safe = as_of == state.last or cover.is_neutral(as_of)
        status = StreakStatus.ACTIVE if safe else StreakStatus.AT_RISK
    return ShownStreak(
        current=state.length if alive else 0,
        longest=state.longest,
        status=status,
        last=state.last,
        active_days=state.active_days,
        freezes_available=cover.granted(as_of) - len(spent),
        spent=spent,
    )


def lapse_date(state: Streak, cover: Cover) -> date:
    """Return the first date on which the streak shows 0 if nothing more happens."""
    spent, day = state.spent, state.last + DAY
    while cover.is_neutral(day) or cover.granted(day) > len(spent):
        if not cover.is_neutral(day):
            spent = (*spent, day)
        day += DAY
    return day + DAY


class DateReason(StrEnum):
    """Why a date counts or does not."""

    COUNTED = "counted"
    FREEZE = "covered_by_freeze"
    PAUSE = "paused"
    SKIPPED = "skipped_by_zone"
    MISSED = "missed"
    OPEN = "not_over_yet"
    BEFORE = "before_first_activity"


def explain(days: Iterable[date], cover: Cover, asked: date, today: date) -> tuple[DateReason, Streak | None]:
    """Say what a date is to the run, and the streak up to and including that date."""
    known = sorted(set(days))
    upto = fold((d for d in known if d <= asked), cover)
    if asked in known:
        return DateReason.COUNTED, upto
    if upto is None:
        return DateReason.BEFORE, upto
    if asked in cover.skipped:
        return DateReason.SKIPPED, upto
    if cover.is_neutral(asked):
        return DateReason.PAUSE, upto
    # A later activity can only confirm the freezes before it, so a walk past the date decides.
    _, spent = _walk(upto.spent, upto.last, asked + DAY, cover)
    if asked >= today:
        return DateReason.OPEN, upto
    return (DateReason.FREEZE if asked in spent else DateReason.MISSED), upto
