"""Curation of a day, two processes: ours against DuckDB and Polars doing the same, and against floors.

The rivals read plain lines. Ours reads them too, and the same rows in packed records.
"""

import multiprocessing
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from analytics.curation.curate import Task
from analytics.curation.curate_all import curate_one
from bench.figure import Figure
from bench.lake import floors, raw_day, rivals

PROCESSES = 2
ROUNDS = 2
ANSWER = (
    "count(*), sum(points_awarded), sum(version), sum(hash(event_id, user_id, created_at, activity_date))"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """seconds: wall clock. megabytes: the highest of each process, added. results: of each hour.

    cpu_seconds: of all processes. Other work on the machine disturbs them less than the wall clock.
    """

    seconds: float
    megabytes: float
    results: list[Any]
    cpu_seconds: float = 0


def ours(folder: Path, hour: str) -> None:
    curate_one(str(folder), Task("events", raw_day.DT, hour))


def ours_packed(folder: Path, hour: str) -> None:
    ours(_packed(folder), hour)


def _packed(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-packed")


WAYS: dict[str, Callable[[Path, str], Any]] = {
    "ours": ours,
    "ours packed": ours_packed,
    "duckdb": rivals.with_duckdb,
    "polars": rivals.with_polars,
    "gunzip": floors.gunzip,
    "write": floors.write,
    "own gunzip": floors.own_gunzip,
    "own write": floors.own_write,
}
FLOORS = ("gunzip", "write", "own gunzip", "own write")


def _one(way: str, folder: Path, hour: str) -> tuple[int, float, float, Any]:
    cpu = time.process_time()
    result = WAYS[way](folder, hour)
    cpu = time.process_time() - cpu
    peak = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return os.getpid(), int(peak.split()[1]) / 1024, cpu, result


def measure(way: str, folder: Path) -> Measured:
    """Do all hours one way, in fresh processes; their start is not measured."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    hours = [f"{hour:02}" for hour in range(raw_day.HOURS)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        list(pool.map(time.sleep, [0.5] * PROCESSES))  # both have started and imported everything
        started = time.perf_counter()
        done = list(pool.map(_one, [way] * len(hours), [folder] * len(hours), hours))
        seconds = time.perf_counter() - started
    peaks: dict[int, float] = {}
    for process, peak, *_ in done:
        peaks[process] = max(peak, peaks.get(process, 0))
    cpu = sum(seconds for *_, seconds, _ in done)
    return Measured(seconds, sum(peaks.values()), [result for *_, result in done], cpu)


def _curated(folder: Path, way: str) -> Path:
    if way == "ours packed":
        return _curated(_packed(folder), "ours")
    return folder / f"curated/events/dt={raw_day.DT}" if way == "ours" else folder / way / "curated"


def _quarantine(folder: Path, way: str) -> Path:
    if way == "ours packed":
        return _quarantine(_packed(folder), "ours")
    return folder / "quarantine" if way == "ours" else folder / way / "quarantine"


def _clear(folder: Path, way: str) -> None:
    for path in (_curated(folder, way), _quarantine(folder, way)):
        shutil.rmtree(path, ignore_errors=True)


def answer(folder: Path, way: str) -> tuple[Any, ...]:
    """Return what a way has written: rows, sums, and how many lines are in its quarantine."""
    with duckdb.connect() as db:
        rows = db.execute(f"SELECT {ANSWER} FROM '{_curated(folder, way)}/*.parquet'").fetchone()
    refused = sum(len(path.read_bytes().splitlines()) for path in _quarantine(folder, way).rglob("*.ndjson"))
    return (*(rows or ()), refused)


def run() -> Iterator[Figure]:
    """Yield the budgets: against the rivals, against the floors, and of memory."""
    folder = raw_day.raw_day_folder().resolve()
    raw_day.raw_day_folder(packed=True)
    best: dict[str, Measured] = {}
    for _ in range(ROUNDS):
        for way in WAYS:
            _clear(folder, way)
            measured = measure(way, folder)
            if way in FLOORS:
                measured = Measured(sum(measured.results) / PROCESSES, measured.megabytes, [])
            if way not in best or measured.seconds < best[way].seconds:
                best[way] = measured
    answers = {way: answer(folder, way) for way in ("ours", "ours packed", "duckdb", "polars")}
    if len(set(answers.values())) != 1:
        raise AssertionError(f"the results differ: {answers}")
    yield from _figures(best, answers["ours"])


def _figures(best: dict[str, Measured], result: tuple[Any, ...]) -> Iterator[Figure]:
    seconds = {way: each.seconds for way, each in best.items()}
    rival = min(("duckdb", "polars"), key=lambda way: seconds[way])
    detail = ", ".join(
        f"{way} {seconds[way]:.1f} s, CPU {best[way].cpu_seconds:.1f}" for way in ("ours", "duckdb", "polars")
    )
    rows = f"; {raw_day.EVENTS:,} lines, {result[0]:,} rows, {result[-1]:,} refused, the same for all"
    yield Figure(
        f"curation: times as fast as {rival}", seconds[rival] / seconds["ours"], ">=", 1.1, detail + rows
    )
    cpu = {way: best[way].cpu_seconds for way in ("ours", "ours packed")}
    detail = f"CPU {cpu['ours packed']:.1f} s against {cpu['ours']:.1f} s; {seconds['ours packed']:.1f} s"
    yield Figure(
        "curation: CPU of packed records, of plain rows", cpu["ours packed"] / cpu["ours"], "<=", 1.1, detail
    )
    for name, own, budget in (
        ("the floor", "", 2.0),
        ("the floor of our own gunzip and writer", "own ", None),
    ):
        unpack, write = seconds[f"{own}gunzip"], seconds[f"{own}write"]
        detail = f"gunzip alone {unpack:.1f} s, writing the sorted rows alone {write:.1f} s"
        yield Figure(f"curation: times {name}", seconds["ours"] / (unpack + write), "<=", budget, detail)
    detail = ", ".join(f"{way} {best[way].megabytes:.0f} MB" for way in ("ours", "duckdb", "polars"))
    yield Figure("curation: peak memory of two processes, MB", best["ours"].megabytes, "<=", 700, detail)
