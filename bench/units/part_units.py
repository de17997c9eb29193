"""How the measured paths of a part are declared (budget.py)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.counting.desk import Desk


@dataclass(frozen=True, slots=True)
class PartUnits:
    """What a part has in units.json."""

    paths: Callable[[Desk], Iterator[tuple[str, Any]]]  # measures the paths: yields name, costs
    rows: Callable[[Desk], Mapping[str, Any]]  # returns a row of each table that is published, by table
