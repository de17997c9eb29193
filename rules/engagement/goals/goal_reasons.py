"""Why a period counts for a streak that the book declares, or does not (docs/rules.md, rule 14)."""

from enum import StrEnum

from rules.engagement.goals.goal_streaks import (
    BY_PAUSES,
    Outcome,
    PastPeriods,
    fold_periods,
    is_neutral,
)
from rules.engagement.streaks import Cover


class PeriodReason(StrEnum):
    """Why a period counts or does not."""

    REACHED = "reached"
    FREEZE = "covered_by_freeze"
    PAUSE = "paused"
    SKIPPED = "skipped_by_zone"
    MISSED = "missed"
    OPEN = "not_over_yet"
    UNASKED = "not_asked"
    BEFORE = "before_first_period"


def explain_period(
    past: PastPeriods, letter: Outcome, cover: Cover, *, is_over: bool, is_asked: bool = True
) -> tuple[PeriodReason, int]:
    """Say why the period after some others counts or does not; and return the streak that it leaves.

    past: all before it. letter: what it comes to, or has come to so far. is_asked: whether the book asks
    anything of it.
    """
    before, after = fold_periods(past, cover), fold_periods(past.then(letter), cover)
    per, first = past.per, past.end
    if letter is Outcome.REACHED:
        reason = PeriodReason.REACHED
    elif letter is Outcome.UNASKED and (is_over or not is_asked):
        reason = PeriodReason.UNASKED
    elif is_neutral(per, first, cover, by_pauses=letter in BY_PAUSES):
        is_skipped = is_neutral(per, first, cover, by_pauses=False)
        reason = PeriodReason.SKIPPED if is_skipped else PeriodReason.PAUSE
    elif not is_over:
        return PeriodReason.OPEN, before.length
    elif not before.reached:
        reason = PeriodReason.BEFORE
    else:
        reason = PeriodReason.FREEZE if first in after.spent else PeriodReason.MISSED
    return reason, after.length
