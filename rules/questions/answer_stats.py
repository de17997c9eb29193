"""A person's stats: a pure function of the set of their responses, whatever the order they come in.

What is kept is a join of the responses: sums by date and category, first dates, the newest zone. All
that shows - points, streak, badges - follows from it, so adding one response to what is kept gives
what all responses from scratch give.
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
    """Answers in one category, and the first date of one."""

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
        """All responses."""
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
    """Add responses that are not in yet."""
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
    # An earlier response may have named a zone that is further east: its date has begun.
    return streaks.effective(state, NO_COVER, max(as_of, state.last) if state else as_of)


def alias(fingerprint_hash: str) -> str:
    """Return the name that others see: it leads back to nobody."""
    return hashlib.sha256(f"alias\x00{fingerprint_hash}".encode()).hexdigest()[:8]
