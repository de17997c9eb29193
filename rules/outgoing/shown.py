"""What a notification shows of a user: what `GET /v1/users/{user_id}` shows, less what a clock alone decides.

Whether a streak is at risk today is for the receiver to say: it knows `last_activity_date` and `lapses_at`.
"""

from datetime import datetime
from typing import Any

from rules.days import stamp, start_of
from rules.engagement.account_state import Profile, date_at
from rules.engagement.ledger import debt_of
from rules.engagement.streak import DAY, lapse_date, shown_streak

Shown = dict[str, Any]
OF_POINTS = ("total_bestie_points", "balance", "debt")


def shown_of(profile: Profile, at: datetime) -> Shown:
    """Return what is shown at an instant. lapses_at: a stamp, while there is a streak that can lapse."""
    streak = shown_streak(profile.streak, profile.cover, date_at(profile, at))
    return {
        "user_id": profile.user_id,
        "current_streak": streak.current,
        "longest_streak": streak.longest,
        "last_activity_date": streak.last.isoformat() if streak.last else None,
        "timezone": profile.zone,
        "total_bestie_points": profile.total_points,
        "balance": profile.balance,
        "debt": debt_of(profile.balance),
        "freezes_available": streak.freezes_available,
        "active_days": streak.active_days,
        "lapses_at": lapses_at(profile) if streak.current else None,
    }


def lapses_at(profile: Profile) -> str | None:
    """Return the instant from which the streak shows 0 if nothing more happens; None without a streak."""
    if profile.streak is None:
        return None
    return stamp(start_of(lapse_date(profile.streak, profile.cover), profile.zone))


def next_change(profile: Profile, at: datetime) -> datetime | None:
    """Return when time alone will next change what is shown; None: it will not.

    Example: last active on the 1st, one freeze. At the end of the 2nd it is used, at that of the 3rd the
    streak lapses.
    """
    day = date_at(profile, at)
    seen = shown_streak(profile.streak, profile.cover, day)
    if profile.streak is None or not seen.current:
        return None
    last = lapse_date(profile.streak, profile.cover)
    while day < last:
        day += DAY
        later = shown_streak(profile.streak, profile.cover, day)
        if (later.current, later.freezes_available) != (seen.current, seen.freezes_available):
            break
    return start_of(day, profile.zone)
