"""Every user's streak from millions of active days: our statement against the best idioms of three engines.

All read the same curated Parquet files, of users who are active on every other date of 400, and of users who
are active once a month for ten years. All end with the same Arrow table: user, last date, current and longest
run, active days. The time counts from the files to that table, in a process of its own on the same two cores,
without importing the libraries. Ways take turns; the figure is the ratio of medians. `whole` is the recompute
as it runs at night, with totals and settings.

ROWS sets the size, REPEATS the rounds. ClickHouse runs where it is installed (`uv pip install chdb`).
"""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from typing import Any

from bench.figure import Figure
from bench.lake.recompute_lakes import DENSE, SPARSE, Crowd, write_activity, write_whole
from bench.lake.recompute_rivals import RIVALS, THREADS, duckdb_whole

ROWS = int(os.environ.get("ROWS", "50000000"))
WHOLE_ROWS = ROWS // 5
REPEATS = int(os.environ.get("REPEATS", "5"))
COLUMNS = ("user_id", "last_activity_date", "current_streak", "longest_streak", "active_days")
WHOLE_COLUMNS = (*COLUMNS, "total_bestie_points", "balance", "entries", "sound", "version", "timezone")
OURS = "ours"


def ours(folder: Path) -> Any:
    from adapters.platform.objects import FolderObjects
    from analytics.lake.curated_files import connect, query
    from analytics.lake.layout import curated_files
    from bench.lake.activity_runs import create_runs

    db, objects = connect(), FolderObjects(folder)
    create_runs(db, objects, curated_files(objects, "daily_activity"), ())
    named = "last_run AS current_streak, longest_run AS longest_streak"
    return query(db, f"SELECT {', '.join(COLUMNS)} FROM (SELECT *, {named} FROM runs)")


def ours_whole(folder: Path) -> Any:
    from adapters.platform.objects import FolderObjects
    from analytics.recompute.recompute import recompute

    return recompute(FolderObjects(folder), datetime.now(UTC).date(), anew=True).table.select(WHOLE_COLUMNS)


RUNS: dict[str, Callable[[Path], Any]] = {OURS: ours, **RIVALS}
WHOLE: dict[str, Callable[[Path], Any]] = {OURS: ours_whole, "DuckDB": duckdb_whole}


def measure(task: str, way: str, folder: Path) -> None:
    """Run one way in this process, and print its time and memory."""
    import duckdb
    import pyarrow as pa

    for library in ("polars", "analytics.recompute.recompute"):
        importlib.import_module(library)

    if importlib.util.find_spec("chdb") and way.startswith("ClickHouse"):
        importlib.import_module("chdb")
    warm = duckdb.connect()
    warm.register("warm", pa.table({"one": [1]}))  # imports what DuckDB looks for in Python
    warm.sql("SELECT * FROM warm").to_arrow_table()
    start = time.perf_counter()
    table = (RUNS if task == "runs" else WHOLE)[way](folder)
    seconds = time.perf_counter() - start
    peak_mb = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    columns = COLUMNS if task == "runs" else WHOLE_COLUMNS
    print(json.dumps({"seconds": seconds, "peak_mb": peak_mb, "digest": digest(table, columns)}))


def digest(table: Any, columns: tuple[str, ...]) -> list[str]:
    """Return what two equal results have in common: the number of rows, and the sum of the rows' hashes."""
    import duckdb

    db = duckdb.connect()
    db.register("answer", table)
    kinds = {"user_id": "VARCHAR", "last_activity_date": "DATE", "sound": "BOOLEAN", "timezone": "VARCHAR"}
    listed = ", ".join(f"{name}::{kinds.get(name, 'BIGINT')}" for name in columns)
    return [
        str(each)
        for each in db.execute(f"SELECT count(*), sum(hash(row({listed}))) FROM answer").fetchall()[0]
    ]


def in_turns(task: str, ways: list[str], folder: Path) -> dict[str, dict[str, Any]]:
    """Measure ways in fresh processes, turn by turn; returns each way's median time and highest memory."""
    env = {**os.environ, "POLARS_MAX_THREADS": str(THREADS), "OMP_NUM_THREADS": str(THREADS)}
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    for _ in range(REPEATS):
        for way in ways:
            command = [sys.executable, "-m", "bench.lake.recompute", task, way, str(folder)]
            done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
            found[way].append(json.loads(done.stdout.splitlines()[-1]))
    if len({tuple(run["digest"]) for runs in found.values() for run in runs}) > 1:
        raise AssertionError(
            f"the results differ: { {way: runs[0]['digest'] for way, runs in found.items()} }"
        )
    return {
        way: {
            "seconds": median(run["seconds"] for run in runs),
            "spread": max(run["seconds"] for run in runs) - min(run["seconds"] for run in runs),
            "peak_mb": max(run["peak_mb"] for run in runs),
        }
        for way, runs in found.items()
    }


def figures(title: str, took: dict[str, dict[str, Any]], rows: int) -> Iterator[Figure]:
    """Compare ours with the fastest rival."""
    detail = ", ".join(
        f"{way} {each['seconds']:.1f} s (spread {each['spread']:.1f}), {each['peak_mb']:.0f} MB"
        for way, each in took.items()
    )
    mine = took[OURS]
    best = min(each["seconds"] for way, each in took.items() if way != OURS)
    yield Figure(f"{title}: times as fast as the best rival", best / mine["seconds"], ">=", 1, detail)
    yield Figure(f"{title}: MB of memory", mine["peak_mb"], "<=", 600, f"{rows:,} rows")


def run() -> Iterator[Figure]:
    ways = [way for way in RUNS if importlib.util.find_spec("chdb") or not way.startswith("ClickHouse")]
    tasks: list[tuple[str, Crowd, int, Callable[[Path, Crowd, int], int], list[str]]] = [
        *(("runs", crowd, ROWS, write_activity, ways) for crowd in (DENSE, SPARSE)),
        *(("whole", crowd, WHOLE_ROWS, write_whole, list(WHOLE)) for crowd in (DENSE, SPARSE)),
    ]
    for task, crowd, wanted, write, these in tasks:
        with tempfile.TemporaryDirectory() as name:
            rows = write(Path(name), crowd, wanted)
            yield from figures(f"recompute, {task}, {crowd.name}", in_turns(task, these, Path(name)), rows)


if __name__ == "__main__":
    measure(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
