"""Which dates amnesties make neutral for a user (rule 17)."""

from dataclasses import replace
from datetime import date, datetime

from rules.days import DAY, stamp
from rules.engagement.account_state import Profile
from rules.engagement.amnesty.declared import Amnesties


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
    return _marked(profile, own, sorted(marks.items()))


def _marked(profile: Profile, own: frozenset[date], marks: list[tuple[int, frozenset[date]]]) -> Profile:
    noted = tuple((number, tuple(sorted(dates))) for number, dates in marks)
    if noted == profile.amnesties:
        return profile
    skipped = own.union(*(dates for _, dates in marks))
    return replace(profile, cover=replace(profile.cover, skipped=skipped), amnesties=noted)


def amnesty_of(profile: Profile, day: date) -> int | None:
    """Return the number of the first amnesty that makes a date neutral for the user; None for none."""
    return next((number for number, dates in profile.amnesties if day in dates), None)
