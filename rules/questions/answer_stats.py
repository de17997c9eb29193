"""A person's stats: the same set of responses gives the same stats, in any order.

`Stats` keeps sums by date for the newest dates only (DATES_KEPT). What is older has been added up, with the
badges that it earned (`Settled`), so that stats stay small after many years. An answer of such a date cannot
be added any more: `add` raises TooOld, and the stats are made again from all responses. That is rare, because
a response gets its date when it arrives. Points, streak and badges all follow from the stats.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cached_property

from rules.days import today
from rules.engagement import streaks
from rules.questions.answer_days import ANSWERS_COUNTED_MAX, Tally
from rules.questions.badges import BADGES, BadgeMeasure
from rules.questions.responses import Response

NO_COVER = streaks.Cover()
# So many dates stay open, the newest included. Stream and failure queue keep a response for 15 at most.
DATES_KEPT = 16
# Answers are counted for so many categories: a person's first ones. Those in all others are one number.
CATEGORIES_KEPT = 9


class TooOld(Exception):
    """What this response would change has been added up: make the stats again from all responses."""


@dataclass(frozen=True, slots=True)
class Category:
    """Answers in one category: how many, and the date of the first one."""

    answers: int
    first: date


@dataclass(frozen=True, slots=True)
class Settled:
    """What the older dates come to. answers: 1,000 at most, which no badge exceeds. earned: badge -> date."""

    answers: int = 0
    points: int = 0
    streak: streaks.Streak | None = None
    earned: Mapping[str, date] = field(default_factory=dict)

    def plus(self, day: date, tally: Tally) -> "Settled":
        """Add a date that is later than all before."""
        answers = min(ANSWERS_COUNTED_MAX, self.answers + tally.answers)
        streak = streaks.advance(self.streak, day, NO_COVER)
        reached = {BadgeMeasure.ANSWERS: answers, BadgeMeasure.STREAK_DAYS: streak.longest}
        fresh = {
            badge.name: day
            for badge in BADGES
            if badge.name not in self.earned and reached.get(badge.counted, 0) >= badge.threshold
        }
        return Settled(answers, self.points + tally.points, streak, {**self.earned, **fresh})


@dataclass(frozen=True)
class Stats:
    """What is kept of one person.

    others: answers in categories that are not kept. newest: (created_at, zone) of the newest response.
    created_at: of the first one.
    """

    days: Mapping[date, Tally] = field(default_factory=dict)
    categories: Mapping[str, Category] = field(default_factory=dict)
    newest: tuple[str, str] = ("", "UTC")
    settled: Settled = Settled()
    others: int = 0
    created_at: str = ""

    @property
    def total_answers(self) -> int:
        """The number of responses."""
        return self.others + sum(each.answers for each in self.categories.values())

    @property
    def total_points(self) -> int:
        """Points of all dates, each under the daily cap."""
        return self.settled.points + sum(tally.points for tally in self.days.values())

    @cached_property
    def streak(self) -> streaks.Streak | None:
        """The run that ends with the last active date, by rule 2 without freezes; None without a date."""
        state = self.settled.streak
        for day in sorted(self.days):
            state = streaks.advance(state, day, NO_COVER)
        return state


def add(stats: Stats, responses: Iterable[Response]) -> Stats:
    """Return the stats with responses added; none of them may be in the stats already. Raises TooOld."""
    listed, days = list(responses), dict(stats.days)
    for each in sorted(listed, key=lambda response: (response.activity_date, response.category)):
        stats = _plus(stats, each)
    # A date has one cap, but for that on which caps came into the book. The lowest first, as for events.
    for each in sorted(listed, key=lambda response: response.day_points_max):
        tally = days.get(each.activity_date, Tally())
        days[each.activity_date] = tally.plus(each.points, each.day_points_max)
    return settle(replace(stats, days=days))


def _plus(stats: Stats, response: Response) -> Stats:
    """Add an answer to all but its date."""
    day, before = response.activity_date, stats.settled.streak
    if before and day <= before.last:
        raise TooOld(f"{day} has been added up")
    created_at = min(stats.created_at or response.created_at, response.created_at)
    newest = max(stats.newest, (response.created_at, response.zone))
    name, categories = response.category, stats.categories
    held = categories.get(name)
    if held is None and len(categories) >= CATEGORIES_KEPT:
        if (day, name) < max((each.first, kept) for kept, each in categories.items()):
            raise TooOld(f"{name} is among the first categories")
        return replace(stats, newest=newest, others=stats.others + 1, created_at=created_at)
    counted = Category(held.answers + 1, min(held.first, day)) if held else Category(1, day)
    return replace(stats, categories={**categories, name: counted}, newest=newest, created_at=created_at)


def settle(stats: Stats) -> Stats:
    """Add up the dates that are too old to be kept one by one."""
    if not stats.days:
        return stats
    first_kept = max(stats.days) - timedelta(days=DATES_KEPT - 1)
    settled, days = stats.settled, dict(stats.days)
    for day in sorted(each for each in stats.days if each < first_kept):
        settled = settled.plus(day, days.pop(day))
    return replace(stats, settled=settled, days=days)


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
