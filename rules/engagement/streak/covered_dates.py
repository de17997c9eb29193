"""Which dates without activity end no streak, over a span of dates (docs/rules.md, rules 2 and 3)."""

from datetime import date

from rules.engagement.streak.date_reasons import DateReason
from rules.engagement.streaks import DAY, Cover, Streak, effective


def covered_dates(
    streak: Streak | None, cover: Cover, span: tuple[date, date], today: date
) -> list[tuple[date, DateReason]]:
    """Return the dates of a span that a freeze, a pause or the zone covers, oldest first; none after today.

    streak and cover: the whole ones. span: the first and the last date, both included. Active dates may be
    among them: activity on a paused date counts. Each reason is what `explain` gives for the same date; it
    gives none before the first active date, which the caller knows.
    """
    if streak is None:
        return []
    spent = set(effective(streak, cover, max(today, streak.last)).spent)
    found, (day, last) = [], span
    while day <= min(last, today):
        if day in cover.skipped:
            found.append((day, DateReason.SKIPPED))
        elif cover.is_neutral(day):
            found.append((day, DateReason.PAUSE))
        elif day in spent:
            found.append((day, DateReason.FREEZE))
        day += DAY
    return found
