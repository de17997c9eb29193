"""Why a date counts for the streak or does not (docs/rules.md, rules 2, 8 and 17)."""

from datetime import date
from enum import StrEnum

from rules.days import DAY
from rules.engagement.account_state import Profile
from rules.engagement.amnesty import amnesty_of
from rules.engagement.streak import Streak, shown_streak, spend_freezes


class DateReason(StrEnum):
    """Why a date counts or does not."""

    COUNTED = "counted"
    FREEZE = "covered_by_freeze"
    PAUSE = "paused"
    SKIPPED = "skipped_by_zone"
    AMNESTY = "amnesty"
    MISSED = "missed"
    OPEN = "not_over_yet"
    BEFORE = "before_first_activity"


def explain_date(streak: Streak | None, profile: Profile, day: date, today: date) -> tuple[DateReason, int]:
    """Return why a date counts or does not, and the length of the streak after it.

    streak: with the active dates up to that date, and no later ones. profile: with its archive.
    """
    if streak is None:
        return DateReason.BEFORE, 0
    length = shown_streak(streak, profile.cover, day).current
    if day == streak.last:
        return DateReason.COUNTED, length
    if reason := _neutral_reason(profile, day):
        return reason, length
    if day >= today:
        return DateReason.OPEN, length
    # Later activity does not change which freezes were spent before it. So only dates up to this one matter.
    _, spent = spend_freezes(streak.spent, streak.last, day + DAY, profile.cover)
    return (DateReason.FREEZE, length) if day in spent else (DateReason.MISSED, 0)


def covered_dates(profile: Profile, span: tuple[date, date], today: date) -> list[tuple[date, DateReason]]:
    """Return the protected dates of a span up to today, oldest first, each with its reason.

    profile: with its archive. span: the first and the last date, both included. A covered date may be active,
    too: activity on a paused date counts. Dates before the user's first active date may be among them;
    callers leave them out.
    """
    streak = profile.streak
    if streak is None:
        return []
    spent = set(shown_streak(streak, profile.cover, max(today, streak.last)).spent)
    covered: list[tuple[date, DateReason]] = []
    day, last = span
    while day <= min(last, today):
        if reason := _neutral_reason(profile, day) or (DateReason.FREEZE if day in spent else None):
            covered.append((day, reason))
        day += DAY
    return covered


def _neutral_reason(profile: Profile, day: date) -> DateReason | None:
    """Return why a date without activity is no miss, although no freeze covers it; None if it is one."""
    if day in profile.cover.skipped:
        return DateReason.AMNESTY if amnesty_of(profile, day) else DateReason.SKIPPED
    return DateReason.PAUSE if profile.cover.is_neutral(day) else None
