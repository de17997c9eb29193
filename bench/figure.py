"""A measured figure, its budget, and the line that is printed for it.

A figure of several rounds is their median, and its spread is the middle half of them: on a shared machine two
runs of one thing differ by a third. Variants that are compared run in turn, and each round gives one ratio. A
budget is missed only if the whole spread misses it.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

COMPARE = {"<=": operator.le, ">=": operator.ge}
HEADER = f"{'':50} {'figure':>8}  {'middle half':>13}  {'budget':>8}  {'':6}  behind it"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure. Its budget holds if `value <= budget`, or `>=` if the sense says so."""

    claim: str
    value: float
    sense: str = "<="
    budget: float | None = None  # None: the figure is only for comparison
    detail: str = ""  # the absolute figures behind a ratio, with their units
    spread: tuple[float, float] | None = None  # None: it was measured once

    @property
    def is_missed(self) -> bool:
        """Whether there is a budget and no value of the spread holds it."""
        return self.budget is not None and not any(
            COMPARE[self.sense](value, self.budget) for value in (self.value, *(self.spread or ()))
        )

    def line(self) -> str:
        """Return the figure's row of the table. "close": the spread holds the budget, its median does not."""
        budget, verdict = "", ""
        if self.budget is not None:
            budget = f"{self.sense} {self.budget:g}"
            is_held = COMPARE[self.sense](self.value, self.budget)
            verdict = "MISSED" if self.is_missed else "ok" if is_held else "close"
        spread = f"{self.spread[0]:.3g}..{self.spread[1]:.3g}" if self.spread else ""
        cells = (f"{self.claim:50} {self.value:8.3f}", f"{spread:>13}", f"{budget:>8}", f"{verdict:6}")
        return "  ".join((*cells, self.detail)).rstrip()


def ratio(
    claim: str,
    numerators: Sequence[float],
    denominators: Sequence[float],
    sense: str = "<=",
    budget: float | None = None,
    detail: str = "",
) -> Figure:
    """Return the figure of two variants' ratio. They have one measurement a round, in the same order."""
    rounds = [above / below for above, below in zip(numerators, denominators, strict=True)]
    spread = middle_half(rounds) if len(rounds) > 1 else None
    return Figure(claim, median(rounds), sense, budget, detail, spread)


def middle_half(rounds: Sequence[float]) -> tuple[float, float]:
    """Return the lowest and the highest value of the middle half of at least two rounds."""
    low, _, high = quantiles(rounds, n=4, method="inclusive")
    return low, high


def median_text(rounds: Sequence[float], digits: int = 2) -> str:
    """Return a median and its spread, for a detail: `1.20 (1.10..1.40)`."""
    low, high = middle_half(rounds) if len(rounds) > 1 else (rounds[0], rounds[0])
    return f"{median(rounds):.{digits}f} ({low:.{digits}f}..{high:.{digits}f})"
