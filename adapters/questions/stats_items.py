"""A person's stats as attributes of the table UserStats, and back.

The newest dates are stored one by one, in `days`. All older dates are *settled*: no late answer can change
them, so only their sums are stored, in `settled`. `badge_days` has the dates of the badges, in their order,
and `category_days` the first dates of the categories, sorted by name.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from itertools import pairwise
from typing import Any

from rules.engagement.streak import Streak
from rules.questions.answer_stats import (
    BADGES,
    BadgeMeasure,
    Category,
    SettledDates,
    Stats,
    Tally,
    earned_badges,
)

OTHERS = "*"  # no category's name: stands among the categories for all that are not kept
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
TALLY_CHARACTERS = 4  # of each date in `days`: two digits in base 36 for its answers, two for its points
DATE_CHARACTERS = 4  # of each date in `badge_days` and `category_days`: its ordinal in base 36
# SettledDates has the badges that settled dates have earned, without those for categories: these follow from
# `category_days`.
_SETTLED_BADGES = {badge.name for badge in BADGES if badge.counted is not BadgeMeasure.CATEGORIES}


def stats_attributes(person: str, stats: Stats) -> dict[str, Any]:
    """Return stats as table attributes: less than 1 KB, however long a person has been answering.

    stats_from reads days, settled, badges with badge_days, answers_by_category with category_days, newest_at,
    zone and created_at. The other attributes are for readers of the table, as of the last activity date.
    """
    streak, names, badges = stats.streak, sorted(stats.categories), earned_badges(stats)
    answers = {name: stats.categories[name].answers for name in names}
    return {
        "fingerprint_hash": person,
        "total_points": stats.total_points,
        "total_answers": stats.total_answers,
        "streak_days": streak.length if streak else 0,
        "longest_streak_days": streak.longest if streak else 0,
        "streak_last_date": streak.last.isoformat() if streak else None,
        "badges": [badge.badge.name for badge in badges],
        "badge_days": _encode_dates(badge.earned_on for badge in badges),
        "answers_by_category": answers | ({OTHERS: stats.others} if stats.others else {}),
        "category_days": _encode_dates(stats.categories[name].first for name in names),
        "days": encode_days(stats.days),
        "settled": _settled_text(stats.settled),
        "created_at": stats.created_at or None,
        "newest_at": stats.newest[0],
        "zone": stats.newest[1],
    }


def stats_from(stored: Mapping[str, Any]) -> Stats:
    """Read what stats_attributes wrote; raises ValueError or KeyError for anything else."""
    days, newest = decode_days(stored["days"]), (stored["newest_at"], stored["zone"])
    answers = dict(stored["answers_by_category"])
    others = answers.pop(OTHERS, 0)
    first_dates = zip(sorted(answers), _decode_dates(stored["category_days"]), strict=True)
    categories = {name: Category(answers[name], first) for name, first in first_dates}
    earned = dict(zip(stored["badges"], _decode_dates(stored["badge_days"]), strict=True))
    settled = _settled_from(stored.get("settled"), earned)
    return Stats(days, categories, newest, settled, others, stored.get("created_at", ""))


def _settled_text(settled: SettledDates) -> str | None:
    """Return `answers:points:last:length:longest:active_days`; None: no date is settled.

    The last four are the streak's as of the last settled date, and `last` is that date's ordinal.
    """
    streak = settled.streak
    if streak is None:
        return None
    numbers = (streak.last.toordinal(), streak.length, streak.longest, streak.active_days)
    return ":".join(map(str, (settled.answers, settled.points, *numbers)))


def _settled_from(text: str | None, earned: Mapping[str, date]) -> SettledDates:
    """Read what _settled_text wrote. earned: all badges of the person, by name, with their dates."""
    if text is None:
        return SettledDates()
    answers, points, last, length, longest, active_days = map(int, text.split(":"))
    streak = Streak(date.fromordinal(last), length, longest, active_days)
    badges = {name: day for name, day in earned.items() if day <= streak.last and name in _SETTLED_BADGES}
    return SettledDates(answers, points, streak, badges)


def _encode_dates(days: Iterable[date]) -> str:
    """Return the ordinals of dates in base 36, one after the other."""
    return "".join(base36(day.toordinal(), DATE_CHARACTERS) for day in days)


def _decode_dates(text: str) -> list[date]:
    starts = range(0, len(text), DATE_CHARACTERS)
    return [date.fromordinal(int(text[start : start + DATE_CHARACTERS], 36)) for start in starts]


def encode_days(days: Mapping[date, Tally]) -> str:
    """Return dates as text: runs of dates without a gap, separated by commas.

    A run has its first date's ordinal, and two digits of answers and two of points for each date, in base 36.
    Example: 2 answers and 20 points on 2026-03-01 are `739676:020k`.
    """
    runs: list[str] = []
    for run in _runs(sorted(days)):
        tallies = (days[day] for day in run)
        texts = (base36(tally.answers, 2) + base36(tally.points, 2) for tally in tallies)
        runs.append(f"{run[0].toordinal()}:{''.join(texts)}")
    return ",".join(runs)


def decode_days(text: str) -> dict[date, Tally]:
    """Read what encode_days wrote; raises ValueError for any other text."""
    days: dict[date, Tally] = {}
    for run in text.split(",") if text else ():
        first, _, body = run.partition(":")
        if not body or len(body) % TALLY_CHARACTERS:
            raise ValueError(f"a run of dates is cut off: {run[:40]}")
        for start in range(0, len(body), TALLY_CHARACTERS):
            try:
                day = date.fromordinal(int(first) + start // TALLY_CHARACTERS)
            except OverflowError as error:
                raise ValueError(f"no date: {first[:40]}") from error
            days[day] = Tally(int(body[start : start + 2], 36), int(body[start + 2 : start + 4], 36))
    return days


def base36(number: int, characters: int) -> str:
    """Return a number in base 36, with leading zeros. A number with more digits would be cut off."""
    text = ""
    for _ in range(characters):
        number, digit = divmod(number, 36)
        text = DIGITS[digit] + text
    return text


def _runs(days: list[date]) -> Iterator[list[date]]:
    """Yield the dates in lists without a gap. days: ascending."""
    run = days[:1]
    for before, day in pairwise(days):
        if (day - before).days > 1:
            yield run
            run = []
        run.append(day)
    if run:
        yield run
