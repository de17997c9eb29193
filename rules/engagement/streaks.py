"""The streak (docs/rules.md, rules 2 and 3): a pure function of active dates, freezes, pauses and a date.

The rule is a fold over sorted dates. `fold` runs it over a history, `advance` adds one later date, and both
give the same state. A missed date uses a freeze, in date order; without a freeze the run ends. A paused date,
or one that the user's zone skipped, is neutral: it is no miss.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from enum import StrEnum

from rules.engagement.streak.archive_mark import ArchiveMark
from rules.engagement.streak.checkpoints import Checkpoint, ends_month, place_before, with_checkpoint

DAY = timedelta(days=1)


class StreakStatus(StrEnum):
    """What a streak looks like on a given date."""

    ACTIVE = "active"
    AT_RISK = "at_risk"
    BROKEN = "broken"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Cover:
    """What protects a streak.

    freezes: (date, change) pairs, one a date and none of 0: +1 for each grant from its date, -1 for each
    that was returned. If a freeze was spent before it was returned, the sum is too low by one: the next grant
    makes up for it. pauses: (first, last) dates, both included. skipped: dates that the user's zone never
    had. archived: what was put away of the first two; the cover is that of later dates then. opening: the
    streak that another system has told up to a date; dates up to it tell nothing more (rule 20).
    """

    freezes: tuple[tuple[date, int], ...] = ()
    pauses: tuple[tuple[date, date], ...] = ()
    skipped: frozenset[date] = frozenset()
    archived: ArchiveMark | None = None
    opening: Checkpoint | None = None

    def is_neutral(self, day: date) -> bool:
        """Whether a date without activity is no miss."""
        return day in self.skipped or any(first <= day <= last for first, last in self.pauses)

    def granted(self, day: date) -> int:
        """Freezes granted up to a date, less those reversed up to it, and those that the archive has used."""
        left = self.archived.left if self.archived else 0
        return left + sum(change for since, change in self.freezes if since <= day)


@dataclass(frozen=True, slots=True)
class Streak:
    """The fold's state after an active date. `spent`: dates that a freeze covered, ascending.

    checkpoints: where the fold can be taken up again (rules.engagement.streak.checkpoints).
    Both leave out what was put away (Cover.archived).
    """

    last: date
    length: int
    longest: int
    active_days: int
    spent: tuple[date, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = field(default=(), compare=False)

    @property
    def checkpoint(self) -> Checkpoint:
        """The state, to take it up again."""
        return Checkpoint(self.last, self.length, self.longest, self.active_days, len(self.spent))


@dataclass(frozen=True, slots=True)
class ShownStreak:
    """A streak as it shows on a date, with the freezes that it has used by then."""

    current: int
    longest: int
    status: StreakStatus
    last: date | None
    active_days: int
    freezes_available: int
    spent: tuple[date, ...] = ()


def walk(spent: tuple[date, ...], after: date, until: date, cover: Cover) -> tuple[bool, tuple[date, ...]]:
    """Go over the dates strictly between two dates, and spend a freeze on each miss.

    Returns whether the run survives, and all dates that a freeze covers.
    """
    day = after + DAY
    while day < until:
        if not cover.is_neutral(day):
            if cover.granted(day) <= len(spent):
                return False, spent
            spent = (*spent, day)
        day += DAY
    return True, spent


def advance(state: Streak | None, day: date, cover: Cover) -> Streak:
    """Add an active date; adding the last one again changes nothing.

    A date up to the opening is told by that. Raises ValueError for another date before the last one.
    """
    state = state or opened(cover)
    if cover.opening and state and cover.opening.length and day <= cover.opening.last:
        return state
    if state is None:
        return Streak(last=day, length=1, longest=1, active_days=1)
    if day == state.last:
        return state
    if day < state.last:
        raise ValueError(f"{day} is before {state.last}: fold the whole history")
    alive, spent = walk(state.spent, state.last, day, cover)
    length = state.length + 1 if alive else 1
    checkpoints = state.checkpoints
    if ends_month(state.last, day):
        checkpoints = with_checkpoint(checkpoints, state.checkpoint)
    return Streak(day, length, max(state.longest, length), state.active_days + 1, spent, checkpoints)


def fold(days: Iterable[date], cover: Cover, start: Streak | None = None) -> Streak | None:
    """Return the streak of a history, in any order and with any repetition; None for no date at all.

    start: what an earlier part of the history has come to (see resumed); its dates are left out of days.
    """
    state = start or opened(cover)
    for day in sorted(set(days)):
        state = advance(state, day, cover)
    return state


def opened(cover: Cover) -> Streak | None:
    """Return the streak that another system has told; None if none has."""
    told = cover.opening
    if told is None or not told.length:
        return None
    return Streak(told.last, told.length, told.longest, told.active_days)


def resumed(state: Streak | None, since: date) -> Streak | None:
    """Return what a streak was at its newest checkpoint before a date; None if all dates must be folded.

    It is right as long as neither active dates nor cover have changed before that date.
    """
    known = state.checkpoints if state else ()
    place = place_before(known, since)
    if state is None or place is None:
        return None
    at = known[place]
    return Streak(at.last, at.length, at.longest, at.active_days, state.spent[: at.spent], known[:place])


def effective(state: Streak | None, cover: Cover, as_of: date) -> ShownStreak:
    """Return the streak that shows on a date (rule 2).

    After a missed date that nothing covers, it is 0. The date itself is no miss before it is over.
    Raises ValueError for a date before the last active one.
    """
    if state is None:
        return ShownStreak(0, 0, StreakStatus.NONE, None, 0, cover.granted(as_of))
    if as_of < state.last:
        raise ValueError(f"{as_of} is before {state.last}: fold the history up to it")
    alive, spent = walk(state.spent, state.last, as_of, cover)
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
    """Return the first date on which the streak shows 0 if nothing more happens.

    Example: last active on 1 January, one freeze. It covers the 2nd, nothing covers the 3rd: 4 January.
    """
    spent, day = state.spent, state.last + DAY
    while cover.is_neutral(day) or cover.granted(day) > len(spent):
        if not cover.is_neutral(day):
            spent = (*spent, day)
        day += DAY
    return day + DAY


def net_freezes(changes: Iterable[tuple[date, int]]) -> tuple[tuple[date, int], ...]:
    """Return changes of freezes with those of one date added up; what adds up to 0 is left out."""
    net: dict[date, int] = {}
    for day, change in changes:
        net[day] = net.get(day, 0) + change
    return tuple(sorted((day, change) for day, change in net.items() if change))


def return_date(state: Streak | None, cover: Cover, granted: date, today: date) -> date:
    """Return the date from which a freeze that was granted on a date, and is returned today, is gone.

    A freeze that no covered date needs is gone from its grant on, as if it had never been there: then grant
    and return add up to nothing. One that has been used stays used, and is gone from today on.
    """
    as_of = max(today, state.last) if state else today
    left = replace(cover, freezes=(*cover.freezes, (granted, -1)))
    covered = enumerate(effective(state, cover, as_of).spent)
    return granted if all(left.granted(day) > before for before, day in covered) else max(today, granted)
