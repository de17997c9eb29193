"""Features of 100,000 labels from a million events of 100,000 leads: ours, and by hand in DuckDB and pandas.

All read the same curated Parquet files and answer for the same labels. The time counts from the files to a
table, in a process of its own on the same two cores; ways take turns. By hand in DuckDB: one join of labels
and events, filtered by time and grouped. In pandas: running sums, and merge_asof for each end of each window.
Both leave out merged leads; pandas also leaves out campaigns. In a second lake a hundred leads have a tenth
of the events and of the labels: there the join meets every pair.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

from bench.figure import Figure, ratio, shown
from bench.leads.lead_lake import write
from bench.leads.point_in_time_rivals import CHECKED, duckdb, pandas

REPEATS = int(os.environ.get("REPEATS", "5"))
BUDGETS = {"duckdb": 0.9}


def ours(folder: Path) -> Any:
    import pyarrow.parquet as pq

    from adapters.platform.objects import FolderObjects
    from analytics.features.point_in_time import point_in_time

    return point_in_time(FolderObjects(folder), pq.read_table(folder / "labels.parquet"))


WAYS: dict[str, Callable[[Path], Any]] = {"ours": ours, "duckdb": duckdb, "pandas": pandas}


def measure(way: str, folder: Path) -> None:
    """Run one way in this process, and print its time and memory."""
    for library in ("duckdb", "pandas", "pyarrow.dataset", "analytics.features.point_in_time"):
        importlib.import_module(library)
    start, cpu = time.perf_counter(), time.process_time()
    table = WAYS[way](folder)
    took = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}
    took["peak_mb"] = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    found = table.select(CHECKED).to_pandas().fillna(0)
    print(json.dumps({**took, "digest": [int(found[name].sum()) for name in CHECKED]}))


def in_fresh_process(way: str, folder: Path) -> dict[str, Any]:
    """Measure one way in a fresh process."""
    command = [sys.executable, "-m", "bench.leads.point_in_time", way, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run() -> Iterator[Figure]:
    """Yield times and memory against both, for leads that are alike, and for a lake with heavy leads."""
    for name, heavy in (("even", 0), ("skewed", 100)):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), heavy)
            rounds = [{way: in_fresh_process(way, Path(folder)) for way in WAYS} for _ in range(REPEATS)]
        if len({str(each["digest"]) for took in rounds for each in took.values()}) != 1:
            raise AssertionError({way: each["digest"] for way, each in rounds[0].items()})
        yield from _figures(name, rounds)


def _figures(name: str, rounds: list[dict[str, dict[str, Any]]]) -> Iterator[Figure]:
    wall, cpu, peak = (
        {way: [took[way][figure] for took in rounds] for way in WAYS}
        for figure in ("seconds", "cpu_seconds", "peak_mb")
    )
    detail = ", ".join(
        f"{way} {shown(wall[way])} s, CPU {shown(cpu[way])}, {max(peak[way]):.0f} MB" for way in WAYS
    )
    for way in ("duckdb", "pandas"):
        title = f"point in time, {name}: times {way}"
        yield ratio(title, wall[way], wall["ours"], ">=", BUDGETS.get(way), detail)
        yield ratio(f"{title}, CPU", cpu[way], cpu["ours"], ">=")


if __name__ == "__main__":
    measure(sys.argv[1], Path(sys.argv[2]))
