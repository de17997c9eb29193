"""What a person did on each date, as one short text: four characters a date.

Kept for every date, because a late answer may still raise a date's points (up to the cap), join two
runs, or move the date on which a badge was earned.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from rules.questions.answer_points import DAILY_POINTS_MAX

# More on one date changes no badge: none asks for more answers than this.
ANSWERS_COUNTED_MAX = 1_000
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
CHARACTERS = 4


@dataclass(frozen=True, slots=True)
class Tally:
    """One date: answers, and points under the daily cap.

    Both saturate. Adding to a saturated sum and saturating again gives what saturating the whole sum
    gives, so nothing more needs to be kept, in whatever order answers come.
    """

    answers: int = 0
    points: int = 0

    def plus(self, points: int) -> "Tally":
        """Add one answer."""
        return Tally(min(ANSWERS_COUNTED_MAX, self.answers + 1), min(DAILY_POINTS_MAX, self.points + points))


def encode(days: Mapping[date, Tally]) -> str:
    """Write dates as runs: `{first date's ordinal}:{answers, points of each date}`, by commas."""
    return ",".join(
        f"{run[0].toordinal()}:" + "".join(_two(days[day].answers) + _two(days[day].points) for day in run)
        for run in _runs(sorted(days))
    )


def decode(text: str) -> dict[date, Tally]:
    """Undo encode(); raises ValueError for what it did not write."""
    days: dict[date, Tally] = {}
    for run in text.split(",") if text else ():
        first, _, body = run.partition(":")
        if not body or len(body) % CHARACTERS:
            raise ValueError(f"a run of dates is cut off: {run[:40]}")
        for place in range(0, len(body), CHARACTERS):
            day = date.fromordinal(int(first) + place // CHARACTERS)
            days[day] = Tally(int(body[place : place + 2], 36), int(body[place + 2 : place + 4], 36))
    return days


def _runs(days: list[date]) -> Iterator[list[date]]:
    run = days[:1]
    for before, day in pairwise(days):
        if (day - before).days > 1:
            yield run
            run = []
        run.append(day)
    if run:
        yield run


def _two(number: int) -> str:
    return DIGITS[number // 36] + DIGITS[number % 36]
