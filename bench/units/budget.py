"""Measures what every path costs, and holds that against the file: what has become dearer or cheaper."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bench.counting.desk import Units, desk
from bench.units.engagement import board_paths, event_paths, reading_paths
from bench.units.leads import lead_paths, lead_rows
from bench.units.naive import naive_paths
from bench.units.operators import operators_paths
from bench.units.outgoing import outgoing_paths
from bench.units.points import moving_paths, points_paths
from bench.units.publishing import engagement_rows, publishing_paths
from bench.units.questions import question_paths, question_rows
from bench.units.warehouse import statements_a_night
from local.plan.measured_units import total
from local.plan.standing import sizes

ACCEPT = "make units"
ABOUT = (
    "Written by `make units`: what each path costs in units that AWS counts, by function, and what stands in "
    "each size of the template. tests/integration/test_budget.py measures again and holds the code to it."
)
# Of the usual design's write units, for a user's next date, index filled.
OF_NAIVE = {1: 1.0, 5: 0.5, 20: 0.41}
Functions = Mapping[str, Mapping[str, float]]
Paths = Mapping[str, Functions]


def measured() -> dict[str, Any]:
    """Measure all paths and sizes; returns what the file holds."""
    paths: dict[str, dict[str, Units]] = {}
    with desk() as crowded:  # The figures of boards depend on who else is there.
        paths |= board_paths(crowded)
    with desk() as fresh:
        rows = engagement_rows(fresh)
        claims = rows["IdempotencyKeys"]  # a user's: of a lead's nothing is kept
        for family in (event_paths, reading_paths, question_paths, lead_paths, naive_paths):
            paths |= family(fresh)
        rows |= lead_rows(fresh)
        rows |= question_rows(fresh) | {"IdempotencyKeys": claims}
        paths |= publishing_paths(fresh, rows)
    for family in (points_paths, moving_paths, outgoing_paths):
        with desk() as alone:
            paths |= family(alone)
    with desk(IDENTITY_URL="") as asked:  # PostgreSQL is not measured in units
        paths |= operators_paths(asked)
    whole = {path: {name: _plain(each) for name, each in found.items()} for path, found in paths.items()}
    plain = {
        size: {name: _plain(each) for name, each in found.items()}
        for size, found in sizes(statements_a_night()).items()
    }
    return {"about": ABOUT, "paths": whole, "sizes": plain}


def _plain(counts: Mapping[str, float]) -> dict[str, float]:
    """Return counts in order, with whole numbers as such, and without zeros."""
    return {name: int(n) if n == int(n) else n for name, n in sorted(counts.items()) if n}


def text_of(found: Mapping[str, Any]) -> str:
    """Return the file's text: one function of a path a line, so that a change of it shows as one."""
    parts = [f'"about": {json.dumps(found["about"])}']
    for part in ("paths", "sizes"):
        listed = (
            f" {json.dumps(name)}: {{\n"
            + ",\n".join(f"  {json.dumps(inner)}: {json.dumps(counts)}" for inner, counts in each.items())
            + "\n }"
            for name, each in found[part].items()
        )
        parts.append(f'"{part}": {{\n' + ",\n".join(listed) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def differences(planned: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return a line for each figure that has changed: path, function and unit, before and after."""
    return [line for part in ("paths", "sizes") for line in _differences(planned[part], found[part])]


def _differences(planned: Paths, found: Paths) -> Iterator[str]:
    def flat(paths: Paths) -> dict[tuple[str, str, str], float]:
        return {
            (a, b, c): n for a, some in paths.items() for b, each in some.items() for c, n in each.items()
        }

    before, after = flat(planned), flat(found)
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key, 0), after.get(key, 0)
        if old != new:
            path, function, name = key
            sense = "dearer" if new > old else "cheaper"
            yield f"  {path}, {function}: {name} was {old:g} and is {new:g} ({sense})"


def message(lines: list[str]) -> str:
    """Return what to say of the differences, with the command that accepts them."""
    return "\n".join(["a path's units have changed:", *lines, f"if that is meant: {ACCEPT}"])


def of_naive(paths: Paths) -> dict[int, tuple[float, float]]:
    """Return write units an event, ours and the usual design's, of a user's next date, by events at once."""
    per_event = total(paths["naive.next.5"], "write") - total(paths["naive.next.1"], "write")
    first = total(paths["naive.next.1"], "write")
    return {
        size: (
            total(paths[f"events.next.{size}"], "write") / size,
            (first + per_event / 4 * (size - 1)) / size,
        )
        for size in OF_NAIVE
    }
