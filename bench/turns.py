"""Ways to one result, in turns: each in a fresh process on the same two cores, from the files to a table."""

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from typing import Any

from bench.figure import Figure, of_rounds, ratio, shown

THREADS = 2
OURS = "ours"


def measure(
    way: Callable[[Path], Any], folder: Path, columns: Mapping[str, str], imports: Sequence[str]
) -> None:
    """Run one way in this process; print its time and memory, and what equal results have in common.

    columns: those that are compared, with DuckDB's types. imports: outside the clock.
    """
    import duckdb
    import pyarrow as pa

    for library in imports:
        importlib.import_module(library)
    db = duckdb.connect()
    db.register("warm", pa.table({"one": [1]}))  # imports what DuckDB looks for in Python
    db.sql("SELECT * FROM warm").to_arrow_table()
    start, cpu = time.perf_counter(), time.process_time()
    table = way(folder)
    took = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    took["peak_mb"] = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    db.register("answer", table)
    listed = ", ".join(f"{name}::{kind}" for name, kind in columns.items())
    found = db.execute(f"SELECT count(*), sum(hash(row({listed}))) FROM answer").fetchone()
    print(json.dumps({**took, "digest": [str(each) for each in found or ()]}))


def compare(
    module: str, ways: Sequence[str], folder: str, repeats: int, title: str, budget: float | None = None
) -> Iterator[Figure]:
    """Yield CPU and wall time of the best rival, of ours, and our memory. module: what `measure`s a way."""
    env = {**os.environ, "POLARS_MAX_THREADS": str(THREADS), "OMP_NUM_THREADS": str(THREADS)}
    took: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    for way in [*ways] * repeats:
        command = [sys.executable, "-m", module, way, folder]
        done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        took[way].append(json.loads(done.stdout.splitlines()[-1]))
    if len({tuple(each["digest"]) for rounds in took.values() for each in rounds}) > 1:
        raise AssertionError(
            f"the results differ: { {way: each[0]['digest'] for way, each in took.items()} }"
        )
    cpu, seconds, peaks = (
        {way: [each[name] for each in rounds] for way, rounds in took.items()}
        for name in ("cpu", "seconds", "peak_mb")
    )
    detail = ", ".join(f"{way} {shown(cpu[way])} s, {max(peaks[way]):.0f} MB" for way in ways)
    best = min((way for way in ways if way != OURS), key=lambda way: median(cpu[way]))
    yield ratio(f"{title}: CPU, times {best}", cpu[best], cpu[OURS], ">=", budget, detail)
    yield ratio("  by the clock", seconds[best], seconds[OURS])
    yield of_rounds("  MB of memory", peaks[OURS], "<=", 700)
