"""How a part's comparison in the nightly run is declared (steps/reconcile_function.py, run_report.py)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.platform.objects import Objects
from rules.parts import Part

ReportTable = tuple[str, Sequence[str], Sequence[Any]]  # title, heads of columns, rows
Step = Callable[[Objects, Mapping[str, Any], datetime], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class PartNight:
    """One comparison, which is a step of the run beside that of users."""

    part: Part
    step: str
    settings: Mapping[str, type]  # further settings of the function
    # Makes the step of the settings and a client of DynamoDB. The step compares, and returns its answer, with
    # `counts`.
    step_of: Callable[[Any, Any], Step]
    field: str  # of the report: what short_result returns
    short_result: Callable[[Objects, str, int], dict[str, Any]]  # takes the run's id, and how much is listed
    tables: Callable[[Mapping[str, Any]], Sequence[ReportTable]]  # of the report, in words
