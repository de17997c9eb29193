"""A person's stats: points, streak, answers by category, and the badges that follow from them.

The same set of responses gives the same stats, in whatever order they are added.
processors/questions/answers.py adds them.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from itertools import accumulate

from rules.days import DayStarts, local_date
from rules.engagement import streak as streaks
from rules.engagement.boards import pseudonym
from rules.questions.responses import Response

NO_COVER = streaks.Cover()
# The newest dates are kept one by one, so many of them. The sums of all older dates are SettledDates. A
# response is at most 15 dates late, because stream and failure queue keep it no longer.
DATES_KEPT = 16
# Answers are counted by category for a person's first categories, so many of them. Those in all other
# categories are one number.
CATEGORIES_KEPT = 9
# At most 36**2 - 1, because two digits hold it (DAY_POINTS_LIMIT keeps points within two digits, too). More
# answers on one date change no badge, because no badge asks for more.
ANSWERS_COUNTED_MAX = 1_000
# The value of a badge's measure at the end of each date, oldest first.
Progress = Iterator[tuple[date, int]]


@dataclass(frozen=True, slots=True)
class Tally:
    """The answers of one date, and their points under the daily cap.

    Both numbers stop at a maximum, so the order of answers does not matter. Example: with a cap of 150,
    answers of 100, 80 and 30 points make 150 in any order.
    """

    answers: int = 0
    points: int = 0

    def plus(self, points: int, cap: int) -> "Tally":
        """Return the tally with one answer more. cap: the most points of the date, as the answer has it."""
        # A lower cap than that of an earlier answer takes no points away.
        capped = max(self.points, min(cap, self.points + points))
        return Tally(min(ANSWERS_COUNTED_MAX, self.answers + 1), capped)


class BadgeMeasure(StrEnum):
    """What of a person's answers a badge counts."""

    ANSWERS = "answers"
    STREAK_DAYS = "streak_days"  # of the longest streak
    CATEGORIES = "categories"


@dataclass(frozen=True, slots=True)
class Badge:
    """A badge. A person earns it on the date on which what it counts first reaches its threshold."""

    name: str
    title: str  # what people see
    counted: BadgeMeasure
    threshold: int


BADGES = (
    Badge("first_answer", "First answer", BadgeMeasure.ANSWERS, 1),
    Badge("answers_10", "10 answers", BadgeMeasure.ANSWERS, 10),
    Badge("answers_100", "100 answers", BadgeMeasure.ANSWERS, 100),
    Badge("answers_1000", "1,000 answers", BadgeMeasure.ANSWERS, 1_000),
    Badge("streak_7", "A week without a gap", BadgeMeasure.STREAK_DAYS, 7),
    Badge("streak_30", "30 days without a gap", BadgeMeasure.STREAK_DAYS, 30),
    Badge("streak_100", "100 days without a gap", BadgeMeasure.STREAK_DAYS, 100),
    Badge("categories_5", "Answers in 5 categories", BadgeMeasure.CATEGORIES, 5),
)


class ResponseTooOld(Exception):
    """A response would change dates that are only kept as sums. The stats must be made from all responses."""


@dataclass(frozen=True, slots=True)
class Category:
    """A person's answers in one category."""

    answers: int  # how many
    first: date  # the date of the first answer


@dataclass(frozen=True, slots=True)
class SettledDates:
    """The sums of the dates that are no longer kept one by one."""

    answers: int = 0  # ANSWERS_COUNTED_MAX at most
    points: int = 0
    streak: streaks.Streak | None = None  # as of the last of these dates; None: there are no such dates yet
    earned: Mapping[str, date] = field(default_factory=dict)  # by the badge's name, the date

    def plus(self, day: date, tally: Tally) -> "SettledDates":
        """Return the sums with one date more, which must be later than all before."""
        answers = min(ANSWERS_COUNTED_MAX, self.answers + tally.answers)
        streak = streaks.advance(self.streak, day, NO_COVER)
        reached = {BadgeMeasure.ANSWERS: answers, BadgeMeasure.STREAK_DAYS: streak.longest}
        new_badges = {
            badge.name: day
            for badge in BADGES
            if badge.name not in self.earned and reached.get(badge.counted, 0) >= badge.threshold
        }
        return SettledDates(answers, self.points + tally.points, streak, {**self.earned, **new_badges})


@dataclass(frozen=True)
class Stats:
    """The stats of one person."""

    days: Mapping[date, Tally] = field(default_factory=dict)  # the dates that are kept one by one
    categories: Mapping[str, Category] = field(default_factory=dict)  # by name, those that are kept
    newest: tuple[str, str] = ("", "UTC")  # (created_at, zone) of the newest response
    settled: SettledDates = SettledDates()
    others: int = 0  # the number of answers in all other categories
    created_at: str = ""  # of the first response

    @property
    def total_answers(self) -> int:
        """The number of responses."""
        return self.others + sum(category.answers for category in self.categories.values())

    @property
    def total_points(self) -> int:
        """Points of all dates, each under the daily cap."""
        return self.settled.points + sum(tally.points for tally in self.days.values())

    @cached_property
    def streak(self) -> streaks.Streak | None:
        """The streak on the last date with an answer, by rule 2 without freezes; None without an answer."""
        state = self.settled.streak
        for day in sorted(self.days):
            state = streaks.advance(state, day, NO_COVER)
        return state


def add_responses(stats: Stats, responses: Iterable[Response]) -> Stats:
    """Return the stats with responses added; none may be in them already. Raises ResponseTooOld."""
    responses, days = list(responses), dict(stats.days)
    for response in sorted(responses, key=lambda each: (each.activity_date, each.category)):
        stats = _with_response(stats, response)
    # Answers of one date have the same cap, except on the date on which caps came into the book. On that date
    # the answers with the lowest cap are added first, as for events, so that the result does not depend on
    # the order.
    for response in sorted(responses, key=lambda each: each.day_points_max):
        tally = days.get(response.activity_date, Tally())
        days[response.activity_date] = tally.plus(response.points, response.day_points_max)
    return settle_dates(replace(stats, days=days))


def settle_dates(stats: Stats) -> Stats:
    """Return the stats with the dates that are too old to be kept one by one added to the sums."""
    if not stats.days:
        return stats
    first_kept = max(stats.days) - timedelta(days=DATES_KEPT - 1)
    settled, days = stats.settled, dict(stats.days)
    for day in sorted(day for day in stats.days if day < first_kept):
        settled = settled.plus(day, days.pop(day))
    return replace(stats, settled=settled, days=days)


def fold_responses(responses: Iterable[Response]) -> Stats:
    """Return the stats of responses. A response that is among them twice counts once."""
    return add_responses(Stats(), {response.key: response for response in responses}.values())


def streak_now(stats: Stats, now: datetime, starts: DayStarts) -> streaks.ShownStreak:
    """Return the streak as it shows at an instant, on the local date of the newest response's zone.

    starts: when dates begin (Books.day_starts).
    """
    _, zone_name = stats.newest
    state, as_of = stats.streak, local_date(now, zone_name, starts)
    # An earlier response may have named a zone further east, where the next date had begun already.
    return streaks.shown_streak(state, NO_COVER, max(as_of, state.last) if state else as_of)


def person_alias(fingerprint_hash: str) -> str:
    """Return the name under which others see a person; it does not reveal who the person is."""
    return pseudonym(hashlib.sha256(f"alias\x00{fingerprint_hash}".encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class EarnedBadge:
    """A badge that a person has."""

    badge: Badge
    earned_on: date


def earned_badges(stats: Stats, badges: Sequence[Badge] = BADGES) -> list[EarnedBadge]:
    """Return the badges that a person has earned, in the order of `badges`."""
    progress = {
        BadgeMeasure.ANSWERS: list(_answers_by_date(stats)),
        BadgeMeasure.STREAK_DAYS: list(_longest_streak_by_date(stats)),
        BadgeMeasure.CATEGORIES: list(_categories_by_date(stats)),
    }
    earned = []
    for badge in badges:
        reached = (day for day, count in progress[badge.counted] if count >= badge.threshold)
        if earned_on := stats.settled.earned.get(badge.name) or next(reached, None):
            earned.append(EarnedBadge(badge, earned_on))
    return earned


def _with_response(stats: Stats, response: Response) -> Stats:
    """Return the stats with a response added to everything but the tally of its date."""
    day, settled_streak = response.activity_date, stats.settled.streak
    if settled_streak and day <= settled_streak.last:
        raise ResponseTooOld(f"{day} has been added up")
    created_at = min(stats.created_at or response.created_at, response.created_at)
    newest = max(stats.newest, (response.created_at, response.zone))
    name, categories = response.category, stats.categories
    stored = categories.get(name)
    if stored is None and len(categories) >= CATEGORIES_KEPT:
        if (day, name) < max((category.first, kept_name) for kept_name, category in categories.items()):
            raise ResponseTooOld(f"{name} is among the first categories")
        return replace(stats, newest=newest, others=stats.others + 1, created_at=created_at)
    category = Category(stored.answers + 1, min(stored.first, day)) if stored else Category(1, day)
    return replace(stats, categories={**categories, name: category}, newest=newest, created_at=created_at)


def _answers_by_date(stats: Stats) -> Progress:
    days = sorted(stats.days)
    counts = accumulate((stats.days[day].answers for day in days), initial=stats.settled.answers)
    next(counts)  # the initial value, before the first date
    return zip(days, counts, strict=True)


def _longest_streak_by_date(stats: Stats) -> Progress:
    state = stats.settled.streak
    for day in sorted(stats.days):
        state = streaks.advance(state, day, NO_COVER)
        yield day, state.longest


def _categories_by_date(stats: Stats) -> Progress:
    firsts = sorted(category.first for category in stats.categories.values())
    return ((first, number) for number, first in enumerate(firsts, 1))
