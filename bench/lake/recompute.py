"""Every user's streak from 50 million activity rows: ours against window queries in DuckDB and Polars.

All three read the same curated Parquet files (one a day, sorted by user, text ids of 36 characters). All
three end with the same Arrow table: user, last date, current and longest run, active days. The time counts
from the files to that table, in a process of its own on the same two cores, without importing the libraries.
The variable ROWS sets the size. Ours makes use of the layout: files come by date, so it never sorts.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

from bench.figure import Figure

ROWS = int(os.environ.get("ROWS", "50000000"))
ROWS_PER_USER = 200
SHARE = 0.5  # the share of users who are active on a day
FIRST = date(2025, 1, 1)
THREADS = "2"
REPEATS = int(os.environ.get("REPEATS", "2"))
COLUMNS = ("user_id", "last_activity_date", "current_streak", "longest_streak", "active_days")

# The usual query for runs of consecutive dates ("gaps and islands").
QUERY = """
WITH numbered AS (
  SELECT user_id, activity_date,
    activity_date - CAST(row_number() OVER (PARTITION BY user_id ORDER BY activity_date) AS INTEGER) AS island
  FROM read_parquet('{files}')
), runs AS (
  SELECT user_id, max(activity_date) AS last, count(*) AS days FROM numbered GROUP BY user_id, island
)
SELECT user_id, max(last) AS last_activity_date, arg_max(days, last) AS current_streak,
  max(days) AS longest_streak, sum(days) AS active_days
FROM runs GROUP BY user_id
"""


def ours(folder: Path) -> Any:
    from adapters.platform.objects import FolderObjects
    from analytics.lake.duckdb_memory import connect, query
    from analytics.recompute.activity_runs import create_runs

    db = connect()
    create_runs(db, FolderObjects(folder), ())
    return query(db, f"SELECT {', '.join(COLUMNS)} FROM runs")


def duckdb(folder: Path) -> Any:
    import duckdb

    db = duckdb.connect(config={"threads": int(THREADS)})
    return db.execute(QUERY.format(files=folder / "curated/daily_activity/*/*.parquet")).to_arrow_table()


def polars(folder: Path) -> Any:
    import polars as pl

    row_number = pl.int_range(pl.len()).over("user_id", order_by="activity_date")
    island = pl.col("activity_date").cast(pl.Int32) - row_number
    runs = (
        pl.scan_parquet(folder / "curated/daily_activity/*/*.parquet", hive_partitioning=False)
        .with_columns(island=island)
        .group_by("user_id", "island")
        .agg(last=pl.col("activity_date").max(), days=pl.len())
    )
    by_last = pl.col("days").sort_by("last").last()
    answer = runs.group_by("user_id").agg(
        last_activity_date=pl.col("last").max(),
        current_streak=by_last,
        longest_streak=pl.col("days").max(),
        active_days=pl.col("days").sum(),
    )
    return answer.collect().to_arrow()


WAYS: dict[str, Callable[[Path], Any]] = {"ours": ours, "duckdb": duckdb, "polars": polars}


def write(folder: Path, rows: int) -> int:
    """Write a lake of about this many rows; returns how many. Each user is active on random dates."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    users, days = rows // ROWS_PER_USER, int(ROWS_PER_USER / SHARE)
    chance = np.random.default_rng(1)
    ids = pa.array(sorted(str(uuid.UUID(bytes=chance.bytes(16))) for _ in range(users)))
    total = 0
    for day in range(days):
        when = FIRST + timedelta(days=day)
        active = np.flatnonzero(chance.random(users) < SHARE)
        dates = pa.array([when], pa.date32()).take(pa.array(np.zeros(len(active), np.int32)))
        target = folder / f"curated/daily_activity/dt={when}"
        target.mkdir(parents=True)
        table = pa.table({"user_id": ids.take(pa.array(active)), "activity_date": dates})
        pq.write_table(
            table, target / "day.parquet", compression="zstd", compression_level=1, row_group_size=100_000
        )
        total += len(active)
    return total


def measure(way: str, folder: Path) -> None:
    """Run one way in this process, and print its time and memory."""
    for library in ("duckdb", "polars", "pyarrow.compute", "analytics.recompute.recompute"):
        importlib.import_module(library)
    start, cpu = time.perf_counter(), time.process_time()
    table = WAYS[way](folder)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    print(
        json.dumps(
            {
                "seconds": seconds,
                "cpu_seconds": cpu_seconds,
                "peak_mb": getrusage(RUSAGE_SELF).ru_maxrss / 1024,
                "digest": digest(table),
            }
        )
    )


def digest(table: Any) -> list[str]:
    """Return what two equal results have in common: the number of rows, a hash of all rows, and two sums."""
    import duckdb

    db = duckdb.connect()
    db.register("answer", table)
    listed = f"{COLUMNS[0]}, {COLUMNS[1]}::DATE, " + ", ".join(f"{name}::BIGINT" for name in COLUMNS[2:])
    query = f"SELECT count(*), sum(hash(row({listed}))), sum(active_days), sum(longest_streak) FROM answer"
    return [str(each) for each in db.execute(query).fetchall()[0]]


def in_fresh_process(way: str, folder: Path) -> dict[str, Any]:
    """Measure one way in fresh processes; returns the fastest of some repeats."""
    env = {**os.environ, "POLARS_MAX_THREADS": THREADS, "OMP_NUM_THREADS": THREADS}
    command = [sys.executable, "-m", "bench.lake.recompute", way, str(folder)]
    runs = []
    for _ in range(REPEATS):
        done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    return min(runs, key=lambda each: float(each["seconds"]))


def run() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        small, large = Path(name) / "small", Path(name) / "large"
        tenth, rows = write(small, ROWS // 10), write(large, ROWS)
        small_run = in_fresh_process("ours", small)
        shutil.rmtree(small)
        took = {way: in_fresh_process(way, large) for way in WAYS}
    mine = took["ours"]
    for way in ("duckdb", "polars"):
        if took[way]["digest"] != mine["digest"]:
            raise AssertionError(f"{way} and ours differ: {took[way]['digest']} {mine['digest']}")
    behind = ", ".join(
        f"{way} {each['seconds']:.1f} s, {each['peak_mb']:.0f} MB" for way, each in took.items()
    )
    yield Figure(
        "recompute: times as fast as DuckDB", took["duckdb"]["seconds"] / mine["seconds"], ">=", 1, behind
    )
    yield Figure("recompute: times as fast as Polars", took["polars"]["seconds"] / mine["seconds"], ">=", 3)
    yield Figure("recompute: GB of memory", mine["peak_mb"] / 1024, "<=", 2.5, f"{rows:,} rows")
    growth = (mine["seconds"] / rows) / (small_run["seconds"] / tenth)
    detail = f"{tenth:,} rows {small_run['seconds']:.2f} s, {rows:,} rows {mine['seconds']:.2f} s"
    yield Figure("recompute: time per row, all of them / a tenth", growth, "<=", 1.5, detail)


if __name__ == "__main__":
    measure(sys.argv[1], Path(sys.argv[2]))
