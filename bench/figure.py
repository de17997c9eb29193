"""A measured figure, its budget, and the line that is printed for it.

What is measured in rounds is a median with the middle half of its rounds: on a shared machine two runs of
one thing differ by a third. Ways that are compared take turns, and each round gives one ratio. A budget is
missed only if that half lies beyond it as a whole.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

COMPARE = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured. The budget holds if `value <= budget` (or >=, as sense says).

    budget: None if the figure is only for comparison. detail: the absolute figures behind a ratio, with their
    units. spread: the lowest and the highest value of the middle half of the rounds; None: it is no matter of
    rounds.
    """

    claim: str
    value: float
    sense: str = "<="
    budget: float | None = None
    detail: str = ""
    spread: tuple[float, float] | None = None

    @property
    def is_missed(self) -> bool:
        """Whether there is a budget and no value of the spread holds it."""
        values = (self.value, *(self.spread or ()))
        return self.budget is not None and not any(
            COMPARE[self.sense](value, self.budget) for value in values
        )

    def _verdict(self) -> str:
        if self.budget is None:
            return ""
        if self.is_missed:
            return "MISSED"
        return "ok" if COMPARE[self.sense](self.value, self.budget) else "close"

    def line(self) -> str:
        """Return the figure's row of the table. "close": the spread holds the budget, its median does not."""
        budget = "" if self.budget is None else f"{self.sense} {self.budget:g}"
        spread = f"{self.spread[0]:.3g}..{self.spread[1]:.3g}" if self.spread else ""
        cells = (
            f"{self.claim:50} {self.value:8.3f}",
            f"{spread:>13}",
            f"{budget:>8}",
            f"{self._verdict():6}",
        )
        return "  ".join((*cells, self.detail)).rstrip()


HEADER = f"{'':50} {'figure':>8}  {'middle half':>13}  {'budget':>8}  {'':6}  behind it"


def middle_half(rounds: Sequence[float]) -> tuple[float, float]:
    """Return the lowest and the highest value of the middle half of some rounds, at least two."""
    low, _, high = quantiles(rounds, n=4, method="inclusive")
    return low, high


def of_rounds(
    claim: str, rounds: Sequence[float], sense: str = "<=", budget: float | None = None, detail: str = ""
) -> Figure:
    """Return the median of what some rounds measured, with its spread."""
    spread = middle_half(rounds) if len(rounds) > 1 else None
    return Figure(claim, median(rounds), sense, budget, detail, spread)


def ratio(
    claim: str,
    over: Sequence[float],
    under: Sequence[float],
    sense: str = "<=",
    budget: float | None = None,
    detail: str = "",
) -> Figure:
    """Return the median of each round's ratio of two ways that took turns, with its spread."""
    rounds = [each / other for each, other in zip(over, under, strict=True)]
    return of_rounds(claim, rounds, sense, budget, detail)


def shown(rounds: Sequence[float], digits: int = 2) -> str:
    """Return a median and its spread, for a detail: `1.20 (1.10..1.40)`."""
    low, high = middle_half(rounds) if len(rounds) > 1 else (rounds[0], rounds[0])
    return f"{median(rounds):.{digits}f} ({low:.{digits}f}..{high:.{digits}f})"
