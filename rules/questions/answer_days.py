"""A person's answers and points by date, as one short text: four characters a date.

UserStats keeps the newest dates, because a late answer may still raise a date's points, join two runs, or
move the date on which a badge was earned. Example: 2 answers and 20 points on 2026-03-01 are `739676:020k`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

# More answers on one date change no badge, because no badge asks for more.
ANSWERS_COUNTED_MAX = 1_000
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
CHARACTERS = 4


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


def encode(days: Mapping[date, Tally]) -> str:
    """Write dates as runs, separated by commas: `{first date's ordinal}:{four characters for each date}`.

    The four characters are two digits for the answers and two for the points, in base 36.
    """
    return ",".join(
        f"{run[0].toordinal()}:" + "".join(_two(days[day].answers) + _two(days[day].points) for day in run)
        for run in _runs(sorted(days))
    )


def decode(text: str) -> dict[date, Tally]:
    """Read what encode() wrote; raises ValueError for any other text."""
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


def base36(number: int, characters: int) -> str:
    """Write a number in base 36 with leading zeros."""
    text = ""
    for _ in range(characters):
        number, digit = divmod(number, 36)
        text = DIGITS[digit] + text
    return text


def _two(number: int) -> str:
    return base36(number, 2)
