"""What a user may take for nothing, and what costs (docs/rules.md, rule 2): freezes and pauses."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

YEAR = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class FreezeTerms:
    """free_a_month: freezes for nothing in a month (UTC). price_points: what each further one costs."""

    price_points: int
    free_a_month: int

    def price(self, taken_free: int) -> int:
        """Return what the next freeze costs, if so many were taken for nothing this month."""
        return 0 if taken_free < self.free_a_month else self.price_points


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
