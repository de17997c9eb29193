"""When a person is reminded of a streak that ends tonight: once a local date, at REMINDER_HOUR.

If that hour is quiet, the reminder is due when the quiet hours end, provided that the date is still the same.
The date is the reminder's key, so nobody gets two for one date. When clocks change: an hour that comes twice
counts the first time; an hour that is jumped over counts right after the jump; a date that the zone skips has
no reminder.
"""

import zlib
from datetime import UTC, date, datetime, time, timedelta

from rules.days import DAY, today, zone
from rules.engagement.streak import Cover, Streak, StreakStatus, shown_streak
from rules.questions.notifications import QuietHours, is_quiet

REMINDER_HOUR = 20
# Reminders wait in this many index partitions. A single one would be too hot at 20:00 in a large zone.
SHARDS = 4
# How many dates to look ahead: a date that its zone skipped has no evening, but one soon after has.
DATES_AHEAD = 3


def reminder_at(day: date, zone_name: str, quiet: QuietHours | None) -> datetime | None:
    """Return the instant (UTC) at which a local date's reminder is due; None: not on that date."""
    for clock in (time(REMINDER_HOUR), quiet.until if quiet else None):
        if clock is None or clock < time(REMINDER_HOUR):
            continue
        due = datetime.combine(day, clock, zone(zone_name)).astimezone(UTC)
        if today(due, zone_name) == day and not is_quiet(quiet, zone_name, due):
            return due
    return None


def next_reminder(after: datetime, zone_name: str, quiet: QuietHours | None) -> datetime | None:
    """Return the first reminder after an instant; None if quiet hours cover every evening."""
    first = today(after, zone_name) - DAY
    for ahead in range(DATES_AHEAD + 2):
        due = reminder_at(first + timedelta(days=ahead), zone_name, quiet)
        if due is not None and due > after:
            return due
    return None


def is_timely(due: datetime, now: datetime, zone_name: str, quiet: QuietHours | None) -> bool:
    """Whether a reminder that was due may still be sent: the same local date, and not quiet."""
    same_date = today(due, zone_name) == today(now, zone_name)
    return due <= now and same_date and not is_quiet(quiet, zone_name, now)


def at_risk(streak: Streak | None, cover: Cover, zone_name: str, now: datetime) -> int:
    """Return the length of a streak that is at risk today; 0 if none is.

    None is if today has activity or is paused, or if the streak has lapsed. zone_name: the zone of the
    streak's dates.
    """
    if streak is None:
        return 0
    shown = shown_streak(streak, cover, max(today(now, zone_name), streak.last))
    return shown.current if shown.status is StreakStatus.AT_RISK else 0


def reminder_partition(subscription_id: str) -> str:
    """Return the index partition that a subscription's reminders wait in."""
    return f"reminder#{zlib.crc32(subscription_id.encode()) % SHARDS}"


def reminder_partitions() -> list[str]:
    """Return all index partitions that reminders wait in."""
    return [f"reminder#{shard}" for shard in range(SHARDS)]
