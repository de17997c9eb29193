"""Rule 26, read again: the streak of two friends told from nothing but dates. Slow and plain.

Imports nothing of the product.
"""

from collections.abc import Collection
from datetime import date, datetime

from tests.oracle.streak_reading import DAY, Protection, every_date, told

Person = tuple[Collection[date], Protection]  # active dates, and what protects them


def friend_streak(one: Person, other: Person, began: datetime, today: date) -> int:
    """The length on the pair's today. began: in UTC."""
    length = 0
    for day in every_date(began.date(), today):
        # As of the next date, this one is over: it is a miss of whoever was not active and had no cover.
        reasons = [told(dates, guard, day + DAY).reasons.get(day, "missed") for dates, guard in (one, other)]
        if reasons == ["counted", "counted"]:
            length += 1
        elif "missed" in reasons and day < today:
            length = 0
    return length
