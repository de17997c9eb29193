"""Why a date counts for a streak or does not (docs/rules.md, rule 2)."""

from datetime import date
from enum import StrEnum

from rules.engagement.streaks import DAY, Cover, Streak, effective, walk


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


def explain(upto: Streak | None, cover: Cover, asked: date, today: date) -> tuple[DateReason, int]:
    """Say why a date counts or does not; and return the streak that it leaves, 0 after a miss before it.

    upto: the streak with the active dates up to the one that is asked about.
    """
    if upto is None:
        return DateReason.BEFORE, 0
    length = effective(upto, cover, asked).current
    if asked == upto.last:
        return DateReason.COUNTED, length
    if asked in cover.skipped:
        return DateReason.SKIPPED, length
    if cover.is_neutral(asked):
        return DateReason.PAUSE, length
    if asked >= today:
        return DateReason.OPEN, length
    # Later activity does not change which freezes were used before it, so this walk decides.
    _, spent = walk(upto.spent, upto.last, asked + DAY, cover)
    return (DateReason.FREEZE, length) if asked in spent else (DateReason.MISSED, 0)
