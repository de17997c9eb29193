"""The streak rule's common case for all users at once: no freezes, no pauses, no skipped dates.

Without them a missed date always ends the run, and rules.engagement.streaks.advance comes down to one
comparison. Curated activity lies in files by date, so nothing needs to be sorted: date after date,
each user seen moves on by one step. Work grows with the rows, memory with the users.
"""

from collections.abc import Iterable
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from analytics.recompute.user_numbers import Codes
from rules.engagement.streaks import Cover, Streak, fold

EPOCH = date(1970, 1, 1)
NEVER = np.int32(-(2**31) + 2)  # neither the day before any date, nor a date

Numbers = NDArray[np.int32]


def day_number(day: date) -> int:
    """Return a date as days since 1970."""
    return (day - EPOCH).days


class Runs:
    """Every user's newest date, run, longest run and number of dates, by the user's code.

    kept: codes below it also keep their dates, for users whom the common case does not fit.
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
        """Add the users active on a date (days since 1970) that is not before the last one added.

        A user may come repeatedly. Raises ValueError for a date that comes too late.
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
        """Return the streaks of the first codes by the rule itself, under their covers."""
        dates: dict[int, list[date]] = {}
        for day, codes in self._dates:
            for code in codes.tolist():
                dates.setdefault(code, []).append(EPOCH + timedelta(days=day))
        streaks = {code: fold(dates.get(code, ()), cover) for code, cover in enumerate(covers)}
        return {code: streak for code, streak in streaks.items() if streak}
