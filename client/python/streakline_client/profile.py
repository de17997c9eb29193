"""The profile that is shown before the service has answered (rule 2, as far as a device knows it)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, cast

from streakline_client.shapes import Profile

DAY = timedelta(days=1)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class ShownProfile(Profile):
    """A profile that counts the waiting events, too."""

    waiting: int  # how many events wait
    is_estimate: bool  # whether it counts events or a date that the service's answer did not


def new_profile(user: str) -> Profile:
    """Return the profile of a user who has done nothing yet."""
    return {
        "user_id": user,
        "current_streak": 0,
        "longest_streak": 0,
        "streak_status": "none",
        "last_activity_date": None,
        "timezone": "UTC",
        "total_bestie_points": 0,
        "balance": 0,
        "freezes_available": 0,
        "active_days": 0,
    }


@dataclass(frozen=True, slots=True)
class _Run:
    last: date | None  # the last active date; None: there was none
    known_until: date | None  # the date up to which the run is known to go on; None: it has ended
    length: int  # dates
    freezes: int  # that the user has
    rest: frozenset[int]  # the weekdays without a miss, 0: Monday

    def reached(self, day: date) -> "_Run":
        """Return the run on the morning of a date. Each missed date uses up a freeze, or ends the run."""
        if self.known_until is None:
            return replace(self, length=0)
        missed = self._missed_before(day, self.known_until)
        if missed > max(0, self.freezes):  # a run that ends has used up all freezes. A debt of freezes stays
            return replace(self, length=0, freezes=min(0, self.freezes))
        return replace(self, freezes=self.freezes - missed)

    def _missed_before(self, day: date, known_until: date) -> int:
        """Return how many dates between two are no rest dates. A gap of years is counted, not walked."""
        weeks, days = divmod(max(0, (day - known_until).days - 1), 7)
        others = (known_until + (number + 1) * DAY for number in range(days))
        return weeks * (7 - len(self.rest)) + sum(each.weekday() not in self.rest for each in others)

    def rests_on(self, day: date) -> bool:
        """Whether a date is a rest date."""
        return day.weekday() in self.rest

    def with_date(self, day: date) -> "_Run":
        """Return the run after an active date."""
        before = self.reached(day)
        # What the service has covered after a late date stays covered.
        known_until = max(day, before.known_until or day)
        return replace(before, last=day, known_until=known_until, length=before.length + 1)


def estimated(profile: Profile, dates: Iterable[date], today: date) -> Profile:
    """Return what a profile will be when the service has these dates, as of today.

    Dates up to the last known one are left to the service, because they may join runs. So are pauses, points
    and types of events that keep no streak.
    """
    run = _run_of(profile)
    later = sorted({day for day in dates if run.last is None or day > run.last})
    longest = profile["longest_streak"]
    for day in later:
        run = run.with_date(day)
        longest = max(longest, run.length)
    shown: Any = {
        **profile,
        "longest_streak": longest,
        "last_activity_date": run.last and run.last.isoformat(),
        "active_days": profile["active_days"] + len(later),
        "as_of": today.isoformat(),
    }
    if "repair" in profile and date.fromisoformat(profile["repair"]["until"]) < today:
        del shown["repair"]
    return _with_streak(shown, run, today)


def _with_streak(shown: Any, run: _Run, today: date) -> Profile:
    """Return a profile with the figures of a run, as they are on the morning of a date."""
    is_active = run.last is not None and run.last >= today
    run_today = run if is_active else run.reached(today)
    if is_active:
        status = "active"
    elif run_today.length:
        status = "active" if run.rests_on(today) else "at_risk"
    else:
        status = "broken" if run.last else "none"
    streak = {"current_streak": run_today.length, "streak_status": status}
    return cast("Profile", {**shown, **streak, "freezes_available": run_today.freezes})


def _run_of(profile: Profile) -> _Run:
    last_text, as_of = profile["last_activity_date"], profile.get("as_of")
    last, known_until = date.fromisoformat(last_text) if last_text else None, None
    if last and profile["streak_status"] in ("active", "at_risk"):
        known_until = max(last, date.fromisoformat(as_of) - DAY) if as_of else last
    rest = frozenset(map(WEEKDAYS.index, profile.get("rest_days", ())))
    return _Run(last, known_until, profile["current_streak"], profile["freezes_available"], rest)
