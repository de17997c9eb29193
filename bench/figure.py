"""A measured figure, its budget, and the line that is printed for it."""

import operator
from dataclasses import dataclass

COMPARE = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured. The budget holds if `value <= budget` (or >=, as sense says).

    budget: None if the figure is only for comparison. detail: the absolute figures behind a ratio, with their
    units.
    """

    claim: str
    value: float
    sense: str = "<="
    budget: float | None = None
    detail: str = ""

    @property
    def is_missed(self) -> bool:
        """Whether there is a budget and it does not hold."""
        return self.budget is not None and not COMPARE[self.sense](self.value, self.budget)

    def line(self) -> str:
        """Return the figure's row of the table."""
        budget = "" if self.budget is None else f"{self.sense} {self.budget:g}"
        verdict = "" if self.budget is None else "MISSED" if self.is_missed else "ok"
        return f"{self.claim:50} {self.value:8.3f}  {budget:>8}  {verdict:6}  {self.detail}".rstrip()


HEADER = f"{'':50} {'figure':>8}  {'budget':>8}  {'':6}  behind it"
