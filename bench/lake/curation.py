"""Curation of raw hours, two processes: ours, three engines doing the same, and floors.

There is a lake of each entity, made of the publisher's own rows, and three whose lines have their fields in
any order. The day of `raw_day` is the plain one: its lines differ in their values alone. All ways write the
same rows and refuse the same lines; `duckdb read_json`, the shortest way, loses bad lines and takes 5 for a
text. Ways take turns in warm processes, so that imports and the start of an engine are outside the clock; a
process has loaded what its own way needs. A figure is the median of the rounds' ratios.

REPEATS sets the rounds. ClickHouse runs where it is installed (`uv pip install chdb`).
"""

import importlib.util
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.figure import Figure, of_rounds, ratio, shown
from bench.lake import raw_day
from bench.lake.curating.answers import checked, clear
from bench.lake.curating.raw_lakes import LAKES
from bench.lake.curating.ways import FLOORS, LOOSE, OURS, PACKED, one, warm

PROCESSES = 2
REPEATS = int(os.environ.get("REPEATS", "5"))


@dataclass(frozen=True, slots=True)
class Measured:
    """seconds: wall clock. cpu_seconds: of all processes. megabytes: the highest of each process, added.

    results: of each hour.
    """

    seconds: float
    cpu_seconds: float
    megabytes: float
    results: list[Any]


class Workers:
    """Processes that stay: some for each way."""

    def __init__(self, ways: Sequence[str], stack: ExitStack) -> None:
        os.environ["POLARS_MAX_THREADS"] = "1"
        context = multiprocessing.get_context("spawn")
        self._pools = {
            way: stack.enter_context(ProcessPoolExecutor(PROCESSES, mp_context=context)) for way in ways
        }
        for way, pool in self._pools.items():
            list(pool.map(warm, [way] * PROCESSES))

    def measure(self, way: str, folder: Path, entity: str, hours: Sequence[str]) -> Measured:
        """Do all hours one way."""
        count, started = len(hours), time.perf_counter()
        done = list(self._pools[way].map(one, [way] * count, [folder] * count, [entity] * count, hours))
        seconds = time.perf_counter() - started
        peaks: dict[int, float] = {}
        for process, peak, *_ in done:
            peaks[process] = max(peak, peaks.get(process, 0))
        cpu = sum(each for *_, each, _ in done)
        return Measured(seconds, cpu, sum(peaks.values()), [result for *_, result in done])

    def in_turns(
        self, ways: Sequence[str], folder: Path, entity: str, hours: Sequence[str]
    ) -> dict[str, list[Measured]]:
        """Do all hours each way, in turns."""
        found: dict[str, list[Measured]] = {way: [] for way in ways}
        for _ in range(REPEATS):
            for way in ways:
                clear(folder, way, entity)
                found[way].append(self.measure(way, folder, entity, hours))
        return found


def _told(found: dict[str, list[Measured]]) -> str:
    told = []
    for way, rounds in found.items():
        if way not in FLOORS:
            wall, cpu = [each.seconds for each in rounds], [each.cpu_seconds for each in rounds]
            told.append(f"{way} {shown(wall)} s, CPU {shown(cpu)}")
    return ", ".join(told)


def _against_best(name: str, found: dict[str, list[Measured]], budget: float, size: str) -> Iterator[Figure]:
    """Compare ours with the fastest rival that does the same, by the clock and by CPU; and the loose one."""
    others = [way for way in found if way not in (OURS, PACKED, LOOSE, *FLOORS)]
    for clock, limit in (("seconds", budget), ("cpu_seconds", None)):
        times = {way: [getattr(each, clock) for each in rounds] for way, rounds in found.items()}
        best = min(others, key=lambda way: median(times[way]))
        title = f"curation, {name}: times {best}" + ", CPU" * (limit is None)
        detail = "" if limit is None else f"{size}; {_told(found)}"
        yield ratio(title, times[best], times[OURS], ">=", limit, detail)
    yield ratio("  CPU, times duckdb read_json, which loses lines", times[LOOSE], times[OURS])


def run() -> Iterator[Figure]:
    """Yield the budgets: against the rivals on each lake, against the floors, and of memory."""
    others = ["duckdb", LOOSE, "polars", *(["clickhouse"] if importlib.util.find_spec("chdb") else [])]
    with ExitStack() as stack:
        workers = Workers([OURS, PACKED, *others, *FLOORS], stack)
        yield from _plain(workers, [OURS, PACKED, *others, *FLOORS])
        for lake in LAKES:
            folder = lake.folder()
            found = workers.in_turns([OURS, *others], folder, lake.entity, lake.hours)
            rows, refused = checked(folder, [OURS, *others], lake.entity)
            size = f"{rows:,} rows, {refused} refused"
            yield from _against_best(lake.name, found, 1.0 if lake.is_shuffled else 1.3, size)


def _plain(workers: Workers, ways: Sequence[str]) -> Iterator[Figure]:
    folder = raw_day.raw_day_folder().resolve()
    raw_day.raw_day_folder(packed=True)
    hours = [f"{hour:02}" for hour in range(raw_day.HOURS)]
    found = workers.in_turns(ways, folder, "events", hours)
    rows, refused = checked(folder, ways, "events")
    size = f"{raw_day.EVENTS:,} lines, {rows:,} rows, {refused} refused, the same for all"
    yield from _against_best("plain day", found, 1.3, size)
    cpu = {way: [each.cpu_seconds for each in found[way]] for way in (OURS, PACKED)}
    yield ratio("curation: CPU of packed records, of plain rows", cpu[PACKED], cpu[OURS], "<=", 1.1)
    floor = [
        sum(gunzip.results) / PROCESSES + sum(write.results) / PROCESSES
        for gunzip, write in zip(found["gunzip"], found["write"], strict=True)
    ]
    took = [each.seconds for each in found[OURS]]
    detail = f"{shown(took)} s; gunzip and writing the sorted rows alone {shown(floor)} s"
    yield ratio("curation: times the floor", took, floor, "<=", 2.0, detail)
    peaks = {way: max(each.megabytes for each in rounds) for way, rounds in found.items()}
    detail = ", ".join(f"{way} {peak:.0f} MB" for way, peak in peaks.items() if way not in FLOORS)
    yield of_rounds("curation: peak memory of two processes, MB", [peaks[OURS]], "<=", 700, detail)
