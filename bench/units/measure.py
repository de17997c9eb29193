"""Measures every path; the file of measured units, which is the budget too."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.counting.desk import Units, desk
from bench.units.paths.cached import URL, cached_paths
from bench.units.paths.engagement import board_paths, event_paths, reading_paths
from bench.units.paths.lead import lead_paths, lead_rows
from bench.units.paths.naive import naive_paths
from bench.units.paths.nightly import curation_paths, scan_paths
from bench.units.paths.operators import operators_paths
from bench.units.paths.outgoing import outgoing_paths
from bench.units.paths.points import moving_paths, points_paths
from bench.units.paths.publishing import engagement_rows, publishing_paths, row_texts
from bench.units.paths.question import question_paths, question_rows
from bench.units.warehouse_statements import statements_a_night

Paths = dict[str, dict[str, Units]]
FAMILIES = (event_paths, reading_paths, question_paths, lead_paths, naive_paths)
ABOUT = (
    "Written by `make units`: what each path costs in units that AWS counts, by function. "
    "tests/integration/test_budget.py measures again and holds the paths to it."
)


def measured() -> dict[str, Any]:
    """Measure all paths; returns what the file holds."""
    paths: Paths = {}
    with desk() as crowded:  # The figures of boards and scans depend on who else is there.
        paths |= board_paths(crowded)
        paths |= scan_paths(crowded)
    with desk() as fresh:
        texts = dict(row_texts(fresh, rows := engagement_rows(fresh)))
        for family in FAMILIES:
            paths |= family(fresh)
        claims = {"IdempotencyKeys": rows["IdempotencyKeys"]}  # a user's: of a lead's nothing is kept
        rows |= lead_rows(fresh)
        rows |= question_rows(fresh) | claims
        paths |= publishing_paths(fresh, rows)
    with desk() as expiring:
        paths |= points_paths(expiring)
    with desk() as moving:
        paths |= moving_paths(moving)
    with desk(IDENTITY_URL="") as asked:  # PostgreSQL is not measured in units
        paths |= operators_paths(asked)
    with desk() as listened:
        paths |= outgoing_paths(listened)
    with desk(REDIS_URL=URL) as quick:
        paths |= cached_paths(quick)
    paths |= curation_paths(rows)
    paths["nightly.warehouse"] = {"WarehouseFunction": {"statements": statements_a_night()}}
    return {"about": ABOUT, "paths": _rounded(paths), "rows": _rounded({"": texts})[""]}


def _rounded(paths: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Paths:
    """Return the paths in order, with whole numbers as such, and without zeros."""
    return {
        path: {
            function: {name: int(n) if n == int(n) else n for name, n in sorted(units.items()) if n}
            for function, units in functions.items()
        }
        for path, functions in paths.items()
    }


def text_of(found: Mapping[str, Any]) -> str:
    """Return the file's text: one function of a path a line, so that a change of it shows as one."""
    return "".join(f"{line}\n" for line in _lines(found))


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield "{"
    yield f'"about": {json.dumps(found["about"])},'
    yield '"paths": {'
    for at, (path, functions) in enumerate(found["paths"].items(), 1):
        yield f" {json.dumps(path)}: {{"
        yield from _table(functions, "  ")
        yield " }" + ("," if at < len(found["paths"]) else "")
    yield '},\n"rows": {'
    yield from _table(found["rows"], " ")
    yield "}\n}"


def _table(rows: Mapping[str, Any], indent: str) -> Iterator[str]:
    for at, (name, values) in enumerate(rows.items(), 1):
        yield f"{indent}{json.dumps(name)}: {json.dumps(values)}" + ("," if at < len(rows) else "")


def write(path: Path, found: Mapping[str, Any]) -> None:
    """Write the file."""
    path.write_text(text_of(found), encoding="utf-8")
