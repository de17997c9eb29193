"""How a part declares what it finds in the warehouse (steps/reconcile_function.py, run_report.py)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.bootstrap import ClientOf
from adapters.platform.objects import Objects
from analytics.reconcile.part_night import ReportTable
from analytics.warehouse.warehouse import Warehouse
from rules.parts import Part

Row = Mapping[str, Any]
# Takes whether it may repair, and the instant. Returns what it has found, and done about it.
Find = Callable[[bool, datetime], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class PartFindings:
    """Findings of one model, which the night's report has."""

    part: Part
    field: str  # of the report
    model: str  # the findings are of its rows; a run in which it was not built has none
    settings: Mapping[str, type]  # further settings of the function
    find_of: Callable[[Any, ClientOf, Objects, Warehouse], Find]  # takes the settings first
    table: Callable[[Sequence[Row]], ReportTable]  # of the report, in words
