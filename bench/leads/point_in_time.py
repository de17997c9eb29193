"""Features of 100,000 labels from a million events of 100,000 leads: ours, and by hand in DuckDB and pandas.

All read the same curated Parquet files and answer for the same labels. The time counts from the files to a
table, in a process of its own on the same two cores; ways take turns. By hand in DuckDB: one join of labels
and events, filtered by time and grouped. In pandas: running sums, and merge_asof for each end of each window.
Pandas leaves out campaigns. In a second lake a hundred leads have a tenth of the events and of the labels:
there the join meets every pair. In a third one two fifths of the leads were merged in pairs; the join finds
out who was one at a label's instant, and pandas stays away. Rows are compared value by value.
"""

import hashlib
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
from bench.leads.lead_lake import LEADS, write
from bench.leads.point_in_time_rivals import CHECKED, COMPARED, duckdb, merged, pandas

REPEATS = int(os.environ.get("REPEATS", "5"))
BUDGETS = {"duckdb": 0.9, "merged": 1.2}
LAKES = {
    "even": ({}, ("ours", "duckdb", "pandas")),
    "skewed": ({"heavy": 100}, ("ours", "duckdb", "pandas")),
    "merged": ({"merged": LEADS // 5}, ("ours", "merged")),
}


def ours(folder: Path) -> Any:
    import pyarrow.parquet as pq

    from adapters.platform.objects import FolderObjects
    from analytics.features.training_sets import point_in_time

    return point_in_time(FolderObjects(folder), pq.read_table(folder / "labels.parquet"))


WAYS: dict[str, Callable[[Path], Any]] = {"ours": ours, "duckdb": duckdb, "merged": merged, "pandas": pandas}


def measure(way: str, folder: Path) -> None:
    """Run one way in this process, and print its time and memory."""
    for library in ("duckdb", "pandas", "pyarrow.dataset", "analytics.features.training_sets"):
        importlib.import_module(library)
    start, cpu = time.perf_counter(), time.process_time()
    table = WAYS[way](folder)
    took = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}
    took["peak_mb"] = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    names = CHECKED if way == "pandas" else COMPARED
    digest = {name: _digest(table[name]) for name in names}
    print(json.dumps({**took, "digest": digest}))


def _digest(column: Any) -> str:
    """Return a digest of a column's values in their order; null counts as 0."""
    values = column.to_pandas().fillna(0).astype("int64").to_numpy()
    return hashlib.sha256(values.tobytes()).hexdigest()


def in_fresh_process(way: str, folder: Path) -> dict[str, Any]:
    """Measure one way in a fresh process."""
    command = [sys.executable, "-m", "bench.leads.point_in_time", way, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run() -> Iterator[Figure]:
    """Yield times and memory against both, for leads that are alike, and for a lake with heavy leads."""
    for name, (shape, ways) in LAKES.items():
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), **shape)
            rounds = [{way: in_fresh_process(way, Path(folder)) for way in ways} for _ in range(REPEATS)]
        for took in rounds:
            ours_ = took["ours"]["digest"]
            for way in ways:
                if took[way]["digest"].items() - ours_.items():
                    raise AssertionError((name, way, took[way]["digest"], ours_))
        yield from _figures(name, rounds)


def _figures(name: str, rounds: list[dict[str, dict[str, Any]]]) -> Iterator[Figure]:
    wall, cpu, peak = (
        {way: [took[way][figure] for took in rounds] for way in rounds[0]}
        for figure in ("seconds", "cpu_seconds", "peak_mb")
    )
    detail = ", ".join(
        f"{way} {shown(wall[way])} s, CPU {shown(cpu[way])}, {max(peak[way]):.0f} MB" for way in cpu
    )
    for way in [each for each in cpu if each != "ours"]:
        title = f"point in time, {name}: times {way}"
        yield ratio(f"{title}, CPU", cpu[way], cpu["ours"], ">=", BUDGETS.get(way), detail)
        yield ratio(f"{title}, wall", wall[way], wall["ours"], ">=")


if __name__ == "__main__":
    measure(sys.argv[1], Path(sys.argv[2]))
