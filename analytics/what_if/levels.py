"""How many users would be on each level of the book.

A level follows from the points ever earned, and from the book in force at the instant of the question.
"""

from datetime import datetime

from analytics.what_if.figures import Figures, LevelUsers
from analytics.what_if.timeline import Timeline
from rules.book.levels import standing_of


class CountedLevels:
    """Counts users into the levels of figures."""

    def __init__(self, timeline: Timeline, now: datetime, figures: Figures) -> None:
        """Set the levels of `figures`: of the predicted book from the lowest, then those that it lacks."""
        self._before, self._after = timeline.real_at(now).levels, timeline.book_at(now).levels
        self._users: dict[str | None, LevelUsers] = {}
        if self._before or self._after:
            self._users[None] = LevelUsers(None)
        for level in (*self._after, *self._before):
            self._users.setdefault(level.name, LevelUsers(level.name, level.title))
        figures.levels = list(self._users.values())

    def count(self, earned_before: int, earned_after: int) -> None:
        """Count a user. earned_before, earned_after: points ever earned."""
        if self._users:
            before, after = (
                standing_of(levels, earned).level
                for levels, earned in ((self._before, earned_before), (self._after, earned_after))
            )
            self._users[before.name if before else None].before += 1
            self._users[after.name if after else None].after += 1
