"""What depends on the machine and on versions of libraries: CPU of each path, sizes of packed rows.

A path's calls are made again with the answers that they got. So neither engine nor network takes part.
"""

import json
import platform
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from bench.counting.desk import CONTEXT, Call, Desk, desk
from bench.counting.log_lines import logged
from bench.deployed import handler_modules
from bench.units.measure import FAMILIES
from bench.units.packed_rows import packed_rows
from bench.units.paths.cached import URL, cached_paths
from bench.units.paths.engagement import board_paths
from bench.units.paths.lead import lead_rows, registry
from bench.units.paths.publishing import engagement_rows, publishing_paths
from bench.units.paths.question import question_rows

ROUNDS = 5
Times = dict[str, dict[str, float]]


def measured_here() -> dict[str, Any]:
    """Measure on this machine; returns what the file holds. Times are CPU milliseconds of a whole path."""
    times: Times = {}
    with desk() as crowded:
        times |= _timed(crowded, board_paths(crowded))
    with desk() as fresh:
        rows = engagement_rows(fresh)
        for family in FAMILIES:
            times |= _timed(fresh, family(fresh))
        rows |= lead_rows(fresh)
        rows |= question_rows(fresh)
        times |= _timed(fresh, publishing_paths(fresh, rows))
        figures = packed_rows(rows)
    with desk(REDIS_URL=URL) as quick:
        times |= _timed(quick, cached_paths(quick))
    return {
        "about": "Written by `make units-here`: CPU and packed sizes, which depend on machine and libraries.",
        "measured": f"{datetime.now(UTC):%Y-%m-%d}",
        "on": f"{platform.machine()}, Python {platform.python_version()}, one core at full speed",
        "cpu_ms": times,
        "figures": figures,
    }


def _timed(at: Desk, paths: Iterator[tuple[str, Mapping[str, Any]]]) -> Times:
    found: Times = {}
    at.services.kept = []
    for name, _ in paths:
        if name.startswith("naive."):
            continue
        of_path: dict[str, float] = {}
        for call in at.calls:
            of_path[call[0]] = round(of_path.get(call[0], 0.0) + _cpu_ms(at, call), 3)
        found[name] = of_path
    at.services.kept = None
    return found


def _cpu_ms(at: Desk, call: Call) -> float:
    """Return the median of some rounds, after one that is not counted."""
    function, event, answers = call
    module = import_module(handler_modules()[function])
    at.meter.is_paused = True
    rounds = []
    with registry(at):
        for _ in range(ROUNDS + 1):
            at.services.replayed = iter(answers)
            with logged(module):
                started = time.process_time()
                module.handler(dict(event), CONTEXT)
                rounds.append(time.process_time() - started)
    at.meter.is_paused, at.services.replayed = False, None
    return 1000 * median(rounds[1:])


def write_here(path: Path) -> None:
    """Measure, and write the file."""
    path.write_text(json.dumps(measured_here(), indent=1) + "\n", encoding="utf-8")
