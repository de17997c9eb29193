"""What caps leave of points (docs/rules.md, rule 5): the same in any order of arrival.

Each event has the cap of the version that judges it, so events of one date may have several. For each of
these caps, all events that have it or a lower one earn no more than it allows. Example: 60 points under a cap
of 100, then, under a new version's cap of 50, two events of 30. The first of them gets 30; the second, which
would bring those under the cap of 50 to 60, gets 10: 100 of 100 in all.

An event gets as much as every cap allows at the time when it is applied. Because the sets that the caps
speak of lie one inside the other, the sum comes out the same in any order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache

from rules.days import DAY


class Period(StrEnum):
    """What a cap counts over: an activity date, or the seven from a Monday (ISO 8601)."""

    DAY = "day"
    WEEK = "week"


@dataclass(frozen=True, slots=True)
class Cap:
    """The most points that a user's events of one type earn in a period."""

    points: int
    per: Period = Period.DAY

    def __hash__(self) -> int:  # asked for each entry (rules/engagement/proving/sealing.py)
        return self.points

    def last(self, day: date) -> date:
        """Return the last date of the period that a date is in: of a week its Sunday."""
        return day if self.per is Period.DAY else day + (7 - day.isoweekday()) * DAY

    @property
    def text(self) -> str:
        """The cap as it is stored: `100/day`."""
        return f"{self.points}/{self.per}"

    @staticmethod
    @lru_cache(maxsize=1024)  # each event and each entry names one of few
    def of(text: str | None) -> "Cap | None":
        """Read a stored cap; None where there is none. Raises ValueError for any other text."""
        points, _, per = (text or "").partition("/")
        return Cap(int(points), Period(per)) if text else None


def points_left(points: int, cap: int | None, earned: Mapping[int, int]) -> int:
    """Return the points that an event gets, from 0 to its own.

    cap: the event's, None for none. earned: what events of its type and period have earned so far, by cap.
    """
    if cap is None:
        return points
    left = points
    for limit in {cap, *(each for each in earned if each > cap)}:
        left = min(left, limit - sum(some for each, some in earned.items() if each <= limit))
    return max(0, left)


def total_points(points_by_cap: Mapping[int, int]) -> int:
    """Return what events of one type and period earn in all, by the caps that they have."""
    total = 0
    for cap in sorted(points_by_cap):
        total = min(cap, total + points_by_cap[cap])
    return total
