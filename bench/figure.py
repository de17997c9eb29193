"""A measured figure, its budget, and the line that is printed of it."""

import operator
from dataclasses import dataclass

COMPARE = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured. sense and budget: `value <= budget` and the like; no budget: for comparison.

    detail: the absolute figures behind a ratio, with their units.
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
        """Return the table's row."""
        budget = "" if self.budget is None else f"{self.sense} {self.budget:g}"
        verdict = "" if self.budget is None else "MISSED" if self.is_missed else "ok"
        return f"{self.claim:50} {self.value:8.3f}  {budget:>8}  {verdict:6}  {self.detail}".rstrip()


HEADER = f"{'':50} {'figure':>8}  {'budget':>8}  {'':6}  behind it"
