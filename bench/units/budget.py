"""Measures what all paths cost, and compares that with local/plan/units.json, which holds the code to it."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bench.counting.desk import Units, desk
from bench.naive import naive_paths
from bench.units.boards import bare_snapshots, weekly_snapshots
from bench.units.engagement import board_paths, engagement_rows, event_paths, publishing_paths, reading_paths
from bench.units.friends import friend_paths
from bench.units.leagues import league_paths
from bench.units.outgoing import outgoing_paths
from bench.units.part_units import PartUnits
from bench.units.points import bonus_paths, points_paths
from bench.units.standing import sizes
from bench.units.years import years_paths
from local.plan.cost import total
from rules.parts import said

ACCEPT = "make units"
ABOUT = (
    "Written by `make units`: what each path costs in units that AWS counts, by function, and what stands in "
    "each size of the template. tests/integration/test_budget.py measures again and holds the code to it."
)
# By events of a user in one request, on the user's next date: our write units, of the usual design's.
NAIVE_BUDGETS = {1: 1.0, 5: 0.5, 20: 0.41}
PARTS: list[PartUnits] = list(said("units"))
Costs = Mapping[str, Mapping[str, Units]]  # by path (or size) and function (or kind)


def measure_all() -> dict[str, Any]:
    """Measure all paths and sizes; returns the content of units.json: "about", "paths", "sizes"."""
    paths: dict[str, dict[str, Units]] = {}
    with desk() as crowded:  # a desk of its own: the figures of boards depend on who else is there
        paths |= board_paths(crowded)
    with desk() as shared:
        rows = engagement_rows(shared)
        paths_of_parts = [part.paths for part in PARTS]
        for family in (event_paths, reading_paths, *paths_of_parts, naive_paths):
            paths |= dict(family(shared))
        # A lead's claim is not published, but it is handed to the publisher: the row that counts is a user's.
        claims = rows["IdempotencyKeys"]
        for part in PARTS:
            rows |= part.rows(shared)
        rows["IdempotencyKeys"] = claims
        paths |= publishing_paths(shared, rows)
    families = (points_paths, bonus_paths, bare_snapshots, weekly_snapshots, league_paths, friend_paths)
    for family in (*families, outgoing_paths, years_paths):
        with desk() as own_desk:
            paths |= family(own_desk)
    return {"about": ABOUT, "paths": _rounded(paths), "sizes": _rounded(sizes())}


def _rounded(costs: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, Units]]:
    return {
        path: {
            function: {name: int(n) if n == int(n) else n for name, n in sorted(units.items()) if n}
            for function, units in functions.items()
        }
        for path, functions in costs.items()
    }


def json_text(content: Mapping[str, Any]) -> str:
    """Return the text of units.json, with one function of a path a line, so that changes show as such."""
    sections = [f'"about": {json.dumps(content["about"])}']
    for section in ("paths", "sizes"):
        paths = []
        for path, functions in content[section].items():
            lines = ",\n".join(
                f"  {json.dumps(function)}: {json.dumps(units)}" for function, units in functions.items()
            )
            paths.append(f" {json.dumps(path)}: {{\n{lines}\n }}")
        sections.append(f'"{section}": {{\n' + ",\n".join(paths) + "\n}")
    return "{\n" + ",\n".join(sections) + "\n}\n"


def differences(planned: Mapping[str, Any], measured: Mapping[str, Any]) -> list[str]:
    """Return a line for each figure that has changed: path, function and unit, before and after."""
    lines = []
    for section in ("paths", "sizes"):
        before, after = _by_unit(planned[section]), _by_unit(measured[section])
        for key in sorted(before.keys() | after.keys()):
            old, new = before.get(key, 0), after.get(key, 0)
            if old != new:
                path, function, unit = key
                sense = "dearer" if new > old else "cheaper"
                lines.append(f"  {path}, {function}: {unit} was {old:g} and is {new:g} ({sense})")
    return lines


def _by_unit(costs: Costs) -> dict[tuple[str, str, str], float]:
    return {
        (path, function, unit): figure
        for path, functions in costs.items()
        for function, units in functions.items()
        for unit, figure in units.items()
    }


def message(lines: Iterable[str]) -> str:
    """Return a text that tells the differences, and the command that accepts them."""
    return "\n".join(["a path's units have changed:", *lines, f"if that is meant: {ACCEPT}"])


def write_units_of_both(paths: Costs) -> dict[int, tuple[float, float]]:
    """Return write units an event, ours and the usual design's, by events in one request.

    The usual design was measured with one and with five events; each further event costs the same.
    """
    first = total(paths["naive.next.1"], "write")
    further = (total(paths["naive.next.5"], "write") - first) / 4
    return {
        count: (
            total(paths[f"events.next.{count}"], "write") / count,
            (first + further * (count - 1)) / count,
        )
        for count in NAIVE_BUDGETS
    }
