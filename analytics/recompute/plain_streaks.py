"""The streak rule's common case for all users at once: no freezes, no pauses, no skipped dates.

Without these a missed date always ends the run, so rules.engagement.streaks.advance is a single comparison.
Curated files come by date, so nothing needs to be sorted: on each date, each active user takes one step. Work
grows with the rows, memory with the users.
"""

from collections.abc import Iterable
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from analytics.recompute.user_numbers import Codes
from rules.engagement.streaks import Cover, Streak, fold

EPOCH = date(1970, 1, 1)
NEVER = np.int32(-(2**31) + 2)  # stands for "no date yet": no real date, nor the day before one

Numbers = NDArray[np.int32]


def day_number(day: date) -> int:
    """Return a date as days since 1970."""
    return (day - EPOCH).days


class Runs:
    """Every user's newest date, run, longest run and number of active dates, indexed by the user's code.

    kept: the dates of users with a lower code are kept too, because `refold` needs them.
    """

    def __init__(self, kept: int = 0) -> None:
        self.kept = kept
        self.last: Numbers = np.empty(0, np.int32)
        self.length: Numbers = np.empty(0, np.int32)
        self.longest: Numbers = np.empty(0, np.int32)
        self.active_days: Numbers = np.empty(0, np.int32)
        self._dates: list[tuple[int, Codes]] = []

    def grow(self, users: int) -> None:
        """Make room for codes below `users`."""
        more = max(0, users - len(self.last))
        self.last = np.concatenate([self.last, np.full(more, NEVER)])
        self.length, self.longest, self.active_days = (
            np.concatenate([old, np.zeros(more, np.int32)])
            for old in (self.length, self.longest, self.active_days)
        )

    def advance(self, day: int, codes: Codes) -> None:
        """Count a date (days since 1970) for the users who were active on it. A user may come repeatedly.

        Dates must ascend. Raises ValueError if a later date was already counted for one of the users.
        """
        newest = self.last[codes]
        if newest.size and newest.max() > day:
            raise ValueError(f"{day} is out of order")
        if newest.size and newest.max() == day:
            codes, newest = codes[newest != day], newest[newest != day]
        length = np.where(newest == day - 1, self.length[codes] + 1, 1).astype(np.int32)
        self.last[codes] = day
        self.length[codes] = length
        self.longest[codes] = np.maximum(self.longest[codes], length)
        self.active_days[codes] += 1  # once, even for a code that comes twice
        if self.kept:
            self._dates.append((day, np.unique(codes[codes < self.kept])))

    def refold(self, covers: Iterable[Cover]) -> dict[int, Streak]:
        """Return the streaks of the kept users by code, folded by the rule itself.

        covers: of the kept users, in the order of their codes. A user without active dates is left out.
        """
        dates: dict[int, list[date]] = {}
        for day, codes in self._dates:
            for code in codes.tolist():
                dates.setdefault(code, []).append(EPOCH + timedelta(days=day))
        streaks = {code: fold(dates.get(code, ()), cover) for code, cover in enumerate(covers)}
        return {code: streak for code, streak in streaks.items() if streak}
