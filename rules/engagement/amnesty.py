"""Amnesties (rule 17): what was declared after an outage, and which dates it makes neutral for a user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from rules.days import DAY, GREATEST_OFFSET, LEAST_OFFSET, MICROSECOND, stamp, zone

if TYPE_CHECKING:
    from rules.engagement.account_state import Profile

# A longer outage is declared in parts: nobody makes a year neutral by a slip of a digit.
LENGTH_MAX = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Amnesty:
    """One amnesty, as it was declared."""

    number: int
    since: datetime  # when the outage began
    until: datetime  # when it was over
    zones: frozenset[str] = frozenset()  # names of the zones whose users it concerns; none: all
    is_listed: bool = False  # it concerns only users for whom it is applied by name
    reason: str = ""
    author: str = ""  # who declared it
    declared_at: str = ""
    revoked_at: str = ""  # "": it is in force

    def dates_in(self, zone_name: str) -> frozenset[date]:
        """Return the local dates of a zone that the outage touched; none if it does not concern the zone."""
        if self.zones and zone_name not in self.zones:
            return frozenset()
        tz = zone(zone_name)
        first, last = self.since.astimezone(tz).date(), (self.until - MICROSECOND).astimezone(tz).date()
        return frozenset(first + timedelta(days=number) for number in range((last - first).days + 1))


@dataclass(frozen=True, slots=True)
class Amnesties:
    """The amnesties that a decision about an account applies."""

    known: tuple[Amnesty, ...] = ()  # all that were ever declared, also the revoked ones
    named: frozenset[int] = frozenset()  # numbers of those that an admin applies to this account by name


NO_AMNESTIES = Amnesties()


def outage_dates(amnesty: Amnesty) -> tuple[date, date]:
    """Return the first and the last date that the outage touched in any zone there is."""
    first = amnesty.since.astimezone(UTC) + LEAST_OFFSET
    last = amnesty.until.astimezone(UTC) - MICROSECOND + GREATEST_OFFSET
    return first.date(), last.date()


def zone_at(profile: Profile, at: datetime) -> str:
    """Return the zone that decided at an instant which date it was for the user (rule 8).

    That is the zone that the user had set by then, else the one that events had named by then. If neither is
    known, it is the zone of today.
    """
    set_by_user = [name for since, name in profile.tz_changes if datetime.fromisoformat(since) <= at]
    if set_by_user:
        return set_by_user[-1]
    from_events = [name for since, name in profile.zones_seen if since <= stamp(at)]
    if from_events and not profile.timezone:
        return from_events[-1]
    return profile.zone


def with_amnesties(profile: Profile, amnesties: Amnesties, since: date) -> Profile:
    """Return a profile for which the dates of amnesties are neutral, and those of revoked ones are not.

    since: the first date that this decision folds in any case. An amnesty makes dates from `since` on
    neutral, and dates after the last active one. Only an amnesty that is applied by name makes earlier dates
    neutral, because that needs the reading of the past, which would be dear for each event.
    """
    if not amnesties.known:
        return profile
    dates_by_number = {number: frozenset(dates) for number, dates in profile.amnesties}
    otherwise_skipped = profile.cover.skipped.difference(*dates_by_number.values())
    last_active = profile.streak.last if profile.streak else date.max  # without a streak only `since` counts
    for amnesty in amnesties.known:
        number, stored_dates = amnesty.number, dates_by_number.get(amnesty.number, frozenset[date]())
        if amnesty.revoked_at:
            dates_by_number.pop(number, None)
            continue
        is_named = number in amnesties.named
        # In zones that are ahead of UTC, the outage may have touched one date more than in UTC.
        is_past = amnesty.until.date() + DAY < min(since, last_active)
        if not is_named and number not in dates_by_number and (amnesty.is_listed or is_past):
            continue
        new_dates = {
            day
            for day in amnesty.dates_in(zone_at(profile, amnesty.since))
            if is_named or day >= since or day > last_active
        }
        if dates := stored_dates.union(new_dates) - otherwise_skipped:
            dates_by_number[number] = dates
    return _with_neutral_dates(profile, otherwise_skipped, dates_by_number)


def amnesty_of(profile: Profile, day: date) -> int | None:
    """Return the number of the first amnesty that makes a date neutral for the user, or None."""
    return next((number for number, dates in profile.amnesties if day in dates), None)


def _with_neutral_dates(
    profile: Profile, otherwise_skipped: frozenset[date], dates_by_number: dict[int, frozenset[date]]
) -> Profile:
    in_order = tuple((number, tuple(sorted(dates))) for number, dates in sorted(dates_by_number.items()))
    if in_order == profile.amnesties:
        return profile
    skipped = otherwise_skipped.union(*dates_by_number.values())
    return replace(profile, cover=replace(profile.cover, skipped=skipped), amnesties=in_order)
