"""Repairs (rule 2), read again: tries what a user would have to repair, one date after the other. Slow and plain.

Imports nothing of the product.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import date, timedelta

from tests.oracle.streak_reading import Protection, told

DAY = timedelta(days=1)


@dataclass(frozen=True)
class RepairTerms:
    """What a book says of repairs."""

    price_points: int
    within_days: int
    dates_max: int
    a_year: int


def repairable(
    active: Collection[date],
    protection: Protection,
    repaired: Collection[date],
    terms: RepairTerms,
    today: date,
) -> tuple[list[date], date] | None:
    """The dates that a user may repair, and the last date for that; None for nothing.

    repaired: the dates that the user has repaired before, and has no points back for.
    """
    found = _lacking(active, protection, today)
    if not found:
        return None
    first = found[0]
    since = [day for day in active if day > first]
    is_second = bool(since) and any(day > min(since) for day in repaired)
    if is_second or today > first + terms.within_days * DAY or not _are_few(found, repaired, terms):
        return None
    until = today
    while until < first + terms.within_days * DAY:
        tomorrow = _lacking(active, protection, until + DAY)
        if not tomorrow or tomorrow[0] != first or not _are_few(tomorrow, repaired, terms):
            break
        until += DAY
    return found, until


def _are_few(found: list[date], repaired: Collection[date], terms: RepairTerms) -> bool:
    """Whether a repair may cover so many dates, and every year that has one of them so many more."""
    days = [*repaired, *found]
    years = [{day + number * DAY for number in range(365)} for day in days]
    touched = [sum(day in year for day in days) for year in years if year & set(found)]
    return len(found) <= terms.dates_max and max(touched) <= terms.a_year


def _lacking(active: Collection[date], protection: Protection, today: date) -> list[date] | None:
    """The dates for which a user must have had a freeze more, so that the newest run to end would go on."""
    found: list[date] = []
    since: date | None = None
    while True:
        changes = (*protection.changes, *((day, +1) for day in found))
        walked = told(active, replace(protection, changes=changes), today)
        ends = [
            day
            for day, reason in walked.reasons.items()
            if reason == "missed" and day < today and walked.lengths.get(day - DAY)
        ]
        since = since or max(ends, default=None)
        ends = [day for day in ends if since and day >= since]
        if not ends:
            return found or None
        if ends[0] in found:
            return None  # a debt of freezes has swallowed it
        found.append(ends[0])
