"""A person's stats: the same set of responses gives the same stats, in any order.

`Stats` keeps sums by date and category, each category's first date, and the newest zone. Points, streak and
badges all follow from these. So adding one response to stored stats gives the same as starting again with all
responses.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property

from rules.days import today
from rules.engagement import streaks
from rules.questions.answer_days import Tally
from rules.questions.responses import Response

NO_COVER = streaks.Cover()


@dataclass(frozen=True, slots=True)
class Category:
    """Answers in one category: how many, and the date of the first one."""

    answers: int
    first: date


@dataclass(frozen=True)
class Stats:
    """What is kept of one person. newest: (created_at, zone) of the newest response."""

    days: Mapping[date, Tally] = field(default_factory=dict)
    categories: Mapping[str, Category] = field(default_factory=dict)
    newest: tuple[str, str] = ("", "UTC")

    @property
    def answers(self) -> int:
        """The number of responses."""
        return sum(each.answers for each in self.categories.values())

    @property
    def total_points(self) -> int:
        """Points of all dates, each under the daily cap."""
        return sum(tally.points for tally in self.days.values())

    @cached_property
    def streak(self) -> streaks.Streak | None:
        """The run that ends with the last active date, by rule 2 without freezes; None without a date."""
        return streaks.fold(self.days, NO_COVER)


def add(stats: Stats, responses: Iterable[Response]) -> Stats:
    """Return the stats with responses added; none of them may be in the stats already."""
    days, categories, newest = dict(stats.days), dict(stats.categories), stats.newest
    for each in responses:
        days[each.activity_date] = days.get(each.activity_date, Tally()).plus(each.points)
        held = categories.get(each.category, Category(0, each.activity_date))
        categories[each.category] = Category(held.answers + 1, min(held.first, each.activity_date))
        newest = max(newest, (each.created_at, each.zone))
    return Stats(days, categories, newest)


def fold(responses: Iterable[Response]) -> Stats:
    """Return the stats of a set of responses; one that comes twice counts once."""
    return add(Stats(), {each.key: each for each in responses}.values())


def streak_now(stats: Stats, now: datetime) -> streaks.ShownStreak:
    """Return the streak as it shows at an instant, on the local date of the newest response's zone."""
    state, as_of = stats.streak, today(now, stats.newest[1])
    # An earlier response may have named a zone further east, where the next date had begun already.
    return streaks.effective(state, NO_COVER, max(as_of, state.last) if state else as_of)


def alias(fingerprint_hash: str) -> str:
    """Return the name under which others see a person; it does not tell who the person is."""
    return hashlib.sha256(f"alias\x00{fingerprint_hash}".encode()).hexdigest()[:8]
