"""The streak (docs/rules.md, rules 2 and 3): a pure function of active dates, what protects it, and a date.

It is a fold over all active dates. The fold can continue from a checkpoint, so nobody reads all dates again.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from enum import StrEnum
from itertools import pairwise

from rules.days import DAY
from rules.engagement.rest_days import RestDays

YEAR = timedelta(days=365)
NO_REST_DAYS = RestDays()
NEWEST_KEPT = 2  # how many of the newest checkpoints are always kept


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The streak's state at the last active date of a month, from which a fold can continue (rule 3).

    The newest two are kept, and the last one of each year. A late event needs all active dates after the
    checkpoint before it: they span three months at most within the late window, and more for a backfill. A
    question about the past needs those up to its date alone, a year at most. Checkpoints follow from the
    active dates and the cover alone, as the streak does. So the order in which events arrive changes none of
    them.
    """

    last: date
    length: int
    longest: int
    active_days: int
    freezes_used: int  # how many dates of Streak.spent are before it

    @property
    def text(self) -> str:
        """The checkpoint as it is stored: `2026-05-31 12 90 300 4`."""
        return f"{self.last.isoformat()} {self.length} {self.longest} {self.active_days} {self.freezes_used}"

    @classmethod
    def of(cls, text: str) -> "Checkpoint":
        """Read a text; raises ValueError."""
        last, *numbers = text.split(" ")
        length, longest, active_days, freezes_used = map(int, numbers)
        return cls(date.fromisoformat(last), length, longest, active_days, freezes_used)


def with_checkpoint(checkpoints: tuple[Checkpoint, ...], checkpoint: Checkpoint) -> tuple[Checkpoint, ...]:
    """Add a month's checkpoint. The third newest goes, unless it is the last of its year."""
    with_new = [*checkpoints, checkpoint]
    third = -NEWEST_KEPT - 1  # its index from the end
    if len(with_new) > NEWEST_KEPT and with_new[third].last.year == with_new[third + 1].last.year:
        del with_new[third]
    return tuple(with_new)


def ends_month(last: date, later: date) -> bool:
    """Whether a date is the last active one of its month, if the next active one is `later`."""
    return (last.year, last.month) != (later.year, later.month)


def checkpoint_index(checkpoints: tuple[Checkpoint, ...], since: date) -> int | None:
    """Return the index of the newest checkpoint before a date; None if there is none."""
    indices = (index for index, checkpoint in enumerate(checkpoints) if checkpoint.last < since)
    return max(indices, default=None)


class StreakStatus(StrEnum):
    """The status of a streak on a date."""

    ACTIVE = "active"
    AT_RISK = "at_risk"
    BROKEN = "broken"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Cover:
    """What protects a streak."""

    # (date, change) pairs, one a date and none of 0: +1 for each grant from its date, -1 for each revocation.
    # A freeze that is revoked after it covered a date leaves -1 available, for which the next grant makes up.
    freezes: tuple[tuple[date, int], ...] = ()
    pauses: tuple[tuple[date, date], ...] = ()  # (first, last) dates, both included
    # Dates that the user's zone never had, and the dates of amnesties (Profile.amnesties has these apart)
    skipped: frozenset[date] = frozenset()
    # If it is set, freezes and pauses are the later ones only (rules.engagement.brought_forward)
    brought_forward: "BroughtForward | None" = None
    # The streak that was imported from another system; dates up to its end are already in it (rule 20)
    opening: Checkpoint | None = None
    rest: RestDays = NO_REST_DAYS

    def is_neutral(self, day: date) -> bool:
        """Whether a date without activity is no miss."""
        return (
            day in self.skipped or self.is_paused(day) or self.rest.includes(day) or self.rest.is_short(day)
        )

    def is_paused(self, day: date) -> bool:
        """Whether a date lies in a pause."""
        return any(first <= day <= last for first, last in self.pauses)

    def granted(self, day: date) -> int:
        """Return the freezes granted up to a date, less those revoked by then, or spent before the start."""
        left = self.brought_forward.freezes_left if self.brought_forward else 0
        return left + sum(change for since, change in self.freezes if since <= day)


@dataclass(frozen=True, slots=True)
class BroughtForward:
    """The sums with which a profile begins: what is older is in the ledger alone."""

    start: Checkpoint  # freezes, covered dates and old pauses up to its date are not in the profile
    freezes_left: int  # freezes granted up to that date, less the dates that freezes covered; below 0: a debt
    freezes_used: int = 0  # how many dates freezes covered up to that date

    @property
    def text(self) -> str:
        """The sums as they are stored: `2026-05-31 12 90 300 4 2`. The dates that freezes covered are 4."""
        return f"{replace(self.start, freezes_used=self.freezes_used).text} {self.freezes_left}"

    @classmethod
    def of(cls, text: str) -> "BroughtForward":
        """Read a text; raises ValueError."""
        start_text, _, left = text.rpartition(" ")
        start = Checkpoint.of(start_text)
        return cls(replace(start, freezes_used=0), int(left), start.freezes_used)


@dataclass(frozen=True, slots=True)
class Streak:
    """The fold's state after an active date."""

    last: date  # the active date
    length: int
    longest: int
    active_days: int
    # These two leave out what is older than Cover.brought_forward.
    spent: tuple[date, ...] = ()  # dates that a freeze covered, ascending
    checkpoints: tuple[Checkpoint, ...] = field(default=(), compare=False)

    @property
    def checkpoint(self) -> Checkpoint:
        """The state as a checkpoint."""
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
    spent: tuple[date, ...] = ()  # dates that a freeze covered, ascending


def spend_freezes(
    spent: tuple[date, ...], after: date, until: date, cover: Cover
) -> tuple[bool, tuple[date, ...]]:
    """Spend a freeze on each missed date strictly between two dates.

    spent: the dates that freezes have covered before. Returns whether the run survives, and all dates that
    freezes have covered then. The search ends at the first date that nothing covers, however long the gap is.
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

    Dates up to an imported opening streak are already in it. Raises ValueError for another date before the
    last one.
    """
    state = state or opening_streak(cover)
    if cover.opening and state and cover.opening.length and day <= cover.opening.last:
        return state
    if state is None:
        return Streak(last=day, length=1, longest=1, active_days=1)
    if day == state.last:
        return state
    if day < state.last:
        raise ValueError(f"{day} is before {state.last}: fold the whole history")
    survives, spent = spend_freezes(state.spent, state.last, day, cover)
    length = state.length + 1 if survives else 1
    checkpoints, sums = state.checkpoints, cover.brought_forward
    if ends_month(state.last, day) and not (sums and state.last == sums.start.last):
        checkpoints = with_checkpoint(checkpoints, state.checkpoint)
    return Streak(day, length, max(state.longest, length), state.active_days + 1, spent, checkpoints)


def fold(days: Iterable[date], cover: Cover, start: Streak | None = None) -> Streak | None:
    """Return the streak of a history, in any order and with any repetition; None for no date at all.

    start: the streak after an earlier part of the history (`resumed_streak`), whose dates are not in days.
    """
    state = start or opening_streak(cover)
    for day in sorted(set(days)):
        state = advance(state, day, cover)
    return state


def opening_streak(cover: Cover) -> Streak | None:
    """Return the streak that was imported from another system; None if none was."""
    opening = cover.opening
    if opening is None or not opening.length:
        return None
    return Streak(opening.last, opening.length, opening.longest, opening.active_days)


def resumed_streak(state: Streak | None, cover: Cover, since: date) -> Streak | None:
    """Return a streak as it was at its newest checkpoint before a date; None if all dates must be folded.

    It is right if neither active dates nor cover have changed before that date.
    """
    if state is None:
        return None
    index = checkpoint_index(state.checkpoints, since)
    if index is not None:
        start, earlier = state.checkpoints[index], state.checkpoints[:index]
        spent = state.spent[: start.freezes_used]
        return Streak(start.last, start.length, start.longest, start.active_days, spent, earlier)
    if cover.brought_forward and cover.brought_forward.start.last < since:
        start = cover.brought_forward.start
        return Streak(start.last, start.length, start.longest, start.active_days)
    return None


def shown_streak(state: Streak | None, cover: Cover, as_of: date) -> ShownStreak:
    """Return the streak that shows on a date (rule 2).

    After a missed date that nothing covers, it is 0. The date itself is no miss before it is over.
    Raises ValueError for a date before the last active one.
    """
    if state is None:
        return ShownStreak(0, 0, StreakStatus.NONE, None, 0, cover.granted(as_of))
    if as_of < state.last:
        raise ValueError(f"{as_of} is before {state.last}: fold the history up to it")
    survives, spent = spend_freezes(state.spent, state.last, as_of, cover)
    status = StreakStatus.BROKEN
    if survives:
        needs_no_event = as_of == state.last or cover.is_neutral(as_of)
        status = StreakStatus.ACTIVE if needs_no_event else StreakStatus.AT_RISK
    return ShownStreak(
        current=state.length if survives else 0,
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
    """Return the sum of the changes of freezes of each date; a date whose sum is 0 is left out."""
    net: dict[date, int] = {}
    for day, change in changes:
        net[day] = net.get(day, 0) + change
    return tuple(sorted((day, change) for day, change in net.items() if change))


def revocation_date(state: Streak | None, cover: Cover, granted: date, today: date) -> date:
    """Return from which date on a revoked freeze is gone. granted: the date of its grant.

    A freeze that no covered date needs is gone from its grant on, as if it had never been granted. A freeze
    that has covered a date stays spent. It is gone from today on, so the next grant pays for it.
    """
    as_of = max(today, state.last) if state else today
    without = replace(cover, freezes=(*cover.freezes, (granted, -1)))
    covered = enumerate(shown_streak(state, cover, as_of).spent)
    is_unused = all(without.granted(day) > spent_before for spent_before, day in covered)
    return granted if is_unused else max(today, granted)


def cover_until(cover: Cover, last: date) -> Cover:
    """Return the part of a cover that a fold of dates up to a date can use.

    Example: of a pause from 1 to 31 March, up to 10 March, it is 1 to 10 March.
    """
    return Cover(
        net_freezes((since, change) for since, change in cover.freezes if since <= last),
        tuple(sorted((first, min(end, last)) for first, end in cover.pauses if first <= last)),
        frozenset(day for day in cover.skipped if day <= last),
        opening=cover.opening,
        rest=cover.rest.until(last),
    )


def is_still_settled(state: Streak | None, before: Cover, now: Cover) -> bool:
    """Whether a state that was folded with one cover is still right with another. Both end at the same date.

    Freezes that are gone change nothing if each date that a freeze covered still has one: with fewer freezes,
    a date that no freeze covered stays uncovered. The answer may be no although the state would be the same;
    then the caller folds all dates anew.
    """
    if (before.pauses, before.skipped, before.opening) != (now.pauses, now.skipped, now.opening):
        return False
    if not before.rest.is_same(now.rest):
        return False
    changes = Counter(dict(net_freezes(now.freezes)))
    changes.subtract(dict(net_freezes(before.freezes)))
    if any(change > 0 for change in changes.values()):
        return False
    covered = enumerate(state.spent if state else ())
    return all(now.granted(day) > spent_before for spent_before, day in covered)


def is_consistent_streak(state: Streak, cover: Cover) -> bool:
    """Whether a streak and its checkpoints agree with each other. A damaged profile may have any values."""
    begun = [cover.brought_forward.start] if cover.brought_forward else []
    steps = [*begun, *state.checkpoints, state.checkpoint]
    return all(0 < step.length <= step.longest <= step.active_days for step in steps) and all(
        earlier.last < later.last
        and 0 < later.active_days - earlier.active_days <= (later.last - earlier.last).days
        and earlier.longest <= later.longest
        and earlier.freezes_used == sum(day < earlier.last for day in state.spent)
        for earlier, later in pairwise(steps)
    )


def paused_dates_a_year(pauses: Iterable[tuple[date, date]]) -> int:
    """Return the greatest number of paused dates within 365 days; a date in two pauses counts once."""
    paused: set[date] = set()
    for first, last in pauses:
        paused.update(first + number * DAY for number in range((last - first).days + 1))
    in_order = sorted(paused)
    greatest = oldest = 0
    for newest, day in enumerate(in_order):
        while in_order[oldest] <= day - YEAR:
            oldest += 1
        greatest = max(greatest, newest - oldest + 1)
    return greatest
