"""A person's answers and points of each date, and the text in which they are stored."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

# At most 36**2 - 1, because two digits hold it (DAY_POINTS_LIMIT keeps points within two digits, too). More
# answers on one date change no badge, because no badge asks for more.
ANSWERS_COUNTED_MAX = 1_000
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
CHARACTERS = 4  # of a date in the stored text: two digits for the answers, two for the points


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


def encode_days(days: Mapping[date, Tally]) -> str:
    """Return dates as text. Dates without a gap are a run, and runs are separated by commas.

    A run is `{first date's ordinal}:{four characters for each date}`. The four characters are two digits for
    the answers and two for the points, in base 36. Example: 2 answers and 20 points on 2026-03-01 are
    `739676:020k`.
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
        if not body or len(body) % CHARACTERS:
            raise ValueError(f"a run of dates is cut off: {run[:40]}")
        for start in range(0, len(body), CHARACTERS):
            day = date.fromordinal(int(first) + start // CHARACTERS)
            days[day] = Tally(int(body[start : start + 2], 36), int(body[start + 2 : start + 4], 36))
    return days


def base36(number: int, characters: int) -> str:
    """Return a number in base 36, with leading zeros, in so many characters.

    number: at most 36**characters - 1. The digits of a larger one would be cut off.
    """
    text = ""
    for _ in range(characters):
        number, digit = divmod(number, 36)
        text = DIGITS[digit] + text
    return text


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
