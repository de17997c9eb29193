"""How many dates a user pauses (docs/rules.md, rule 2)."""

from collections.abc import Iterable
from datetime import date, timedelta

YEAR = timedelta(days=365)


def paused_dates_a_year(pauses: Iterable[tuple[date, date]]) -> int:
    """Return how many dates are paused, at most, of any 365 in a row; a date in two pauses counts once."""
    paused = sorted(
        {first + timedelta(days=n) for first, last in pauses for n in range((last - first).days + 1)}
    )
    most = oldest = 0
    for newest, day in enumerate(paused):
        while paused[oldest] <= day - YEAR:
            oldest += 1
        most = max(most, newest - oldest + 1)
    return most
