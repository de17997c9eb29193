"""Curation of one very large partition, within a function's memory and disk, against DuckDB that spills.

Its rows come twice: as five versions of each key, and as so many keys. All are in one hour, in no order.
"""

import multiprocessing
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from analytics.curation.curate_all import curate_one
from analytics.lake.layout import curated_key
from bench.figure import Figure
from bench.lake.large_partition import ROWS, TASK, folder_of

MEMORY_MB, DISK_GB, SECONDS, SECONDS_ROWS = 3008, 10, 600, 20_000_000
POLL_SECONDS = 0.05
COLUMNS = {
    "user_id": "VARCHAR",
    "activity_date": "DATE",
    "first_event_id": "VARCHAR",
    "events_count": "BIGINT",
    "points_earned": "BIGINT",
    "points_by_type": "VARCHAR",
    "ledger_head": "TIMESTAMPTZ",
    "created_at": "TIMESTAMPTZ",
}
LISTED = ", ".join(COLUMNS)
ANSWER = f"SELECT count(*), sum(points_earned), sum(hash({LISTED})::HUGEINT)"
NEWEST = {
    "row_number": "FROM raw QUALIFY row_number() OVER (PARTITION BY user_id, activity_date"
    " ORDER BY ledger_head DESC) = 1",
    "arg_max": "FROM (SELECT unnest(arg_max(raw, ledger_head)) FROM raw GROUP BY user_id, activity_date)",
}


@dataclass(frozen=True, slots=True)
class PartitionCost:
    """What a way took. megabytes: peak of the process. gigabytes: peak of its temporary folder.

    error: why it did not come to an end, if it did not.
    """

    seconds: float
    cpu_seconds: float
    megabytes: float
    gigabytes: float
    error: str = ""

    def text(self) -> str:
        """Return the figures in one line."""
        if self.error:
            return f"failed after {self.seconds:.0f} s: {self.error[:120]}"
        return (
            f"{self.seconds:.1f} s, CPU {self.cpu_seconds:.1f}, {self.megabytes:.0f} MB,"
            f" {self.gigabytes:.2f} GB of disk"
        )


def ours(folder: Path, _: Path) -> None:
    curate_one(str(folder), TASK)


def rival(way: str, folder: Path, spill: Path) -> None:
    """Write the newest rows, in any order, as a user of DuckDB would, with both cores."""
    with duckdb.connect(config={"threads": 2, "preserve_insertion_order": False}) as db:
        db.execute(f"SET memory_limit = '{MEMORY_MB}MB'; SET temp_directory = '{spill}/db'")
        db.execute(f"SET max_temp_directory_size = '{DISK_GB}GB'; SET TimeZone = 'UTC'")
        db.execute("SET enable_progress_bar = false")
        kinds = ", ".join(f"{name}: '{kind}'" for name, kind in COLUMNS.items())
        source = f"{folder}/raw/{TASK.entity}/dt={TASK.dt}/hour={TASK.hour}/*.gz"
        db.execute(
            f"CREATE VIEW raw AS SELECT {LISTED} FROM read_json('{source}', format = 'newline_delimited',"
            f" hive_partitioning = false, columns = {{{kinds}}})"
        )
        db.execute(
            f"COPY (SELECT {LISTED} {NEWEST[way]}) TO '{spill}/rows.parquet'"
            " (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)"
        )
    shutil.move(spill / "rows.parquet", folder / f"{way}.parquet")


def _with_duckdb_by_row_number(folder: Path, spill: Path) -> None:
    rival("row_number", folder, spill)


def _with_duckdb_by_arg_max(folder: Path, spill: Path) -> None:
    rival("arg_max", folder, spill)


WAYS: dict[str, Callable[[Path, Path], None]] = {
    "ours": ours,
    "row_number": _with_duckdb_by_row_number,
    "arg_max": _with_duckdb_by_arg_max,
}


def _one(way: str, folder: Path, spill: Path) -> tuple[float, float, float, str]:
    tempfile.tempdir = str(spill)
    started, cpu, error = time.perf_counter(), time.process_time(), ""
    try:
        WAYS[way](folder, spill)
    except duckdb.Error as failed:
        error = str(failed)
    peak = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return (
        time.perf_counter() - started,
        time.process_time() - cpu,
        int(peak.split()[1]) / 1024,
        error,
    )


def measure(way: str, folder: Path) -> PartitionCost:
    """Do it one way, in a fresh process, and watch its temporary folder."""
    with tempfile.TemporaryDirectory(dir=folder) as spill:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            done = pool.submit(_one, way, folder, Path(spill))
            most, waits = 0, threading.Event()
            done.add_done_callback(lambda _: waits.set())
            while not waits.wait(POLL_SECONDS):
                most = max(most, _size(Path(spill)))
            seconds, cpu, megabytes, error = done.result()
    return PartitionCost(seconds, cpu, megabytes, most / 1e9, error)


def _size(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_blocks * 512
        except FileNotFoundError:
            continue
    return size


def answer(path: Path) -> tuple[Any, ...]:
    """Return what a file holds: rows, points, and a sum over whole rows."""
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        return db.execute(f"{ANSWER} FROM '{path}'").fetchone() or ()


def run() -> Iterator[Figure]:
    """Yield the budgets of both partitions."""
    for versions in (5, 1):
        folder = folder_of(versions)
        shutil.rmtree(folder / "curated", ignore_errors=True)
        found = {way: measure(way, folder) for way in WAYS}
        done = {way for way, each in found.items() if not each.error}
        paths = {way: folder / f"{way}.parquet" for way in done} | {"ours": folder / curated_key(TASK)}
        answers = {way: answer(path) for way, path in paths.items()}
        if len(set(answers.values())) != 1:
            raise AssertionError(f"the results differ: {answers}")
        yield from _figures(f"{ROWS:,} rows, {versions} of each key", found, done - {"ours"})


def _figures(what: str, found: dict[str, PartitionCost], rivals: set[str]) -> Iterator[Figure]:
    mine = found["ours"]
    detail = "; ".join(f"{way} {each.text()}" for way, each in found.items())
    seconds_max = SECONDS * ROWS / SECONDS_ROWS
    yield Figure(f"{what}: seconds", mine.seconds, "<=", seconds_max, detail)
    yield Figure("  peak memory, MB", mine.megabytes, "<=", MEMORY_MB)
    yield Figure("  peak disk, GB", mine.gigabytes, "<=", DISK_GB)
    if rivals:
        best = min(rivals, key=lambda way: found[way].seconds)
        yield Figure(f"  times as fast as DuckDB ({best})", found[best].seconds / mine.seconds)
