"""Repairs (docs/rules.md, rule 2): a user buys the dates that the run which has just broken has missed.

A repair is nothing but freezes, each bought for one missed date. So the streak needs no rule for it. What
differs is when it may be bought, and that it is given back: as soon as its date is active, or is one that the
user never had, the freeze is gone from that date on, and the points come back. Events alone decide that, and
later ones change nothing of it. So every order of arrival gives the same answer.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Any

from rules.book.daily import RepairRules
from rules.book.rewards import REPAIR_REWARD
from rules.days import DAY
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote
from rules.engagement.streak import (
    YEAR,
    Cover,
    Streak,
    StreakStatus,
    advance,
    fold,
    opening_streak,
    shown_streak,
)


class RepairRefusal(StrEnum):
    """Why nothing can be repaired."""

    NOT_OFFERED = "not_offered"  # by the book
    NOTHING = "nothing_missed"  # the streak goes on, or there is none
    TOO_LATE = "too_late"
    DATES_MAX = "dates_max"
    A_YEAR = "a_year"
    OWED = "freezes_owed"


class NotRepairable(Exception):
    """Nothing can be repaired."""

    def __init__(self, refusal: RepairRefusal, reason: str) -> None:
        super().__init__(reason)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Repair:
    """A date that a user has repaired, and was not given back."""

    day: date
    points: int  # its price
    place: str  # of its entry in the ledger

    @property
    def text(self) -> str:
        """The repair as a profile stores it: `2026-06-02 200 2026-06-03T09:00:00.000000Z`."""
        return f"{self.day.isoformat()} {self.points} {self.place}"

    @classmethod
    def of(cls, text: str) -> "Repair":
        """Read a text; raises ValueError."""
        day, points, place = text.split(" ")
        return cls(date.fromisoformat(day), int(points), place)


@dataclass(frozen=True, slots=True)
class BrokenRun:
    """The newest run that has ended."""

    end: Streak  # the streak on its last active date
    later: Sequence[date] = ()  # the active dates since, ascending


@dataclass(frozen=True, slots=True)
class RepairOffer:
    """What a user may repair."""

    dates: tuple[date, ...]  # those that no freeze covers, ascending
    price_points: int  # of all of them
    until: date  # the last date on which this run can be repaired, if nothing else happens


def is_broken(streak: Streak | None, cover: Cover, today: date) -> bool:
    """Whether a streak shows 0 on a date, although the user was active before."""
    if streak is None or today < streak.last:
        return False
    return shown_streak(streak, cover, today).status is StreakStatus.BROKEN


def may_follow_break(streak: Streak | None, rules: RepairRules) -> bool:
    """Whether a run is so young that the one before it may still be repaired."""
    # Its first date comes after a missed one. The newest date may be one ahead, from a zone further east.
    return streak is not None and streak.length <= min(streak.active_days - 1, rules.within_days + 1)


def newest_break(dates: Iterable[date], start: Streak | None, cover: Cover, today: date) -> BrokenRun | None:
    """Return the newest run that has ended; None if there is none.

    dates: active ones after `start`, the streak after all earlier ones. None: no others, but imported ones.
    """
    state, end, later = start or opening_streak(cover), None, list[date]()
    for day in sorted(set(dates)):
        after = advance(state, day, cover)
        if after == state:
            continue
        if state and after.length == 1:
            end, later = state, []
        later.append(day)
        state = after
    if state and is_broken(state, cover, today):
        return BrokenRun(state)
    return BrokenRun(end, later) if end else None


def offered_repair(
    run: BrokenRun | None, cover: Cover, repairs: Iterable[Repair], rules: RepairRules, today: date
) -> RepairOffer:
    """Return what a user may repair on a date. Raises NotRepairable.

    run: the newest one that has ended; None: none has ended so late that it matters. repairs: the user's, of
    a year at least.
    """
    if not rules.dates_max:
        raise NotRepairable(RepairRefusal.NOT_OFFERED, "the book of rules sells no repairs")
    if run is None:
        raise NotRepairable(RepairRefusal.NOTHING, "no run has just broken")
    repairs = list(repairs)
    if run.later and any(repair.day > run.later[0] for repair in repairs):
        raise NotRepairable(RepairRefusal.NOTHING, "the run that shows was repaired: one break at a time")
    dates = _dates_without_freeze(run, cover, today, rules.dates_max)
    if dates is None:
        raise NotRepairable(RepairRefusal.OWED, "freezes are owed, which the next ones pay")
    if not dates:
        raise NotRepairable(RepairRefusal.NOTHING, "no run has just broken")
    last = dates[0] + timedelta(rules.within_days)
    if today > last:
        raise NotRepairable(RepairRefusal.TOO_LATE, f"it could be repaired until {last}")
    if len(dates) > rules.dates_max:
        reason = f"more dates were missed than the {rules.dates_max} that may be repaired"
        raise NotRepairable(RepairRefusal.DATES_MAX, reason)
    if (most := _most_a_year(repairs, dates)) > rules.a_year:
        left = max(0, rules.a_year - most + len(dates))
        reason = f"{len(dates)} dates were missed, and {left} more may be repaired within 365 days"
        raise NotRepairable(RepairRefusal.A_YEAR, reason)
    while last > today and not _is_offered_then(run, cover, repairs, rules, last):
        last -= DAY
    return RepairOffer(tuple(dates), len(dates) * rules.price_points, last)


def _is_offered_then(
    run: BrokenRun, cover: Cover, repairs: Iterable[Repair], rules: RepairRules, day: date
) -> bool:
    """Whether a run can be repaired on a later date, if nothing happens until then."""
    if run.later and is_broken(fold(run.later, cover, run.end), cover, day):
        return False  # then this is the newest break
    dates = _dates_without_freeze(run, cover, day, rules.dates_max) or []
    return 0 < len(dates) <= rules.dates_max and _most_a_year(repairs, dates) <= rules.a_year


def _most_a_year(repairs: Iterable[Repair], dates: Sequence[date]) -> int:
    """Return the greatest number of repaired dates within 365 ones, if these are repaired, too.

    Of the years that have one of these.
    """
    days = [*(repair.day for repair in repairs), *dates]
    return max(sum(last - YEAR < day <= last for day in days) for last in days if last >= dates[0])


def _dates_without_freeze(run: BrokenRun, cover: Cover, until: date, most: int) -> list[date] | None:
    """Return the missed dates before one that no freeze covers, if the dates before them are repaired.

    It ends with the first date after `most` of them. None: freezes are owed, and a new one would pay that.
    """
    active, spent, missed = set(run.later), len(run.end.spent), list[date]()
    day = run.end.last + DAY
    while day < until and len(missed) <= most:
        if day not in active and not cover.is_neutral(day):
            left = cover.granted(day) + len(missed) - spent
            if left < 0:
                return None
            if left == 0:
                missed.append(day)
            spent += 1
        day += DAY
    return missed


def repair_view(offer: RepairOffer) -> dict[str, Any]:
    """Return an offer as answers and notifications show it."""
    dates = [day.isoformat() for day in offer.dates]
    return {"until": offer.until.isoformat(), "dates": dates, "price_points": offer.price_points}


def newest_repair(repairs: Sequence[Repair], rules: RepairRules, today: date) -> Repair | None:
    """Return the last date of the newest repair; None if its run could be repaired no more anyway."""
    recent = [repair for repair in repairs if repair.day >= today - timedelta(rules.within_days)]
    return max(recent, key=lambda repair: repair.place, default=None)


def repair_drafts(offer: RepairOffer, version: int) -> list[Draft]:
    """Return the entries that buy what is offered: a freeze for each date, at its part of the price.

    version: the number of the book's, which names the price.
    """
    price = offer.price_points // len(offer.dates)
    return [
        Draft(
            EntryKind.REDEEM,
            -price,
            reward_id=REPAIR_REWARD,
            freeze=FreezeNote.GRANTED,
            freeze_date=day.isoformat(),
            rules_version=version,
        )
        for day in offer.dates
    ]


def is_repair(draft: Draft) -> bool:
    """Whether an entry buys the repair of a date."""
    is_freeze = draft.kind is EntryKind.REDEEM and draft.freeze is FreezeNote.GRANTED
    return is_freeze and draft.reward_id == REPAIR_REWARD


def gives_repair_back(draft: Draft) -> bool:
    """Whether an entry gives the repair of a date back."""
    return draft.kind is EntryKind.REVERSE and draft.reward_id == REPAIR_REWARD and bool(draft.freeze)


def repairs_after(repairs: tuple[Repair, ...], entry: Entry) -> tuple[Repair, ...]:
    """Return a user's repairs after an entry: with the one that it buys, or without what it undoes."""
    draft = entry.draft
    if is_repair(draft) and draft.freeze_date:
        return (*repairs, Repair(date.fromisoformat(draft.freeze_date), -draft.points, entry.created_at))
    if draft.kind is EntryKind.REVERSE and draft.reverses:
        return tuple(repair for repair in repairs if repair.place != draft.reverses)
    return repairs


def needless_repairs(
    repairs: Iterable[Repair], dates: Collection[date], undone: Collection[str | None]
) -> list[Repair]:
    """Return the repairs of dates that need none. undone: places of those that are undone anyway.

    dates: the active ones, and those that the user never had.
    """
    return [repair for repair in repairs if repair.place not in undone and repair.day in dates]


def return_of(repair: Repair) -> Draft:
    """Return the entry that gives a needless repair back: its points, and its freeze as if never granted."""
    return Draft(
        EntryKind.REVERSE,
        repair.points,
        reverses=repair.place,
        reward_id=REPAIR_REWARD,
        freeze=FreezeNote.REVOKED,
        freeze_date=repair.day.isoformat(),
    )
