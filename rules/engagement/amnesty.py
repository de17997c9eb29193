"""Amnesties (rule 17): what was declared after an outage, and which dates it makes neutral for a user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from rules.days import DAY, GREATEST_OFFSET, LEAST_OFFSET, stamp, zone

if TYPE_CHECKING:
    from rules.engagement.account_state import Profile

TICK = timedelta(microseconds=1)
# A longer outage is declared in parts: nobody makes a year neutral by a slip of a digit.
LENGTH_MAX = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Amnesty:
    """One amnesty, as it was declared."""

    number: int
    since: datetime  # since, until: when the outage began and was over
    until: datetime
    zones: frozenset[str] = frozenset()  # names of the zones whose users it concerns; none: all
    is_listed: bool = False  # it concerns those alone for whom it is applied by name
    reason: str = ""
    author: str = ""
    declared_at: str = ""  # declared_at, author, reason: when, by whom, why
    revoked_at: str = ""  # since when it is none any more; "": it is one

    def dates_in(self, name: str) -> frozenset[date]:
        """Return the local dates of a zone that the outage touched; none if it does not concern the zone."""
        if self.zones and name not in self.zones:
            return frozenset()
        there = zone(name)
        day, last = (each.astimezone(there).date() for each in (self.since, self.until - TICK))
        return frozenset(day + timedelta(days=number) for number in range((last - day).days + 1))


@dataclass(frozen=True, slots=True)
class Amnesties:
    """All that are known."""

    known: tuple[Amnesty, ...] = ()
    named: frozenset[int] = frozenset()  # numbers of those that are applied by name to the account at hand


NO_AMNESTIES = Amnesties()


def outage_dates(amnesty: Amnesty) -> tuple[date, date]:
    """Return the first and the last date that the outage touched in any zone there is."""
    first = amnesty.since.astimezone(UTC) + LEAST_OFFSET
    last = amnesty.until.astimezone(UTC) - TICK + GREATEST_OFFSET
    return first.date(), last.date()


def zone_at(profile: Profile, at: datetime) -> str:
    """Return the zone that decided at an instant which date it was for the user (rule 8), as far as is known.

    That is the zone that the user had set by then, else the one that events named by then, else today's.
    """
    chosen = [name for since, name in profile.tz_changes if datetime.fromisoformat(since) <= at]
    if chosen:
        return chosen[-1]
    seen = [name for since, name in profile.zones_seen if since <= stamp(at)]
    if seen and not profile.timezone:
        return seen[-1]
    return profile.zone


def with_amnesties(profile: Profile, amnesties: Amnesties, since: date) -> Profile:
    """Return a profile for which the dates of amnesties are neutral, and those of revoked ones are not.

    since: the first date that is folded anyway. What lies before it and before the last active date is left
    as it is, unless the amnesty is applied by name: then no event costs the reading of the past.
    """
    if not amnesties.known:
        return profile
    marks = {number: frozenset(dates) for number, dates in profile.amnesties}
    own = profile.cover.skipped.difference(*marks.values())
    last = profile.streak.last if profile.streak else date.max
    for each in amnesties.known:
        if each.revoked_at:
            marks.pop(each.number, None)
            continue
        is_named = each.number in amnesties.named
        is_new = not is_named and each.number not in marks
        if is_new and (each.is_listed or each.until.date() + DAY < min(since, last)):
            continue
        touched = (
            day
            for day in each.dates_in(zone_at(profile, each.since))
            if is_named or day >= since or day > last
        )
        if dates := marks.get(each.number, frozenset()).union(touched) - own:
            marks[each.number] = dates
    return _with_neutral_dates(profile, own, sorted(marks.items()))


def _with_neutral_dates(
    profile: Profile, own: frozenset[date], marks: list[tuple[int, frozenset[date]]]
) -> Profile:
    noted = tuple((number, tuple(sorted(dates))) for number, dates in marks)
    if noted == profile.amnesties:
        return profile
    skipped = own.union(*(dates for _, dates in marks))
    return replace(profile, cover=replace(profile.cover, skipped=skipped), amnesties=noted)


def amnesty_of(profile: Profile, day: date) -> int | None:
    """Return the number of the first amnesty that makes a date neutral for the user; None for none."""
    return next((number for number, dates in profile.amnesties if day in dates), None)
