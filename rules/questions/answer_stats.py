"""A person's stats, and the badges that follow from them. The same set of responses gives the same stats, in
any order. processors/questions/answers.py counts responses in.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from itertools import accumulate, pairwise

from rules.days import today
from rules.engagement import streak as streaks
from rules.engagement.boards import pseudonym
from rules.questions.responses import Response

# More answers on one date change no badge, because no badge asks for more.
ANSWERS_COUNTED_MAX = 1_000
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
CHARACTERS = 4  # that a date takes in the text of dates
NO_COVER = streaks.Cover()
# This many dates stay open, the newest included. Stream and failure queue keep a response for 15 at most.
DATES_KEPT = 16
# Answers are counted for this many categories: a person's first ones. Those in all others are one number.
CATEGORIES_KEPT = 9


@dataclass(frozen=True, slots=True)
class Tally:
    """One date: answers, and points under the daily cap.

    Both stop at a maximum. Stopping after each answer gives the same as stopping once at the end, so the
    order of answers does not matter. Example: with a cap of 150, answers of 100, 80 and 30 points make 150 in
    any order.
    """

    answers: int = 0
    points: int = 0

    def plus(self, points: int, cap: int) -> "Tally":
        """Add one answer. cap: the date's, which all of its answers name; none takes away what is there."""
        capped = max(self.points, min(cap, self.points + points))
        return Tally(min(ANSWERS_COUNTED_MAX, self.answers + 1), capped)


def encode_days(days: Mapping[date, Tally]) -> str:
    """Write dates as runs, separated by commas: `{first date's ordinal}:{four characters for each date}`.

    The four characters are two digits for the answers and two for the points, in base 36. Example: 2 answers
    and 20 points on 2026-03-01 are `739676:020k`.
    """
    return ",".join(
        f"{run[0].toordinal()}:" + "".join(_two(days[day].answers) + _two(days[day].points) for day in run)
        for run in _runs(sorted(days))
    )


def decode_days(text: str) -> dict[date, Tally]:
    """Read what encode_days wrote; raises ValueError for any other text."""
    days: dict[date, Tally] = {}
    for run in text.split(",") if text else ():
        first, _, body = run.partition(":")
        if not body or len(body) % CHARACTERS:
            raise ValueError(f"a run of dates is cut off: {run[:40]}")
        for start in range(0, len(body), CHARACTERS):
            day = date.fromordinal(int(first) + start // CHARACTERS)
            days[day] = Tally(int(body[start : start + 2], 36), int(body[start + 2 : start + 4], 36))
    return days


def _runs(days: list[date]) -> Iterator[list[date]]:
    """Yield the longest runs of dates without a gap. days: ascending."""
    run = days[:1]
    for before, day in pairwise(days):
        if (day - before).days > 1:
            yield run
            run = []
        run.append(day)
    if run:
        yield run


def base36(number: int, characters: int) -> str:
    """Write a number in base 36 with leading zeros."""
    text = ""
    for _ in range(characters):
        number, digit = divmod(number, 36)
        text = DIGITS[digit] + text
    return text


def _two(number: int) -> str:
    return base36(number, 2)


class BadgeMeasure(StrEnum):
    """What a badge counts."""

    ANSWERS = "answers"
    STREAK_DAYS = "streak_days"
    CATEGORIES = "categories"


@dataclass(frozen=True, slots=True)
class Badge:
    """A person earns it on the date on which `counted` first reaches `threshold`."""

    name: str
    title: str
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


@dataclass(frozen=True, slots=True)
class EarnedBadge:
    """A badge that a person has."""

    badge: Badge
    earned_on: date


# How far a measure of badges has come on each date, oldest first.
Progress = Iterator[tuple[date, int]]


def earned_badges(stats: "Stats", badges: Sequence[Badge] = BADGES) -> list[EarnedBadge]:
    """Return the badges earned, in the table's order."""
    progress = {
        BadgeMeasure.ANSWERS: list(_answers(stats)),
        BadgeMeasure.STREAK_DAYS: list(_longest(stats)),
        BadgeMeasure.CATEGORIES: list(_categories(stats)),
    }
    earned = []
    for badge in badges:
        reached = (day for day, count in progress[badge.counted] if count >= badge.threshold)
        if earned_on := stats.settled.earned.get(badge.name) or next(reached, None):
            earned.append(EarnedBadge(badge, earned_on))
    return earned


def _answers(stats: "Stats") -> Progress:
    days = sorted(stats.days)
    counts = accumulate((stats.days[day].answers for day in days), initial=stats.settled.answers)
    next(counts)
    return zip(days, counts, strict=True)


def _longest(stats: "Stats") -> Progress:
    state = stats.settled.streak
    for day in sorted(stats.days):
        state = streaks.advance(state, day, NO_COVER)
        yield day, state.longest


def _categories(stats: "Stats") -> Progress:
    firsts = sorted(category.first for category in stats.categories.values())
    return ((first, number) for number, first in enumerate(firsts, 1))


class ResponseTooOld(Exception):
    """A response would change dates that have been added up: the stats must be made from all responses."""


@dataclass(frozen=True, slots=True)
class Category:
    """Answers in one category: how many, and the date of the first one."""

    answers: int
    first: date


@dataclass(frozen=True, slots=True)
class SettledDates:
    """The sums of the dates that are no longer kept one by one."""

    answers: int = 0  # 1,000 at most, which no badge exceeds
    points: int = 0
    streak: streaks.Streak | None = None
    earned: Mapping[str, date] = field(default_factory=dict)  # badge -> date

    def plus(self, day: date, tally: Tally) -> "SettledDates":
        """Add a date that is later than all before."""
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

    days: Mapping[date, Tally] = field(default_factory=dict)
    categories: Mapping[str, Category] = field(default_factory=dict)
    newest: tuple[str, str] = ("", "UTC")  # (created_at, zone) of the newest response
    settled: SettledDates = SettledDates()
    others: int = 0  # answers in categories that are not kept
    created_at: str = ""  # of the first one

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
        """The run that ends with the last active date, by rule 2 without freezes; None without a date."""
        state = self.settled.streak
        for day in sorted(self.days):
            state = streaks.advance(state, day, NO_COVER)
        return state


def add_responses(stats: Stats, responses: Iterable[Response]) -> Stats:
    """Return the stats with responses added; none may be in them already. Raises ResponseTooOld."""
    responses, days = list(responses), dict(stats.days)
    for response in sorted(responses, key=lambda each: (each.activity_date, each.category)):
        stats = _with_response(stats, response)
    # Answers of one date share a cap, except on the day on which caps came into the book. So the lowest is
    # applied first, as for events.
    for response in sorted(responses, key=lambda each: each.day_points_max):
        tally = days.get(response.activity_date, Tally())
        days[response.activity_date] = tally.plus(response.points, response.day_points_max)
    return settle_dates(replace(stats, days=days))


def _with_response(stats: Stats, response: Response) -> Stats:
    """Add an answer to all but its date."""
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


def settle_dates(stats: Stats) -> Stats:
    """Add up the dates that are too old to be kept one by one."""
    if not stats.days:
        return stats
    first_kept = max(stats.days) - timedelta(days=DATES_KEPT - 1)
    settled, days = stats.settled, dict(stats.days)
    for day in sorted(day for day in stats.days if day < first_kept):
        settled = settled.plus(day, days.pop(day))
    return replace(stats, settled=settled, days=days)


def fold_responses(responses: Iterable[Response]) -> Stats:
    """Return the stats of a set of responses; one that comes twice counts once."""
    return add_responses(Stats(), {response.key: response for response in responses}.values())


def streak_now(stats: Stats, now: datetime) -> streaks.ShownStreak:
    """Return the streak as it shows at an instant, on the local date of the newest response's zone."""
    state, as_of = stats.streak, today(now, stats.newest[1])
    # An earlier response may have named a zone further east, where the next date had begun already.
    return streaks.shown_streak(state, NO_COVER, max(as_of, state.last) if state else as_of)


def person_alias(fingerprint_hash: str) -> str:
    """Return the name under which others see a person; it does not reveal who the person is."""
    return pseudonym(hashlib.sha256(f"alias\x00{fingerprint_hash}".encode()).hexdigest())
