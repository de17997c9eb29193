"""What boards count: the points of a period, by user (docs/rules.md, rule 25).

A profile has its points of the periods that are not final, and for two weeks of those that are. They are a
fold of the ledger's entries, so a profile that is made again has the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rules.book.daily import DailyTerms
from rules.days import unstamp
from rules.engagement.ledger import EARNING, Entry
from rules.engagement.packed_dates import pack_counts, unpack_counts
from rules.engagement.periods import Period, counted_until, counting_periods, ends_at, final_at

# Leagues close so long after their week has ended everywhere: on Monday at 18:00 UTC.
CLOSES_AFTER = timedelta(hours=6)
OPENING_TYPE = "OPENING_BALANCE"  # points from another system, which nobody has earned in a period


@dataclass(frozen=True, slots=True, order=True)
class PeriodPoints:
    """A user's points of one period."""

    period: Period
    points: int  # of entries that were written before the period was final
    # Those of `points` that came CLOSES_AFTER the period's end, or later; below 0 if more was taken back then
    late: int = 0


def with_period_points(
    counted: tuple[PeriodPoints, ...], entries: Sequence[Entry], terms: DailyTerms
) -> tuple[PeriodPoints, ...]:
    """Count later entries into the points of periods. terms: what the books say (Books.daily_terms).

    An entry counts in the periods that have its activity date, if its place is before they are final. Periods
    that are no longer kept as of the last entry are left out. So any split of the entries leads to the same.
    """
    if not entries or not any(rules.boards for _, rules in terms):
        return counted
    by_period = {each.period: each for each in counted}
    for entry in entries:
        draft = entry.draft
        if not is_counted(entry):
            continue
        written_at = unstamp(entry.created_at)
        for period in counting_periods(draft.day, terms):
            if written_at >= final_at(period, terms):
                continue
            is_late = written_at >= ends_at(period, terms) + CLOSES_AFTER
            before = by_period.get(period, PeriodPoints(period, 0))
            by_period[period] = replace(
                before, points=before.points + draft.points, late=before.late + is_late * draft.points
            )
    newest = unstamp(entries[-1].created_at)
    kept = (each for each in by_period.values() if newest < counted_until(each.period, terms))
    return tuple(sorted(each for each in kept if each.points or each.late))


def is_counted(entry: Entry) -> bool:
    """Whether boards count an entry at all."""
    draft = entry.draft
    return draft.kind in EARNING and bool(draft.activity_date) and draft.event_type != OPENING_TYPE


def final_points(entries: Iterable[Entry], period: Period, final: datetime) -> int:
    """Return the points of a period that is final. entries: at least those from its beginning to `final`."""
    return sum(
        entry.draft.points
        for entry in entries
        if is_counted(entry) and period.has(entry.draft.day) and unstamp(entry.created_at) < final
    )


def points_in(counted: Iterable[PeriodPoints], period: Period) -> int:
    """Return the points of a period; 0 if there are none."""
    return next((each.points for each in counted if each.period == period), 0)


def pack_period_points(counted: Iterable[PeriodPoints]) -> str:
    """Return points of periods as a text: `2026-11-02+340 7+120+5` (packed_dates.py)."""
    return pack_counts((each.period.first, each.period.last, each.points, each.late) for each in counted)


def unpack_period_points(text: str) -> tuple[PeriodPoints, ...]:
    """Read what pack_period_points wrote; raises ValueError for another text."""
    return tuple(
        PeriodPoints(Period(first, last), points, late) for first, last, points, late in unpack_counts(text)
    )
